"""One rule of all exercises for the kinds of values: what counts is the value, not the class it has.

The rule is in `course/grading/kinds.py`, and no driver has another. Only 0.1 asks for the very kinds, since the type of
a record decides how it is written.
"""

from __future__ import annotations

import array
import re
from pathlib import Path

import numpy as np
import pytest

import course
from course.checks import drive_calls
from course.curriculum.folders import table
from course.grading.judge import judge
from course.grading.kinds import members, octets, own, plain, whole

NP = "__import__('numpy')"
GET = 'return struct.unpack(order.value + "i", self.window(index, 4))[0]'
SHARES = "    return shares\n"
PLACE = "return group * self.num_channels // self.max_parallelism"
FRAME = 'return struct.pack(">iIB", 9 + len(body), 0xBADC0FFE, frame_id) + body'
CUT = "frame = bytes(self.gathered[:length])"
RECORD = "record = bytes(self.pending[4:end])"
LAST = "return R.LAST_RECORD_FROM_BUFFER, record"
NEXT = "self.expected = number + 1 if number < 2**31 - 1 else -(2**31)"
OUT = "self.num_handed_out += num_bytes"
PAIR = 'return flight["origin"], max(0, flight["dep_delay_minutes"])'


def number(line, kind="int64"):
    """The same line, whose value is one of numpy's."""
    start, sign, value = line.partition("return " if line.startswith("return ") else "= ")
    return f"{start}{sign}{NP}.{kind}({value})"


AS_GOOD = [
    ("1.2", GET, number(GET)),
    ("2.2", SHARES, "    return tuple(shares)\n"),
    ("2.2", SHARES, "    return iter(shares)\n"),
    ("2.2", SHARES, f"    return {NP}.array(shares)\n"),
    ("2.2", SHARES, f"    return [{NP}.int64(each) for each in shares]\n"),
    ("4.1", RECORD, RECORD.replace("bytes", "bytearray")),
    ("4.1", RECORD, RECORD.replace("bytes(", "memoryview(b'' + ")),
    ("4.1", LAST, "return [R.LAST_RECORD_FROM_BUFFER, record]"),
    ("5.1", PLACE, number(PLACE)),
    ("6.2", "    return chains\n", "    return {head: tuple(each) for head, each in chains.items()}\n"),
    ("9.1", FRAME, FRAME.replace("return ", "return bytearray(") + ")"),
    ("9.1", FRAME, FRAME.replace("return ", "return memoryview(") + ")"),
    ("9.2", CUT, CUT.replace("bytes", "bytearray")),
    ("9.2", CUT, CUT.replace("bytes(", "memoryview(b'' + ")),
    ("9.3", NEXT, number(NEXT)),
    ("10.1", OUT, f"self.num_handed_out = {NP}.int64(self.num_handed_out + num_bytes)"),
    ("11.2", "self.credit += credit", f"self.credit = {NP}.int64(self.credit + credit)"),
    ("11.2", "return taken, more", "return [taken, more]"),
]
OTHERS = [
    ("0.1", PAIR, PAIR.replace("return ", "return [") + "]"),
    ("0.1", PAIR, f'return flight["origin"], {NP}.int64(max(0, flight["dep_delay_minutes"]))'),
    ("1.2", GET, GET.replace("return ", "return float(") + ")"),
    ("1.2", GET, number(GET, "int32")),
    ("5.1", PLACE, number(PLACE, "uint8")),
    ("9.3", NEXT, number(NEXT, "int32")),
    ("2.2", SHARES, "    return [bool(each) if each < 2 else each for each in shares]\n"),
    ("2.2", SHARES, "    return [float(each) for each in shares]\n"),
    ("5.1", PLACE, PLACE.replace("return ", "return float(") + ")"),
    ("9.1", FRAME, FRAME.replace("return ", "return (").replace("+ body", "+ body).decode('latin1')")),
    ("9.1", FRAME, FRAME.replace("return ", "return list(") + ")"),
    ("9.2", CUT, CUT + ".decode('latin1')"),
    ("9.3", NEXT, NEXT.replace("= ", "= float(") + ")"),
]


