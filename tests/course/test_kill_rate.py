"""How many small changes of the reference part each grader notices; survivors are argued one by one."""

from __future__ import annotations

import os
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from course_mutants import mutants

from course.grading.judge import judge
from course.manifest import EXERCISES
from course.seams import reference_source, standing_alone

EQUIVALENT = tomllib.loads((Path(__file__).parent / "equivalent_mutants.toml").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("exercise", EXERCISES)
def test_mutants_of_the_reference_part_are_killed(exercise):
    reference = reference_source(exercise)
    assert judge(exercise, standing_alone(exercise, reference)).passed
    found = [(name, standing_alone(exercise, source)) for name, source in mutants(reference)]
    with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        reports = list(pool.map(lambda pair: judge(exercise, pair[1]), found))
    survivors = {name for (name, _), report in zip(found, reports, strict=True) if report.passed}
    excused = EQUIVALENT.get(exercise, {})
    assert set(excused) <= survivors, f"no longer survivors: {set(excused) - survivors}"
    real = len(found) - len(excused)
    killed = len(found) - len(survivors)
    print(f"kill rate of {exercise}: {killed} of {real} that can be noticed; {len(excused)} equivalent")
    assert killed >= 0.95 * real, sorted(survivors - set(excused))
