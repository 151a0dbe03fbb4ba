"""Exercises whose part is a few methods of an engine's class: stubs, what a child may use, beliefs, and the swap."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import types

import pytest

from course import swap
from course.checks import segments
from course.checks.transcript import TranscriptCheck
from course.curriculum.messages import text
from course.curriculum.seams import stripped_modules
from course.curriculum.specimens import right_answers
from course.curriculum.stubs import reference_source, solution, stub
from course.grading.judge import judge
from course.grading.loading import check_of
from course.grading.rules import Case, Seen
from refimpl.memory import LocalBufferPool, MemorySegment, NetworkBufferPool
from tests.support.exercise_modules import exercise_module

SHARES, POOL = exercise_module("2.2"), exercise_module("2.3")
EXERCISES = ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]
NAMES = ("Segment", "S", "CountedBuffer", "Counted", "share_out", "Pool", "Mine")


def part_of(source: str):
    """What a cell with this source leaves behind."""
    file = f"<cell {hash(source)}>"
    sys.modules.setdefault("cell", types.ModuleType("cell"))  # where a dataclass looks
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    lesson = types.SimpleNamespace(exercise=lambda _: lambda part: part)
    names: dict[str, object] = {"__name__": "cell", "L": lesson}
    exec(compile(source, file, "exec"), names)
    return next(names[name] for name in NAMES if getattr(names.get(name), "__module__", "") == "cell")


# -- stubs and solutions -----------------------------------------------------------------------------


def test_a_stub_derives_from_the_part_and_has_only_what_is_to_be_written():
    made = stub("2.1")
    assert "class CountedBuffer(Buffer):" in made
    methods = [node.name for node in ast.walk(ast.parse(made)) if isinstance(node, ast.FunctionDef)]
    assert methods == ["retain", "recycle"]
    assert reference_source("2.1").startswith("class CountedBuffer(Buffer):\n    def retain(self)")
    assert "from refimpl.memory.buffer import Buffer" in solution("2.1")


def test_a_child_has_the_class_without_the_methods_of_this_exercise_and_later_ones():
    segment = stripped_modules("1.2")["refimpl.memory.segment"]
    assert 'get_int = _reference_method("MemorySegment.get_int")' in segment
    assert 'copy_to = _reference_method("MemorySegment.copy_to")' in segment
    assert "def window(self" in segment  # of 1.1, which comes before
    assert "def _put(" not in segment  # the answer under another name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "body", "rule", "says"),
    [
        ("1.1", "def window(self, *n): return super().window(*n)", "A", "reference part"),
        ("1.2", "def put_int(self, *n): self._put(n[0], 'i', n[2], n[1])\n    get_int = put_int", "A", "reference"),
        ("1.3", "pass", "S", "has no method of its own called: copy_to"),
        ("2.3", "def take_segment(self): return None", "S", "set_num_buffers, take_back"),
    ],
)
def test_the_engine_s_own_method_is_no_answer(exercise, body, rule, says):
    base = "LocalBufferPool" if exercise == "2.3" else "MemorySegment"
    report = judge(exercise, f"from refimpl.memory import {base}\n\nclass Mine({base}):\n    {body}\n")
    assert report.failed_rule is not None
    assert report.failed_rule.id == rule
    if exercise == "2.3":
        assert "take_back" in report.failed_rule.message
    else:
        assert says in report.failed_rule.message


# -- beliefs -----------------------------------------------------------------------------------------


def codes_in(module) -> set[str]:
    """Every word a diagnosing function returns, or has in a table of beliefs."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith(("_about", "about")):
            inside = [n for place in ast.walk(node) if isinstance(place, ast.Return) for n in ast.walk(place)]
            found |= {n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return {word for word in found if word.replace("_", "").isalpha() and word.islower() and "_" in word}


@pytest.mark.parametrize("lesson", ["1", "2"])
def test_every_code_has_a_message(lesson):
    modules = [exercise_module(each) for each in EXERCISES if each.partition(".")[0] == lesson]
    codes = set().union(*map(codes_in, [*modules, *([segments] if lesson == "1" else [])])) - {"get_int", "put_int"}
    codes |= set(SHARES._WAYS) if lesson == "2" else set()
    assert len(codes) > 25
    for code in codes:
        found = 0
        for exercise in (each for each in EXERCISES if each.partition(".")[0] == lesson):
            try:
                found += bool(text(exercise, "A", code)["says"])
            except KeyError:
                continue
        assert found, code


@pytest.mark.parametrize("exercise", EXERCISES)
def test_what_no_driver_writes_is_a_difference_and_no_crash(exercise):
    check = check_of(exercise)
    case = check.cases(7)[0]
    (expected,) = check.expected([case])
    rule = check.rules[0]
    odd = {"answer": "x", "size": "many", "references": "-", "memory": "zz"}
    for forged in ({}, {"answer": "!"}, {"twice": "1"}, odd):
        events = [*expected[:-1], [expected[-1][0], forged]]
        finding = check.compare(rule, case, Seen(events, None), expected)
        assert finding is not None
        assert text(exercise, rule.id, finding.code)["says"]
        assert check.tell(events[-1])
    assert check.compare(rule, case, Seen([["x", "y"]], None), expected) is not None


def test_repeated_calls_are_told_once_and_shrunk_cases_make_sense():
    check = check_of("2.3")
    assert "4 × request_buffer()" in next(case.ran for case in check.cases(7) if case.rule == "G")
    case = Case("K", [["new", 4, 1, 3], ["request"], ["back", 0], ["request"], ["size", 2]], "")
    for smaller in check.smaller(case):
        assert POOL.makes_sense(smaller.ops)
    assert not POOL.makes_sense([["new", 4, 1, 3], ["back", 0]])
    assert isinstance(check, TranscriptCheck)


# -- into the running job ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize("exercise", EXERCISES)
def test_right_parts_lose_nothing_and_are_really_called(exercise, driver):
    for specimen in right_answers(exercise):
        report = swap.run(exercise, part_of(specimen.source), driver=driver, records=200)
        assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), ""), specimen.name
        assert report.num_calls > 3
    ours = swap.run(exercise, driver=driver, records=200)
    assert (ours.num_lost, ours.is_equal, ours.error) == (0, True, "")