def with_line(exercise, line, other):
    source = table(exercise, "answers.toml")["right"]["plain"]["source"]
    assert source.count(line) == 1
    return source.replace(line, other)


@pytest.mark.parametrize(("exercise", "line", "other"), AS_GOOD)
def test_a_value_of_another_kind_is_as_good(exercise, line, other):
    report = judge(exercise, with_line(exercise, line, other))
    assert report.passed, str(report)


@pytest.mark.parametrize(("exercise", "line", "other"), OTHERS)
def test_what_is_another_value_is_refused(exercise, line, other):
    report = judge(exercise, with_line(exercise, line, other))
    assert not report.passed


@pytest.mark.parametrize("value", [5, np.int64(5), np.uint8(5), np.int32(5), np.array(5), True + 4])
def test_a_whole_number_may_be_of_any_kind_that_it_goes_on_in(value):
    assert whole(value) == 5
    assert type(whole(value)) is int


@pytest.mark.parametrize("value", [
    True, np.True_, 5.0, np.float64(5), "5", b"5", None, [5], np.array([5]),
    np.int32(2**30), np.int32(-(2**30) - 1), np.uint8(128), np.int64(2**62), np.uint64(2**63),
])  # fmt: skip
def test_what_is_no_whole_number_or_would_overflow(value):
    assert whole(value) is None


def test_the_largest_numbers_that_still_go_on():
    for kind in (np.int8, np.uint16, np.int32, np.int64, np.uint64):
        most = int(np.iinfo(kind).max) // 2
        assert whole(kind(most)) == most
        assert whole(kind(most + 1)) is None
    assert whole(2**70) == 2**70


def test_bytes_lists_and_truths():
    assert [octets(each) for each in (b"a", bytearray(b"a"), memoryview(b"a"))] == [b"a"] * 3
    assert [octets(each) for each in ("a", [97], None)] == [None] * 3
    assert [members(each) for each in ([1], (1,), iter([1]), np.array([1]), array.array("b", [1]))] == [[1]] * 5
    assert [members(each) for each in ("a", b"a", {1: 2}, 5, None)] == [None] * 5
    assert own(np.True_) is True
    assert own(np.float32(0.5)) == 0.5


def test_the_generic_driver_takes_lists_of_any_kind_and_numbers_in_them():
    wanted = ["list", [["int", "1"], ["bytes", "61"], ["list", [["int", "2"]]]]]
    for value in ([1, b"a", [2]], (1, b"a", (2,)), iter([np.int64(1), bytearray(b"a"), np.array([2])])):
        assert drive_calls.plain(value) == wanted
    assert drive_calls.plain({2, 1}) == ["set", [["int", "1"], ["int", "2"]]]
    assert drive_calls.plain({1: (2,)}) == ["dict", [[["int", "1"], ["list", [["int", "2"]]]]]]
    assert drive_calls.plain(np.array([2**31 - 1], np.int32)) == ["list", [["object", "int32"]]]


def test_the_generic_driver_looks_again_at_what_can_be_gone_through_once():
    events: list = []
    drive_calls.run_case(lambda n: iter(range(n)), [["call", "", 2], ["look", 1]], events)
    assert [event[1]["answer"] for event in events] == [["list", [["int", "0"], ["int", "1"]]]] * 2


def test_no_driver_has_a_rule_of_its_own():
    root = Path(course.__file__).parent
    drivers = [*root.glob("checks/drive_*.py"), *root.glob("exercises/*/driver.py")]
    assert len(drivers) > 10
    own_rule = re.compile(r"__index__|operator\.index|\"numpy\"|isinstance\([^)]*\b(bytearray|memoryview)\b")
    lines = [f"{file.name}: {line.strip()}" for file in drivers for line in file.read_text().splitlines()]
    found = [line for line in lines if own_rule.search(line)]
    assert found == ["drive_segments.py: if isinstance(given, memoryview) and given.nbytes == length:"]


def test_a_plain_value_is_what_python_prints_and_an_object_is_its_type_only():
    assert [plain(each) for each in (None, True, np.bool_(False), 7, np.int64(7))] == [None, True, False, 7, 7]
    assert [plain(each) for each in (1.5, "7", [7])] == ["?float", "?str", "?list"]
