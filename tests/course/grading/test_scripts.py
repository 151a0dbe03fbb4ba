"""Checks of parts that keep a state: what they are given, what they say, and the seams that keep the rest."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from course.checks.words import StateWords
from course.curriculum.manifest import EXERCISES
from course.curriculum.messages import text
from course.curriculum.seams import seam, seams, stripped_modules
from course.curriculum.specimens import right_answers
from course.curriculum.stubs import solution, stub
from course.grading.judge import judge
from course.grading.loading import check_of
from tests.support.exercise_modules import exercise_module

SCRIPTED = [each for each in EXERCISES if isinstance(getattr(check_of(each), "words", None), StateWords)]
LESSONS = sorted({each.partition(".")[0] for each in SCRIPTED})
KEEPING = [each for each, wanted in seams().items() if wanted.extends]


def codes_of(module) -> set[str]:
    """What the functions that name beliefs can come to: words with an underscore that are no names of anything else."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.FunctionDef) and re.search("belief|_about|_on_|_how|_what|_elsewhere", node.name):
            found |= {str(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant)}
    return {word for word in found if re.fullmatch("[a-z]+(_[a-z]+)+", word)}


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_belief_has_a_message(lesson):
    missing = []
    every = [exercise_module(each) for each in EXERCISES if each.partition(".")[0] == lesson]
    codes = set().union(*map(codes_of, every))
    assert len(codes) > 15
    for code in sorted(codes):
        found = []
        for exercise in EXERCISES:
            if exercise.startswith(f"{lesson}."):
                try:
                    found.append(text(exercise, "A", code)["says"])
                except KeyError:
                    continue
        if not found:
            missing.append(code)
    assert not missing


@pytest.mark.parametrize("exercise", SCRIPTED)
def test_cases_run_to_their_end_with_the_reference_part_and_are_told(exercise):
    check = check_of(exercise)
    for seed in (1, 2):
        cases = check.cases(seed)
        assert {case.rule for case in cases} == {rule.id for rule in check.rules}
        for case, events in zip(cases, check.expected(cases), strict=True):
            assert all(len(event) == 2 for event in events)
            assert 0 < len(case.ran) < 180
            assert all(check.tell(event) for event in events)
    assert check.cases(1) != check.cases(2)


@pytest.mark.parametrize("exercise", SCRIPTED)
def test_smaller_cases_are_smaller_and_run(exercise):
    check = check_of(exercise)
    case = check.cases(5)[-1]
    smaller = list(check.smaller(case))
    assert smaller
    assert all(len(str(each.ops)) <= len(str(case.ops)) for each in smaller)
    check.expected(smaller)
    assert not list(check.smaller(check.cases(5)[0]))


@pytest.mark.parametrize("exercise", KEEPING)
def test_a_part_that_keeps_the_rest_has_its_own_methods_and_no_reference_to_copy(exercise):
    wanted = seam(exercise)
    assert f"class {wanted.name}({wanted.part}):" in stub(exercise)
    compile(stub(exercise), "stub", "exec")
    for method in wanted.methods:
        assert f"def {method}(" in stub(exercise)
        assert f"def {method}(" in solution(exercise)
        assert f'_reference_method("{wanted.part}.{method}")' in stripped_modules(exercise)[wanted.module]
    assert "__init__" not in solution(exercise)


@pytest.mark.slow
@pytest.mark.parametrize("exercise", KEEPING)
def test_asking_the_reference_part_is_no_answer(exercise):
    wanted = seam(exercise)
    head = "\n".join([*wanted.imports, f"class Mine({wanted.part}):"])
    nothing = judge(exercise, f"{head}\n    pass\n@L.exercise('{exercise}')\nclass More(Mine):\n    pass\n")
    assert nothing.failed_rule.finding.code == "missing_method"
    method = "    def {0}(self, *given):\n        return super().{0}(*given)\n"
    asked = judge(exercise, f"{head}\n{''.join(map(method.format, wanted.methods))}")
    assert asked.failed_rule.finding.code in ("reference_part", "is_a_method")


@pytest.mark.slow
@pytest.mark.parametrize("exercise", KEEPING)
def test_a_method_that_is_still_missing_is_named(exercise):
    wanted = seam(exercise)
    source = right_answers(exercise)[0].source
    report = judge(exercise, re.sub(rf"def {wanted.methods[-1]}\b", "def something_else", source))
    assert report.failed_rule.finding.code == "missing_method"
    assert wanted.methods[-1] in str(report)