def failing(source: str, method: str) -> str:
    """The same source, whose method raises in its tenth call, with its work half done."""
    head, line, rest = source.partition(f"    def {method}(")
    signature, _, body = rest.partition("\n")
    count = f"        calls.append(1)\n        if len(calls) == 10:\n            {HALF[method]}1 / 0\n"
    return "calls = []\n\n" + head + line + signature + "\n" + count + body


HALF = {
    "window": "", "copy_to": "", "put_int": "", "recycle": "", "retain": "",
    "take_segment": "self.idle and self.idle.popleft(); self.global_pool.request_segment(); ",
    "take_back": "self.num_requested += 7; self.global_pool.recycle_segment(segment); ",
    "set_num_buffers": "self.idle.clear(); ",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize(
    ("exercise", "method"),
    [("1.1", "window"), ("1.2", "put_int"), ("1.3", "copy_to"), ("2.1", "recycle"), ("2.1", "retain"),
     ("2.3", "take_segment"), ("2.3", "take_back")],
)  # fmt: skip
def test_a_part_that_raises_is_taken_out_and_nothing_is_lost(exercise, method, driver):
    source = {"2.1": "r01_is_recycled", "2.3": "r01_last_in_first_out"}.get(exercise)
    chosen = next(
        each for each in right_answers(exercise) if source in (None, each.name) and "def " + method in each.source
    )
    report = swap.run(exercise, part_of(failing(chosen.source, method)), driver=driver, records=200)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


@pytest.mark.slow
@pytest.mark.parametrize("shares", ["[99] * len(appetites)", "[]", "None", "[-1] * len(appetites)", "1 / 0"])
def test_a_formula_that_promises_too_much_is_taken_out(shares):
    report = swap.run("2.2", part_of(f"def share_out(num_free, appetites):\n    return {shares}\n"), records=200)
    assert report.taken_out
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


# -- the engine's own parts --------------------------------------------------------------------------


def test_the_parts_can_be_changed_in_one_pool_alone():
    pool = NetworkBufferPool(10, 8)
    pool.promises.share_out = lambda num_free, appetites: [0 for _ in appetites]
    assert LocalBufferPool(pool, 2, 8).size == 2
    assert LocalBufferPool(NetworkBufferPool(10, 8), 2, 8).size == 8


def test_a_window_is_the_memory_itself():
    segment = MemorySegment.allocate(4)
    segment.window(1, 2)[:] = b"ab"
    assert segment.get(0, 4) == b"\0ab\0"
