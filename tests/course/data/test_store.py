"""Stored tables: whole or not there, checked when they are read, and what is said when something is wrong."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

from course.data.comparison import fingerprint
from course.data.datasets import data_set, table
from course.data.store import MANIFEST, TableError, cached, make, placed, read_table, verify, write_table
from course.data.table_sink import TableSink
from refimpl.drivers import ThreadedRun
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.job import StreamEnvironment

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stored(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables") / "zipf"
    make("zipf", spark, folder, rows=500)
    return folder


@pytest.fixture
def copy(stored, tmp_path):
    """A stored table to be damaged."""
    return shutil.copytree(stored, tmp_path / "zipf")


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_stored_is_read_back(spark, stored):
    manifest = verify(stored)
    assert (manifest.num_rows, manifest.about["rows"], manifest.about["seed"]) == (500, 500, 7)
    frame = read_table(spark, stored, data_set("zipf").types)
    assert fingerprint(frame) == fingerprint(table("zipf", spark, rows=500))
    assert read_table(spark, stored, columns=("user",)).columns == ["user"]
    assert left_in(stored.parent) == ["zipf"]
    assert left_in(stored) == sorted([MANIFEST, *manifest.files])


def first_part(folder):
    return min(folder.glob("*.parquet"))


def flip_a_byte(folder):
    data = bytearray(first_part(folder).read_bytes())
    data[len(data) // 2] ^= 1
    first_part(folder).write_bytes(data)


def edit_manifest(folder, **changes):
    file = folder / MANIFEST
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (flip_a_byte, r"is damaged: part-\S+ has checksum \w+…, expected \w+…; make it again"),
        (lambda folder: first_part(folder).unlink(), r"is not whole: part-\S+ is missing"),
        (lambda folder: first_part(folder).write_bytes(b""), "is damaged"),
        (lambda folder: (folder / "part-x.parquet").write_bytes(b"x"), "holds part-x.parquet, which its manifest.json"),
        (lambda folder: (folder / MANIFEST).unlink(), f"is no stored table: it has no {MANIFEST}"),
        (lambda folder: (folder / MANIFEST).write_text("{"), f"its {MANIFEST} cannot be understood"),
        (lambda folder: edit_manifest(folder, format="x"), "it has another format"),
        (lambda folder: edit_manifest(folder, extra=1), f"its {MANIFEST} cannot be understood"),
        (shutil.rmtree, "is no stored table: it does not exist"),
        (
            lambda folder: edit_manifest(folder, schema=data_set("zipf").types | {"amount_cents": "int"}),
            "has another schema: 'amount_cents' is int, expected bigint; make it again",
        ),
        (
            lambda folder: edit_manifest(folder, schema={"id": "bigint", "event_time_ms": "bigint", "user": "string"}),
            "has another schema: no column 'amount_cents'",
        ),
    ],
)
def test_damage_is_named_in_one_sentence(spark, copy, damage, words):
    damage(copy)
    with pytest.raises(TableError, match=words) as raised:
        read_table(spark, copy, data_set("zipf").types)
    assert "\n" not in str(raised.value)


def test_a_missing_column_is_named(spark, stored):
    with pytest.raises(TableError, match="has no column 'price'; it has id, event_time_ms, user, amount_cents"):
        read_table(spark, stored, columns=("id", "price"))


def test_a_new_table_replaces_the_old_one_at_once(spark, copy):
    make("zipf", spark, copy, rows=20)
    assert verify(copy).num_rows == 20
    assert left_in(copy.parent) == ["zipf"]


def test_what_is_no_table_is_not_replaced(spark, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(TableError, match="is there already and is no stored table"):
        make("zipf", spark, tmp_path / "mine", rows=20)
    assert left_in(tmp_path) == ["mine"]
    assert left_in(tmp_path / "mine") == ["thesis.txt"]


# -- a disk that is full or closed -------------------------------------------------------------------


def full_disk(_value):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_while_spark_writes_leaves_the_old_table(spark, copy):
    before = verify(copy)
    fails = F.udf(full_disk, "int")
    with pytest.raises(TableError, match=r"zipf was not stored: the disk of \S+ is full"):
        write_table(spark.range(10).select(fails("id").alias("n")), copy)
    assert verify(copy) == before
    assert left_in(copy.parent) == ["zipf"]


def test_a_disk_that_fills_with_the_manifest_leaves_nothing(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(TableError, match=r"zipf was not stored: the disk of \S+ is full"):
        make("zipf", spark, tmp_path / "zipf", rows=20)
    assert left_in(tmp_path) == []


def closed_disk(*_arguments, **_options):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_what_a_killed_process_left_goes_with_the_next_one_but_not_what_another_writes(tmp_path):
    folder, long_ago = tmp_path / "table [1]", (0, 0)
    killed = (
        "import os, pathlib, signal, sys; from course.data.store import placed\n"
        "with placed(pathlib.Path(sys.argv[1])) as beside:\n"
        "    (beside / 'half').touch(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", killed, str(folder)], check=False, env=env)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    replaced = left.with_suffix(".old")  # as between the two steps of replacing a table
    replaced.mkdir()
    with placed(folder) as young:
        assert {*tmp_path.iterdir()} == {left, replaced, young}  # whoever has just made one may not hold its lock yet
    for each in (left, replaced):
        os.utime(each, long_ago)
    with placed(tmp_path / "other") as other, placed(folder) as mine:
        os.utime(mine, long_ago)
        with placed(folder) as another:
            assert {*tmp_path.iterdir()} == {folder, other, mine, another}
        mine.joinpath("manifest.json").touch()
        folder.joinpath("manifest.json").touch()
    assert {*tmp_path.iterdir()} == {folder, tmp_path / "other"}


def test_a_home_that_cannot_be_written_is_one_sentence(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "mkdtemp", closed_disk)
    with pytest.raises(TableError, match=r"cannot be written \(Read-only file system\); .*SLUICE_CACHE"):
        cached("zipf", spark, rows=20)


def test_a_file_in_place_of_a_folder_is_one_sentence(spark, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match=r"zipf was not stored in \S+: "):
        make("zipf", spark, tmp_path / "file" / "zipf", rows=20)


# -- the cache -------------------------------------------------------------------------------------


def test_the_cache_makes_a_table_once(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    first = fingerprint(cached("disorder", spark, rows=50, delays="pareto"))
    (folder,) = (tmp_path / "tables").iterdir()
    made = folder.stat().st_mtime_ns
    assert fingerprint(cached("disorder", spark, rows=50, delays="pareto")) == first
    assert folder.stat().st_mtime_ns == made
    assert fingerprint(cached("disorder", spark, rows=50, seed=8)) != first
    assert len(left_in(tmp_path / "tables")) == 2


def test_a_cached_table_of_another_version_is_made_again(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    cached("plans", spark)
    (folder,) = (tmp_path / "tables").iterdir()
    edit_manifest(folder, version=0)
    cached("plans", spark)
    assert verify(folder).version > 0


# -- the sink --------------------------------------------------------------------------------------


def squares(sink, n=1_000, parallelism=3):
    environment = StreamEnvironment(parallelism=parallelism)
    environment.from_collection(range(n)).rebalance().map(lambda i: (i, i * i)).sink(sink)
    return environment


def test_results_become_a_dataframe(spark, tmp_path):
    with TableSink("n bigint, square bigint", tmp_path / "squares", rows_per_group=64) as sink:
        ThreadedRun(squares(sink)).run()
        assert left_in(tmp_path) != ["squares"], "not before it is whole"
        assert sink.commit().num_rows == 1_000
        rows = sorted(map(tuple, sink.frame(spark).collect()))
    assert rows == [(i, i * i) for i in range(1_000)]
    assert left_in(tmp_path) == ["squares"]
    groups = pq.ParquetFile(first_part(tmp_path / "squares")).metadata
    assert max(groups.row_group(i).num_rows for i in range(groups.num_row_groups)) <= 64


@pytest.mark.parametrize("values", [[{"n": 1}, {"n": 2}], [1, 2], [(1,), (2,)]])
def test_a_value_is_a_tuple_a_dict_or_the_one_field(spark, values):
    with TableSink("n int") as sink:
        for value in values:
            sink(value)
        sink.commit()
        assert [row.n for row in sink.frame(spark).collect()] == [1, 2]


def test_a_job_that_fails_leaves_nothing(spark, tmp_path):
    def store():
        environment = StreamEnvironment()
        with TableSink("n bigint", tmp_path / "t", rows_per_group=2) as sink:
            environment.from_collection([1, 2, 3, 0]).map(lambda n: 6 // n).sink(sink)
            ThreadedRun(environment).run()
            sink.commit()

    with pytest.raises(UserCodeError):
        store()
    assert left_in(tmp_path) == []


def test_a_block_that_is_left_without_commit_leaves_nothing(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_SCRATCH", str(tmp_path))
    for folder in (tmp_path / "t", None):
        with TableSink("n int", folder) as sink:
            sink(1)
        assert left_in(tmp_path) == []
        with pytest.raises(LocalUsageError, match="there is no table yet"):
            sink.frame(spark)
        with pytest.raises(LocalUsageError, match="`with` block"):
            sink(2)


def test_a_schema_without_a_column_is_refused(spark, tmp_path):
    with (
        pytest.raises(LocalUsageError, match="the schema 'int' names no columns; give them names, such as 'n int'"),
        TableSink("int", tmp_path / "t"),
    ):
        pass
    assert left_in(tmp_path) == []


def test_a_value_that_does_not_fit_is_shown(spark, tmp_path):
    def store():
        with TableSink("a int, b int", tmp_path / "t") as sink:
            sink((1, "x"))
            sink.commit()

    with pytest.raises(LocalUsageError, match=r"a value like \(1, 'x'\) does not fit the table 'a int, b int'"):
        store()
    assert left_in(tmp_path) == []


@contextmanager
def files_up_to(num_bytes):
    """No file of this process can become longer: what a full disk is to a writer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_sink_on_a_full_disk_says_so_and_leaves_nothing(spark, tmp_path):
    def store():
        with TableSink("text string", tmp_path / "t", rows_per_group=4) as sink, files_up_to(10_000):
            for number in range(200):
                sink(os.urandom(500).hex() + str(number))
            sink.commit()

    with pytest.raises(TableError, match=r"t was not stored: the disk of \S+ is full"):
        store()
    assert left_in(tmp_path) == []


def test_memory_of_a_sink_is_a_row_group_and_not_the_table(spark, tmp_path):
    before = pa.total_allocated_bytes()
    with TableSink("n bigint, text string", tmp_path / "t", rows_per_group=1_000) as sink:
        most = 0
        for number in range(50_000):
            sink((number, f"{number:0100d}"))
            if number % 1_000 == 999:
                most = max(most, pa.total_allocated_bytes() - before)
        sink.commit()
    assert most < 2_000_000, "the table itself has 5.4 MB"
