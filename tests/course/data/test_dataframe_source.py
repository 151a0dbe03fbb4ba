"""A DataFrame as a source: each row once, by partition, bounded, cleaned up; and the engine as a source of Spark."""

import itertools
import pickle
import signal
import threading

import cloudpickle
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from course.data import compare, departures_per_window, load
from course.data.dataframe_source import ArrowReader, DataFrameSource
from course.data.engine_source import EngineSource, results_of
from course.data.flights import ARRIVAL_ORDER
from course.data.flights_job import flights_job, to_rows
from refimpl.drivers import ProcessRun, Simulation, ThreadedRun
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.job import StreamEnvironment

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def scratch(monkeypatch, tmp_path):
    """Temporary folders of the test go here."""
    monkeypatch.setenv("SLUICE_SCRATCH", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def flights(spark):
    return load(spark, records=2_000).persist()


def rows_from(reader):
    found = []
    while (batch := reader.read(1)) is not None:
        found += batch.values()
    return found


def test_partition_i_is_read_by_subtask_i(spark, scratch):
    frame = spark.range(0, 1_000, 1, 3).withColumn("part", F.spark_partition_id())
    source = DataFrameSource(frame, batch_size=64)
    readers = [source(subtask, 3) for subtask in range(3)]
    for subtask, reader in enumerate(readers):
        rows = rows_from(reader)
        assert {row["part"] for row in rows} == {subtask}
        assert [row["id"] for row in rows] == list(range(1_000))[subtask * 1_000 // 3 :][: len(rows)]
        reader.close()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(("partitions", "parallelism"), [(1, 3), (5, 2), (2, 2), (4, 1)])
def test_every_row_is_read_once_whatever_the_partitions_are(spark, partitions, parallelism):
    source = DataFrameSource(spark.range(0, 500, 1, partitions), batch_size=37)
    readers = [source(subtask, parallelism) for subtask in range(parallelism)]
    parts = [rows_from(reader) for reader in readers]
    assert sorted(row["id"] for rows in parts for row in rows) == list(range(500))
    assert all(parts), "nobody is idle"
    for reader in readers:
        reader.close()


def test_in_order_row_r_goes_to_subtask_r_modulo_their_number(spark):
    source = DataFrameSource(spark.range(0, 100, 1, 4), order_by="id")
    readers = [source(subtask, 3) for subtask in range(3)]
    assert [[row["id"] for row in rows_from(reader)] for reader in readers] == [
        list(range(100))[i::3] for i in range(3)
    ]
    for reader in readers:
        reader.close()


@pytest.mark.parametrize("driver", [ThreadedRun, lambda job: Simulation(job, check_every=0), ProcessRun])
def test_a_job_gives_sparks_own_answer_and_leaves_no_file(flights, scratch, driver):
    results = []
    before = set(scratch.iterdir())
    with (
        DataFrameSource(flights, ARRIVAL_ORDER, num_files=2) as source,
        driver(flights_job(source, results.append, parallelism=2)) as run,
    ):
        run.run()
    found = compare(to_rows(results), departures_per_window(flights))
    assert found.is_equal, found.message()
    assert set(scratch.iterdir()) == before


def test_event_times_come_from_a_column_of_numbers_or_of_times(flights):
    timed = flights.select(
        "event_time_ms", F.timestamp_millis("event_time_ms").alias("at"), F.col("event_time_ms").alias("same")
    )
    for name in ("same", "at"):
        source = DataFrameSource(timed.coalesce(1), timestamps=name, batch_size=100)
        reader = source(0, 1)
        batch = reader.read(1)
        assert len(batch) == 100
        assert [record.timestamp for record in batch.records()] == [row["event_time_ms"] for row in batch.values()]
        reader.close()


def test_a_row_without_a_time_is_refused(spark):
    source = DataFrameSource(spark.sql("SELECT CAST(NULL AS bigint) AS at"), timestamps="at")
    environment = StreamEnvironment()
    environment.source(source).sink(print)
    with pytest.raises(LocalUsageError, match="column 'at' has rows without a time"):
        ThreadedRun(environment).run()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order_by": "when"}, "no column 'when'; it has id"),
        ({"timestamps": "when"}, "no column 'when'"),
        ({"batch_size": 0}, "at least 1 row, not 0"),
    ],
)
def test_what_cannot_be_is_told_before_spark_works(spark, options, words):
    with pytest.raises(ValueError, match=words):
        DataFrameSource(spark.range(3), **options)


