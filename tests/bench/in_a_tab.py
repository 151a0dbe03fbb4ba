"""Whether the course in a tab says what the terminal says: `python -m tests.bench.in_a_tab`.

Every right part and every known-wrong one is judged in a browser and here, and what is said is compared word for word.
"""

from __future__ import annotations

import argparse
import difflib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from course.curriculum.manifest import EXERCISES
from course.curriculum.specimens import zoo
from course.curriculum.stubs import solution, stub
from course.site.tab.build import build_tab
from tests.bench.program import run_program
from tests.support.lab_pages import GET_ONE, chromium, running_chromium
from tests.support.tab_pages import begun, checked, in_the_terminal, served


def sources(exercise: str, num_wrong: int) -> Iterator[tuple[str, str]]:
    """What is judged, by name: the stub, the reference part and so many known-wrong ones."""
    yield "the stub", stub(exercise)
    yield "the reference part", solution(exercise)
    for each in zoo(exercise)[:num_wrong]:
        yield each.name, each.source


def main() -> int:
    parser = argparse.ArgumentParser("tests.bench.in_a_tab", description=__doc__.splitlines()[0])
    parser.add_argument("exercises", nargs="*", default=list(EXERCISES), metavar="ID", help="these exercises only")
    parser.add_argument(
        "--wrong", type=int, default=10_000, metavar="N", help="at most so many known-wrong parts (all)"
    )
    arguments = parser.parse_args()
    program = chromium()
    if program is None:
        parser.error(GET_ONE)
    num_judged = num_different = 0
    with tempfile.TemporaryDirectory(prefix="sluice-tab-") as made:
        build_tab(Path(made, "try"))
        with served(Path(made, "try")) as server, running_chromium(Path(made, "home"), program) as context:
            page = begun(context.new_page(), server.address)
            for exercise in arguments.exercises:
                for name, source in sources(exercise, arguments.wrong):
                    here, there = in_the_terminal(exercise, source), checked(page, exercise, source)
                    num_judged += 1
                    num_different += here != there
                    sign = "same" if here == there else "OTHER"
                    print(f"{sign:5}  {exercise} {name}: {there.splitlines()[0]}", flush=True)
                    lines = difflib.unified_diff(
                        here.splitlines(), there.splitlines(), "terminal", "tab", n=0, lineterm=""
                    )
                    print(*lines, sep="\n", end="\n" * (here != there), flush=True)
    print(f"{num_judged} parts, {num_different} of which are told something else in a tab")
    return 1 if num_different else 0


if __name__ == "__main__":
    run_program(main)
