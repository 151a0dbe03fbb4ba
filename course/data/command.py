"""`sluice data`: list, describe and make the tables of the course; prepare and verify the flights."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from course.data import flights
from course.data.datasets import DATA_SETS, DEFAULT_SEED, NoSuchDataError, data_set
from course.data.generated import DELAYS
from course.data.prepare import PrepareError, prepare
from course.data.session import SparkUnavailable, spark
from course.data.store import TableError, make, verify
from course.exit_status import MISSING, NOT_PASSED, PASSED, WRONG_USE

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice data`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    actions.add_parser("list", help="name the tables and say what each is for")
    described = actions.add_parser("describe", help="skew, lateness and sizes of a table, worked out by Spark")
    made = actions.add_parser("make", help="store a table as Parquet, with a manifest and checksums")
    for each in (described, made):
        each.add_argument("name", metavar="NAME", help=f"one of {', '.join(DATA_SETS)}")
        each.add_argument("--rows", type=int, metavar="N", help="number of rows (default: the table's own)")
        each.add_argument(
            "--seed", type=int, default=DEFAULT_SEED, metavar="S", help="another seed, other rows (%(default)s)"
        )
        each.add_argument("--delays", choices=DELAYS, help="how late the late rows of `disorder` are")
    made.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to be made")
    actions.add_parser("prepare", help="make the file of the flights again, from its source")
    checked = actions.add_parser("verify", help="check the flights, or a table that `make` stored")
    checked.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="the stored table (default: the flights)")


def run(arguments: argparse.Namespace) -> int:
    """Run `sluice data`; the exit status is 0 good, 1 damaged or not made, 2 no such table, 3 no Spark."""
    try:
        return _ACTIONS[arguments.action](arguments)
    except NoSuchDataError as error:
        print(error, file=sys.stderr)
        return WRONG_USE
    except (PrepareError, TableError, flights.FlightsUnavailable) as error:
        print(error, file=sys.stderr)
        return NOT_PASSED
    except SparkUnavailable as error:
        print(error, file=sys.stderr)
        return MISSING


def _list(_arguments: argparse.Namespace) -> int:
    for each in DATA_SETS.values():
        print(f"{each.name:<10} {each.purpose}")
    return PASSED


def _describe(arguments: argparse.Namespace) -> int:
    from course.data.statistics import describe

    data_set(arguments.name)  # what does not exist is told before Spark starts
    session = spark("sluice data")
    print(describe(arguments.name, session, arguments.rows, arguments.seed, **_options(arguments)))
    return PASSED


def _make(arguments: argparse.Namespace) -> int:
    data_set(arguments.name)
    manifest = make(
        arguments.name, spark("sluice data"), arguments.out, arguments.rows, arguments.seed, **_options(arguments)
    )
    size = sum((arguments.out / name).stat().st_size for name in manifest.files)
    print(f"{arguments.out}: {manifest.num_rows} rows, {len(manifest.files)} files, {size} bytes")
    return PASSED


def _prepare(_arguments: argparse.Namespace) -> int:
    prepare(flights.PARQUET, flights.CHECKSUMS, print)
    return _verify_flights()


def _verify(arguments: argparse.Namespace) -> int:
    if arguments.folder is None:
        return _verify_flights()
    manifest = verify(arguments.folder)
    print(f"{arguments.folder}: {manifest.num_rows} rows, {len(manifest.files)} files, all checksums are right")
    return PASSED


def _verify_flights() -> int:
    path = flights.verified_path()
    if flights.content_digest(path) != flights.CONTENT_SHA256:
        raise flights.FlightsUnavailable(f"{path.name} does not hold the known rows; run `sluice data prepare`.")
    print(f"{path.name}: {flights.NUM_FLIGHTS} flights, {path.stat().st_size} bytes, checksum and rows are right")
    return PASSED


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {} if arguments.delays is None else {"delays": arguments.delays}


_ACTIONS = {"list": _list, "describe": _describe, "make": _make, "prepare": _prepare, "verify": _verify}
