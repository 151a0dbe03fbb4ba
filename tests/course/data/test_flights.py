"""The data set: what is in the file, what is said when it is not there, and the job that makes it."""

import datetime
import hashlib
import itertools
import shutil

import pyarrow.parquet as pq
import pytest

from course.data import flights
from course.data.prepare import departures


@pytest.fixture(scope="module")
def table():
    return pq.read_table(flights.PARQUET)


def test_the_file_is_small_and_its_checksum_right():
    assert flights.verified_path().stat().st_size < 4_000_000
    assert flights.content_digest(flights.PARQUET) == flights.CONTENT_SHA256


def test_columns(table):
    assert table.schema.names == list(flights.COLUMNS)
    assert [column.null_count for column in table.columns] == [0] * len(flights.COLUMNS)


def test_the_numbers_that_the_lessons_quote(table):
    assert table.num_rows == flights.NUM_FLIGHTS == 328_521
    distinct = {name: len(table[name].unique()) for name in ("carrier", "origin", "dest", "tailnum")}
    assert distinct == {"carrier": 16, "origin": 3, "dest": 104, "tailnum": 4037}


def test_disorder(table):
    event_times = table["event_time_ms"].to_pylist()
    newest = list(itertools.accumulate(event_times, max))
    late = [top - time for top, time in zip(newest, event_times, strict=True) if time < top]
    assert round(len(late) / len(event_times), 3) == 0.563
    assert max(late) == 1300 * 60_000
    assert round(sum(time > 60 * 60_000 for time in late) / len(event_times), 3) == 0.077


def test_arrival_is_event_time_plus_delay_and_the_order_of_the_file(table):
    rows = table.select(["event_time_ms", "arrival_ms", "dep_delay_minutes"]).to_pylist()
    assert all(row["arrival_ms"] == row["event_time_ms"] + 60_000 * row["dep_delay_minutes"] for row in rows)
    keys = list(zip(*(table[name].to_pylist() for name in flights.ARRIVAL_ORDER), strict=True))
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys), "the order has no ties"


@pytest.fixture
def copies(tmp_path):
    """Copies of the data file and its checksum, to be damaged."""
    paths = tmp_path / flights.PARQUET.name, tmp_path / flights.CHECKSUMS.name
    shutil.copyfile(flights.PARQUET, paths[0])
    shutil.copyfile(flights.CHECKSUMS, paths[1])
    return paths


def test_a_good_copy_is_accepted(copies):
    assert flights.verified_path(*copies) == copies[0]


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_file_is_named_with_the_next_step(copies, which):
    copies[which].unlink()
    with pytest.raises(flights.FlightsUnavailable, match=f"{copies[which].name} does not exist.*sluice data prepare"):
        flights.verified_path(*copies)


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"\0" + data[1:], lambda data: b""])
def test_a_damaged_file_is_noticed(copies, damage):
    copies[0].write_bytes(damage(copies[0].read_bytes()))
    with pytest.raises(flights.FlightsUnavailable, match=r"damaged: flights.parquet.*sluice data prepare"):
        flights.verified_path(*copies)


def test_a_damaged_checksum_is_noticed(copies):
    copies[1].write_text("this is no checksum\n")
    with pytest.raises(flights.FlightsUnavailable, match="sluice data prepare"):
        flights.verified_path(*copies)


def test_the_digest_is_of_the_rows_and_not_of_the_encoding(tmp_path, table):
    some = table.slice(0, 1000)
    digests = []
    for name, rows, compression in (("a", some, "zstd"), ("b", some, "none"), ("c", some.slice(1), "zstd")):
        pq.write_table(rows, tmp_path / name, compression=compression)
        digests.append(flights.content_digest(tmp_path / name))
    assert digests[0] == digests[1] != digests[2]
    files = [hashlib.sha256((tmp_path / name).read_bytes()).digest() for name in "ab"]
    assert files[0] != files[1]


@pytest.mark.spark
def test_load_gives_the_first_records_in_arrival_order(spark, table):
    assert flights.load(spark).count() == flights.NUM_FLIGHTS
    assert flights.load(spark, records=500).toArrow().to_pylist() == table.slice(0, 500).to_pylist()


@pytest.mark.spark
def test_load_refuses_no_records(spark):
    with pytest.raises(ValueError, match="at least 1, got 0"):
        flights.load(spark, records=0)


CSV = """\
year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,\
air_time,distance,hour,minute,time_hour
2013,1,1,520,515,5,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z
2013,1,1,NA,600,NA,NA,819,NA,UA,1,NA,EWR,IAH,NA,1400,6,0,2013-01-01T11:00:00Z
2013,1,1,520,525,-5,830,819,11,AA,7,N1,JFK,MIA,227,1400,5,25,2013-01-01T10:00:00Z
2013,1,1,519,515,4,830,819,11,DL,9,N2,LGA,MIA,227,1400,5,15,2013-01-01T10:00:00Z
2013,7,1,500,459,1,830,819,11,DL,9,N2,LGA,MIA,227,1400,4,59,2013-07-01T08:00:00Z
"""


@pytest.mark.spark
def test_the_job_keeps_departures_and_sorts_them_by_arrival(spark, tmp_path):
    (tmp_path / "some [flights].csv").write_text(CSV)
    rows = departures(spark, tmp_path / "some [flights].csv").collect()

    def ms(text):
        return int(datetime.datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)

    assert [(*tuple(row)[:4], row.dep_delay_minutes) for row in rows] == [
        (ms("2013-01-01T10:15"), ms("2013-01-01T10:19"), "DL", "LGA", 4),
        (ms("2013-01-01T10:15"), ms("2013-01-01T10:20"), "UA", "EWR", 5),
        (ms("2013-01-01T10:25"), ms("2013-01-01T10:20"), "AA", "JFK", -5),
        (ms("2013-07-01T08:59"), ms("2013-07-01T09:00"), "DL", "LGA", 1),
    ]
