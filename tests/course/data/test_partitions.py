"""A DataFrame dealt out to sources: every record once, in arrival order, in bounded batches, nothing left behind."""

import pyarrow as pa
import pytest

from course.data import load, partitions

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def scratch(monkeypatch, tmp_path):
    """Temporary folders of the test go here."""
    monkeypatch.setenv("SLUICE_SCRATCH", str(tmp_path))
    return tmp_path


def rows(partition, **options):
    return [row for batch in partition.batches(**options) for row in batch.to_pylist()]


@pytest.mark.parametrize("n", [1, 3, 4])
def test_record_number_i_of_the_arrival_order_is_in_partition_i_modulo_n(spark, n):
    frame = load(spark, records=1000)
    wanted = frame.toArrow().to_pylist()
    with partitions(frame, n) as dealt:
        assert [rows(part) for part in dealt] == [wanted[i::n] for i in range(n)]
        assert [part.num_rows for part in dealt] == [len(wanted[i::n]) for i in range(n)]


@pytest.mark.slow
def test_all_flights_are_dealt_once_and_in_step(spark):
    with partitions(load(spark), 4) as dealt:
        assert [part.num_rows for part in dealt] == [82_131, 82_130, 82_130, 82_130]
        arrivals = [[row["arrival_ms"] for row in rows(part, columns=["arrival_ms"])] for part in dealt]
    assert all(times == sorted(times) for times in arrivals)
    # Neighbours in different partitions arrived next to each other in the whole.
    triples = zip(arrivals[0], arrivals[1], arrivals[0][1:], strict=False)
    assert all(first <= between <= second for first, between, second in triples)


def test_batches_are_no_larger_than_asked_and_hold_the_asked_columns(spark):
    with partitions(load(spark, records=1000), 2) as dealt:
        batches = list(dealt[0].batches(batch_size=64, columns=["origin", "event_time_ms"]))
    assert sum(batch.num_rows for batch in batches) == 500
    assert max(batch.num_rows for batch in batches) <= 64
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    assert batches[0].schema.names == ["origin", "event_time_ms"]


def test_reading_twice_gives_the_same(spark):
    with partitions(load(spark, records=50), 1) as (only,):
        assert rows(only) == rows(only, batch_size=7)


def test_more_partitions_than_records(spark):
    with partitions(load(spark, records=2), 5) as dealt:
        assert [part.num_rows for part in dealt] == [1, 1, 0, 0, 0]
        assert rows(dealt[4]) == []


def test_another_order(spark):
    with partitions(load(spark, records=300), 2, order_by="event_time_ms") as dealt:
        times = [row["event_time_ms"] for part in dealt for row in rows(part)]
        halves = times[:150], times[150:]
    assert all(list(half) == sorted(half) for half in halves)


@pytest.mark.parametrize("fails", [False, True])
def test_the_files_go_with_the_block(spark, scratch, fails):
    def use():
        with partitions(load(spark, records=10), 2):
            assert list(scratch.iterdir())
            if fails:
                raise KeyboardInterrupt

    if fails:
        with pytest.raises(KeyboardInterrupt):
            use()
    else:
        use()
    assert list(scratch.iterdir()) == []


def test_no_partitions_is_refused(spark):
    with pytest.raises(ValueError, match="at least 1, got 0"), partitions(load(spark, records=1), 0):
        pass