def test_a_job_that_fails_or_is_cancelled_leaves_no_file(spark, scratch):
    environment = StreamEnvironment(parallelism=2)
    environment.source(DataFrameSource(spark.range(0, 1_000, 1, 2))).map(lambda row: 1 // (row["id"] - 700)).sink(print)
    with pytest.raises(UserCodeError):
        ThreadedRun(environment).run()
    assert list(scratch.iterdir()) == []

    began, may_end = threading.Event(), threading.Event()

    def hold(_value):
        began.set()
        may_end.wait(120)

    environment = StreamEnvironment(parallelism=2)
    environment.source(DataFrameSource(spark.range(0, 100_000, 1, 2))).sink(hold)
    with ThreadedRun(environment) as run:
        run.start()
        assert began.wait(120)
        may_end.set()
        run.cancel()
    assert list(scratch.iterdir()) == []


def test_an_interrupt_leaves_no_file(spark, scratch):
    environment = StreamEnvironment(parallelism=2)
    numbers = itertools.count()  # one interrupt, though two threads ask for it

    def interrupt(_value):
        if next(numbers) == 0:
            signal.raise_signal(signal.SIGINT)

    environment.source(DataFrameSource(spark.range(0, 100_000, 1, 2))).sink(interrupt)
    run = ThreadedRun(environment)
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert list(scratch.iterdir()) == []


def test_a_source_that_spark_cannot_make_leaves_no_file(spark, scratch):
    wrong = spark.range(10).select(F.expr("assert_true(id < 5)").alias("x"), "id")
    source = DataFrameSource(wrong)
    with pytest.raises(PySparkException):
        source(0, 1)
    assert list(scratch.iterdir()) == []


def test_a_forgotten_source_takes_its_files_with_it(spark, scratch):
    source = DataFrameSource(spark.range(10))
    copy = pickle.loads(cloudpickle.dumps(source))
    assert [row["id"] for row in rows_from(copy(0, 1))] == list(range(10))
    assert len(list(scratch.iterdir())) == 1
    del source
    assert list(scratch.iterdir()) == []
    with pytest.raises(LocalUsageError, match="is gone: its source was closed before its readers"):
        rows_from(copy(0, 1))


def test_a_source_dealt_to_another_number_of_subtasks_says_what_to_do(spark):
    with DataFrameSource(spark.range(0, 10, 1, 2), order_by="id") as source:
        copy = pickle.loads(cloudpickle.dumps(source))
        with pytest.raises(LocalUsageError, match=r"dealt out in order to 2 subtasks.*num_files=3"):
            copy(0, 3)


def test_a_damaged_file_is_named(spark, scratch):
    source = DataFrameSource(spark.range(10).coalesce(1))
    reader = source(0, 1)
    (file,) = scratch.glob("**/*.parquet")
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(LocalUsageError, match=r"part-00000\S+ is damaged and cannot be read"):
        reader.read(1)
    reader.close()


def test_what_a_cluster_is_sent_knows_nothing_of_the_frame(spark, flights):
    source = DataFrameSource(flights, ARRIVAL_ORDER, timestamps="event_time_ms", batch_size=100)
    sent = cloudpickle.dumps(source.make_batch_reader)
    assert len(sent) < 500
    reader = pickle.loads(sent)(iter(source.frame.toArrow().to_batches()))
    assert isinstance(reader, ArrowReader)
    first = reader.read(1)
    assert len(first) == 100
    assert first.timestamps is not None
    assert sum(1 for _ in rows_from(reader)) == 1_900


def test_memory_of_a_reader_is_a_row_group_and_not_the_table(spark):
    wide = spark.range(0, 400_000, 1, 1).select(F.sha2(F.col("id").cast("string"), 512).alias("text"))
    source = DataFrameSource(wide)
    reader = source(0, 1)
    before = most = pa.total_allocated_bytes()
    total = 0
    while (batch := reader.read(1)) is not None:
        total += len(batch)
        most = max(most, pa.total_allocated_bytes())
    reader.close()
    assert total == 400_000
    assert most - before < 30_000_000, "the table itself has 51 MB"


# -- the engine as a data source of Spark ------------------------------------------------------------


@pytest.fixture(scope="module")
def sluice(spark):
    spark.dataSource.register(EngineSource)
    return lambda **options: spark.read.format("sluice").options(**options).load()


def test_spark_reads_a_job(sluice, flights):
    frame = sluice(job="flights", records=2_000)
    assert frame.columns[:3] == ["window_start_ms", "origin", "departures"]
    found = compare(map(tuple, frame.collect()), departures_per_window(flights))
    assert found.is_equal, found.message()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "say which job"),
        ({"job": "nothing"}, "there is no job 'nothing'.*jobs are flights or module:function"),
        ({"job": "course.data.flights_job:nothing"}, "there is no job"),
        ({"job": "flights", "records": "-3"}, "option records is a number of at least 1, not '-3'"),
        ({"job": "course.data.flights_job:to_rows"}, "has no `schema`"),
    ],
)
def test_a_job_there_is_none_of_is_said(sluice, options, words):
    with pytest.raises(PySparkException, match=words):
        sluice(**options).collect()


def numbers(on_result, options):
    environment = StreamEnvironment(parallelism=2)
    environment.from_collection(range(int(options["n"]))).rebalance().map(lambda n: n).sink(on_result)
    return environment


def test_results_leave_while_the_job_runs_and_whoever_leaves_ends_it():
    results = results_of(numbers, {"n": "100000"}, rows_per_batch=10)
    first = next(results)
    assert len(first) == 10
    before = threading.active_count()
    results.close()
    assert threading.active_count() < before


def test_all_results_come(capsys):
    assert sorted(n for batch in results_of(numbers, {"n": "1000"}, rows_per_batch=7) for n in batch) == list(
        range(1_000)
    )


def test_a_job_that_fails_fails_the_read():
    def failing(on_result, _options):
        environment = StreamEnvironment()
        environment.from_collection([1, 0]).map(lambda n: 1 // n).sink(on_result)
        return environment

    with pytest.raises(UserCodeError):
        list(results_of(failing, {}))


def test_an_operator_that_is_sent_away_does_not_take_the_source_along(spark, scratch, flights):
    environment = flights_job(DataFrameSource(flights), print)
    for node in environment.graph.nodes.values():
        if node.make_reader is None and node.sink is None:
            cloudpickle.dumps(node.make_operator)
    assert list(scratch.iterdir()) == [], "Spark was not asked for files"
