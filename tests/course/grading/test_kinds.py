"""One rule of all exercises for the kinds of values: what counts is the value, not the class it has.

A whole number may be any that Python takes for one, numpy's too; bytes may be a bytearray or a memoryview; a list or
a pair may be a tuple or a list. A truth value or a float is no whole number, and a text is no bytes. Only 0.1 asks for
the very kinds, since the type of a record decides how it is written.
"""

from __future__ import annotations

import pytest

from course.curriculum.folders import table
from course.grading.judge import judge

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
    ("1.2", GET, number(GET, "int32")),
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
    ("9.3", NEXT, number(NEXT, "int32")),
    ("10.1", OUT, f"self.num_handed_out = {NP}.int64(self.num_handed_out + num_bytes)"),
    ("11.2", "self.credit += credit", f"self.credit = {NP}.int64(self.credit + credit)"),
    ("11.2", "return taken, more", "return [taken, more]"),
]
OTHERS = [
    ("0.1", PAIR, PAIR.replace("return ", "return [") + "]"),
    ("0.1", PAIR, f'return flight["origin"], {NP}.int64(max(0, flight["dep_delay_minutes"]))'),
    ("1.2", GET, GET.replace("return ", "return float(") + ")"),
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
