"""`sluice race`: the same workload through other systems' ways to push back, and through the engine."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from course.waiting import Waiting

__all__ = ["add_arguments", "run"]

_NAMES = ("storm", "jstorm", "spark", "atm-link", "atm-end", "bounded", "sluice-none", "sluice-credit")
"""Those of `refimpl.rivals.ENTRANTS`, which need not be loaded to be listed."""
_FORMATS = (".svg", ".pdf", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--only", action="append", choices=_NAMES, metavar="NAME", help=f"one of {', '.join(_NAMES)}; may be repeated"
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of the service times (default: %(default)s)"
    )
    parser.add_argument("--picture", type=_picture, metavar="FILE", help="draw each source's rate; .svg, .pdf or .png")
    parser.add_argument(
        "--page", type=_folder, metavar="FOLDER", help="write a page of it there, race.md, with its picture"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, and nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Race and print; 1 if a sign that is expected of the whole race does not hold."""
    from course.figures.race import race
    from refimpl.rivals import ENTRANTS, signs

    with Waiting("racing") as waiting:
        names = arguments.only or list(ENTRANTS)
        result = race(names, arguments.seed, on_begin=lambda name: waiting.now(f"racing {name}"))
    print(json.dumps(result.as_json()) if arguments.json else result)
    if arguments.picture:
        result.figure().save(arguments.picture)
    if arguments.page:
        from course.figures.race_page import write_race_page

        write_race_page(result, arguments.page)
    is_whole = set(result.measures) == set(ENTRANTS)
    return 0 if not is_whole or all(holds for _, holds in signs(result.measures)) else 1


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 0 or more")
    return int(text)


def _folder(text: str) -> Path:
    """A folder that is there, refused before the race and not after."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return Path(text)


def _picture(text: str) -> Path:
    """A file that can be written, refused before the race and not after."""
    path = Path(text)
    if path.suffix not in _FORMATS:
        raise argparse.ArgumentTypeError(f"{text}: a picture is {', '.join(_FORMATS)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: there is no folder {path.parent}")
    return path
