"""`sluice new lesson TITLE`: a lesson of one's own to begin with, which passes every check before a word is changed.

Beside its source there are, once, what a repository needs to check it on each push: a workflow and its requirements.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import unicodedata
from pathlib import Path

from course.author.build import BuildError, build_all
from course.curriculum.own_lessons import FIRST_NUMBER, OwnLessonError, own_lessons
from course.exit_status import PASSED, WRONG_USE
from course.places import own_lessons_folder
from course.version import __version__

__all__ = ["add_arguments", "new_lesson", "run"]

_SOURCE = """\
# %% [markdown] title name=title
# # TITLE
#
# **When you are done** you can say what this lesson is about in one sentence.
#
# MINUTES minutes. You need no other lesson.
#! What stands behind "#!" is for whoever teaches, and in no notebook.
# %% setup name=setup
from course import lesson

L = lesson(NUMBER)
L
# %% [markdown] why name=why
# ## An incident
#
# Six numbers went in, and somebody wanted to know how they travelled. Tell what went wrong in your job instead.
# %% predict name=predict-a
L.predict("NUMBER.a")
# %% figure name=run
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.trace import Trace

job, trace, squares = StreamEnvironment(Config(segment_size_bytes=16, num_buffers=4)), Trace(), []
job.from_collection(range(6)).map(lambda n: n * n).rebalance().sink(squares.append)
Simulation(job, trace=trace).run()
print(squares)
print(*trace, sep="\\n")
# %% [markdown] explain name=explain
# A record is cut where a buffer is full, and goes on in the next one. Each line above is one event of one buffer.
# %% quiz name=quiz-1
L.quiz("NUMBER.q1")
# %% [markdown] recap name=recap
# ## What stays
#
# - Records travel as bytes, in buffers, and each buffer comes home.
"""

_TABLE = """\
title = TITLE
minutes = MINUTES

["NUMBER.a"]
kind = "predict"
ask = "A buffer holds 16 bytes. Can one record be in two of them?"
choices = { a = "yes", b = "no" }
["NUMBER.a".answers]
a = "Right: a record is cut wherever a buffer is full."
b = "Then a record larger than a buffer could never travel. It is cut wherever a buffer is full."

["NUMBER.q1"]
kind = "quiz"
ask = "Where is a buffer when its bytes have been read?"
choices = { a = "in the sink", b = "back in its pool" }
right = "b"
because = "It is recycled: a pool lends the same memory again and again."
"""

_WORKFLOW = """\
# Own lessons: each notebook is what its source makes, and what its code produces today.
name: own lessons
on: [push, pull_request]
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install -r sluice-requirements.txt
      - run: sluice build --check
      # nbval runs each notebook and compares every output with the stored one.
      - run: for each in own-lessons/*.ipynb; do sluice verify "$each"; done
"""

_REQUIREMENTS_FILE = "sluice-requirements.txt"
_REQUIREMENTS = """\
# What the own lessons were made with: `make dist` makes it; put it beside this file. PyPI's `sluice` is another one.
./sluice-{version}-py3-none-any.whl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice new`."""
    kinds = parser.add_subparsers(title="kinds", metavar="KIND", required=True)
    lesson = kinds.add_parser(
        "lesson",
        help="a lesson of your own, in own-lessons",
        description="Make a lesson of your own, with a workflow of GitHub that checks it. Change its source in "
        "own-lessons/src, then `sluice build`. `sluice lab` hands it out with the others.",
    )
    lesson.add_argument("title", metavar="TITLE", type=_title, help="what it is called")
    lesson.add_argument("--number", type=_number, metavar="N", help=f"{FIRST_NUMBER} to 99 (default: the next free)")
    lesson.add_argument("--name", type=_name, metavar="WORD", help="of its file (default: made of the title)")
    lesson.add_argument("--minutes", type=_minutes, default=30, metavar="N", help="how long it takes (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Make it and say where it is; return the exit status."""
    try:
        number, made = new_lesson(arguments.title, arguments.number, arguments.name, arguments.minutes)
        build_all([number])
    except (OwnLessonError, BuildError) as error:
        print(error, file=sys.stderr)
        return WRONG_USE
    except OSError as error:
        print(
            f"{error.filename} cannot be written: {error.strerror}; name another folder in SLUICE_OWN_LESSONS",
            file=sys.stderr,
        )
        return WRONG_USE
    folder = own_lessons_folder()
    notebook = folder / f"{own_lessons()[number].name}.ipynb"
    for file in [*made, notebook]:
        print(f"✓ {file.relative_to(folder.parent)}")
    if folder.parent / _REQUIREMENTS_FILE in made:
        print(f"The workflow installs the wheel that {_REQUIREMENTS_FILE} names: put it there, and push it too.")
    print("Change the source, then `sluice build`; `sluice build --check` says whether the notebook is what it makes.")
    return PASSED


def new_lesson(
    title: str, number: int | None = None, name: str | None = None, minutes: int = 30
) -> tuple[int, list[Path]]:
    """Make source and table of a new lesson, and what checks it; return its number and the files that are new.

    Raises:
        OwnLessonError: the number is taken, all are, or an older lesson of one's own cannot be read.
        OSError: a file cannot be written.
    """
    taken = own_lessons()
    if number is None:
        number = next((each for each in range(FIRST_NUMBER, 100) if each not in taken), None)
    if number is None:
        raise OwnLessonError(f"the numbers {FIRST_NUMBER} to 99 are all taken")
    if number in taken:
        raise OwnLessonError(f"lesson {number} is {taken[number].name} already")
    folder = own_lessons_folder()
    stem = f"{number}_{name or _word_of(title)}"
    words = {"TITLE": title, "NUMBER": str(number), "MINUTES": str(minutes)}
    texts = {
        folder / "src" / f"{stem}.py": _filled(_SOURCE, words),
        folder / "src" / f"{stem}.toml": _filled(_TABLE, words | {"TITLE": json.dumps(title, ensure_ascii=False)}),
        folder.parent / ".github" / "workflows" / "own-lessons.yml": _WORKFLOW,
        folder.parent / _REQUIREMENTS_FILE: _REQUIREMENTS.format(version=__version__),
    }
    made = [file for file in texts if not file.exists()]
    for file in made:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(texts[file], encoding="utf-8")
    return number, made


def _filled(text: str, words: dict[str, str]) -> str:
    """The text with these words put in, all at once: a title may hold another of them."""
    return re.sub("|".join(words), lambda found: words[found[0]], text)


def _word_of(title: str) -> str:
    """A name for a file, of the letters that every system has."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return "_".join(re.findall(r"[a-z0-9]+", plain))[:40].strip("_") or "lesson"


def _title(word: str) -> str:
    if word.strip() and len(word) <= 80 and word.isprintable():
        return word.strip()
    raise argparse.ArgumentTypeError("a title has 1 to 80 letters, on one line")


def _number(word: str) -> int:
    if word.isdecimal() and FIRST_NUMBER <= int(word) <= 99:
        return int(word)
    raise argparse.ArgumentTypeError(f"{word!r} is not a number from {FIRST_NUMBER} to 99; lower ones are the course's")


def _name(word: str) -> str:
    if re.fullmatch(r"[a-z0-9_]{1,40}", word):
        return word
    raise argparse.ArgumentTypeError(f"{word!r} is not 1 to 40 small letters, digits and _")


def _minutes(word: str) -> int:
    if word.isdecimal() and 1 <= int(word) <= 600:
        return int(word)
    raise argparse.ArgumentTypeError(f"{word!r} is not a number of minutes from 1 to 600")
