"""Lesson 4: answers in many styles, parts in the running job, and rules that learners write."""

from __future__ import annotations

import re

import pytest

from course import swap
from course.curriculum.specimens import right_answers, unseen, zoo
from course.curriculum.stubs import reference_source
from course.grading.judge import judge
from course.grading.loading import check_of
from course.swap.rule import at_the_gate, part_of
from refimpl.records import SpillingAdaptiveSpanningRecordDeserializer
from tests.support.exercise_modules import exercise_module

_HEAD = "from refimpl.records import DeserializationResult as R\n"
_FIRST = right_answers("4.1")[0].source

RIGHT = {
    "iobytes": _HEAD
    + """
import io
class D:
    def __init__(self):
        self.io = io.BytesIO(); self.buf=None
    def set_next_buffer(self, b):
        self.buf = b
        pos = self.io.tell()
        self.io.seek(0, 2); self.io.write(b.data); self.io.seek(pos)
    def get_next_record(self):
        pos = self.io.tell()
        head = self.io.read(4)
        if len(head) == 4:
            n = int.from_bytes(head, "big")
            body = self.io.read(n)
            if len(body) == n:
                rest = len(self.io.getvalue()) - self.io.tell()
                return (R.INTERMEDIATE_RECORD_FROM_BUFFER if rest else R.LAST_RECORD_FROM_BUFFER), body
        self.io.seek(pos)
        return R.PARTIAL_RECORD, None
    def get_current_buffer(self):
        b, self.buf = self.buf, None
        return b
""",
    "numpy_record": _HEAD
    + """
import numpy as np
class D:
    def __init__(self):
        self.a = np.zeros(0, np.uint8); self.buf = None
    def set_next_buffer(self, b):
        self.buf = b
        self.a = np.concatenate([self.a, np.frombuffer(b.data, np.uint8)])
    def get_next_record(self):
        if self.a.size >= 4:
            n = int(self.a[:4].copy().view(">u4")[0])
            if self.a.size >= 4 + n:
                rec, self.a = self.a[4:4+n], self.a[4+n:]
                return (R.INTERMEDIATE_RECORD_FROM_BUFFER if self.a.size else R.LAST_RECORD_FROM_BUFFER), rec
        return R.PARTIAL_RECORD, None
    def get_current_buffer(self):
        b, self.buf = self.buf, None
        return b
""",
    "struct_unpack_from": _HEAD
    + '''
import struct
class D:
    """Slots and type hints."""
    __slots__ = ("held", "at", "current")
    def __init__(self) -> None:
        self.held: bytes = b""
        self.at: int = 0
        self.current = None
    def set_next_buffer(self, buffer) -> None:
        self.held = self.held[self.at:] + bytes(buffer.data)
        self.at = 0
        self.current = buffer
    def get_next_record(self):
        try:
            (size,) = struct.unpack_from(">I", self.held, self.at)
            (record,) = struct.unpack_from(f"{size}s", self.held, self.at + 4)
        except struct.error:
            return R.PARTIAL_RECORD, None
        self.at += 4 + size
        return R.LAST_RECORD_FROM_BUFFER if self.at == len(self.held) else R.INTERMEDIATE_RECORD_FROM_BUFFER, record
    def get_current_buffer(self):
        given = self.current
        self.current = None
        return given
''',
    "reused_array": _HEAD
    + '''
class D:
    """One growing array, used again for each record, as Flink's spanning wrapper does."""
    def __init__(self, threshold=None):
        self.array = bytearray(16); self.filled = 0; self.view = memoryview(b""); self.buffer = None
    def set_next_buffer(self, buffer):
        self.buffer = buffer; self.view = buffer.data
    def _want(self, n):
        if n > len(self.array):
            bigger = bytearray(2 * n); bigger[:self.filled] = self.array[:self.filled]; self.array = bigger
        take = min(n - self.filled, len(self.view))
        self.array[self.filled:self.filled+take] = self.view[:take]
        self.filled += take; self.view = self.view[take:]
        return self.filled == n
    def get_next_record(self):
        if self.filled >= 4 or self._want(4):
            n = int.from_bytes(self.array[:4], "big")
            if self._want(4 + n):
                self.filled = 0
                more = R.INTERMEDIATE_RECORD_FROM_BUFFER if len(self.view) else R.LAST_RECORD_FROM_BUFFER
                return more, memoryview(self.array)[4:4+n]
        return R.PARTIAL_RECORD, None
    def get_current_buffer(self):
        self.view = memoryview(b"")
        b = self.buffer; self.buffer = None
        return b
''',
    "coroutine_of_needs": _HEAD
    + """
def parser():
    while True:
        head = yield from need(4)
        yield "record", (yield from need(int.from_bytes(head, "big")))
def need(n):
    got = b""
    while len(got) < n:
        got += (yield "need", n - len(got))
    return got
class D:
    def __init__(self):
        self.p = parser(); self.state = next(self.p); self.data = b""; self.buffer = None
    def set_next_buffer(self, buffer):
        self.buffer = buffer; self.data = bytes(buffer.data)
    def get_next_record(self):
        while True:
            kind, what = self.state
            if kind == "record":
                self.state = next(self.p)
                return (R.INTERMEDIATE_RECORD_FROM_BUFFER if self.data else R.LAST_RECORD_FROM_BUFFER), what
            if not self.data:
                return R.PARTIAL_RECORD, None
            piece, self.data = self.data[:what], self.data[what:]
            self.state = self.p.send(piece)
    def get_current_buffer(self):
        b, self.buffer = self.buffer, None
        return b
""",
    "match_property": _HEAD
    + """
from refimpl.records import RecordDeserializer
class Base(RecordDeserializer):
    _b = None
    def get_current_buffer(self):
        b = self._b; self._b = None
        return b
@L.exercise("4.1")
class D(Base):
    def __init__(self): self.q = []
    def set_next_buffer(self, buffer):
        self._b = buffer
        self.q.extend(buffer.data)
    def get_next_record(self):
        match self.q:
            case [a, b, c, d, *rest] if len(rest) >= (n := a << 24 | b << 16 | c << 8 | d):
                self.q = rest[n:]
                return (R.INTERMEDIATE_RECORD_FROM_BUFFER if self.q else R.LAST_RECORD_FROM_BUFFER), bytes(rest[:n])
            case _:
                return R.PARTIAL_RECORD, None
""",
}

WRONG = {
    "needs_more_than_a_length": (("if len(self.pending) < 4:", "if len(self.pending) <= 4:"), "G.empty_skipped"),
    "forgets_too_little": (("del self.pending[:end]", "del self.pending[: end - 4]"), "C.last_called_more"),
    "forgets_who_lent_it": (("        self.buffer = buffer\n", ""), "H.buffer_kept"),
    "a_record_of_nothing": (("return R.PARTIAL_RECORD, None", "return R.PARTIAL_RECORD, b''"), "D.empty_made_up"),
    "waits_in_a_loop": (("if len(self.pending) < end:", "while len(self.pending) < end:"), "D.endless"),
    "strips_zeros": (("bytes(self.pending[4:end])", "bytes(self.pending[4:end]).strip(b'\\0')"), "B.bytes_left_out"),
    "three_bytes_of_length": (("self.pending[:4]", "self.pending[1:4]"), "K.long_record"),
    "one_byte_of_length": (('int.from_bytes(self.pending[:4], "big")', "self.pending[3]"), "B.bytes_left_out"),
}


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 70_000])
@pytest.mark.parametrize("seed", [0, 77, 255, 300])
def test_a_large_record_has_the_bytes_that_its_case_says(length, seed):
    wanted = bytes((seed + 7 * i + 13 * (i >> 8)) & 255 for i in range(length))
    assert exercise_module("4.1", "driver").payload([length, seed]) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_deserializer_in_another_style_passes(name):
    report = judge("4.1", RIGHT[name], 7)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_deserializer_is_told_its_belief(name):
    (old, new), code = WRONG[name]
    assert old in _FIRST
    source = _FIRST.replace(old, new + ("\n            pass\n        if False:" if "while" in new else ""), 1)
    source = source.replace(old, new) if "PARTIAL" in old else source
    failed = judge("4.1", source).failed_rule
    assert f"{failed.id}.{failed.finding.code}" == code


# -- in the running job ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize("part", [SpillingAdaptiveSpanningRecordDeserializer, *map(part_of, right_answers("4.1"))])
def test_a_right_deserializer_loses_nothing(part, driver):
    report = swap.run("4.1", part, driver=driver, records=200, segment_size=16)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert report.num_before > 0
    assert report.num_after > 0


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("return None", "TypeError: cannot unpack non-iterable NoneType object"),
        (
            "return R.LAST_RECORD_FROM_BUFFER, None",
            "TypeError: LAST_RECORD_FROM_BUFFER comes with a record, not with None",
        ),
        ("self.buffer.recycle()", "RuntimeError: your part recycled the buffer, which the task does"),
        ("self.buffer = None", "RuntimeError: get_current_buffer gave None, not the buffer it was given"),
    ],
)
@pytest.mark.parametrize("driver", ["simulation", "threads"])
def test_a_deserializer_that_fails_is_taken_out_and_nothing_is_lost(does, why, driver):
    line = "    def get_next_record(self):\n"
    source = _FIRST.replace(
        line,
        f"{line}        self.calls = getattr(self, 'calls', 0) + 1\n        if self.calls == 30:\n            {does}\n",
    )
    part = part_of(type(right_answers("4.1")[0])("fails", "", source))
    report = swap.run("4.1", part, driver=driver)
    assert report.taken_out[0] == why
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


def test_a_deserializer_that_asks_for_ever_is_taken_out():
    (whole,) = [each for each in zoo("4.1") if each.name == "w14_whole_segment"]
    reports = [swap.run("4.1", part_of(whole), records=records) for records in range(100, 600, 100)]
    assert all((report.num_lost, report.is_equal) == (0, True) for report in reports)
    reasons = {report.taken_out[0] for report in reports if report.taken_out}  # what lies behind the end is chance
    assert reasons == {"RuntimeError: the buffer is read to its end, and your part wants to be asked again"}


# -- rules -------------------------------------------------------------------------------------------


def test_the_gate_keeps_out_what_the_rule_turns_down_and_shows_what_it_let_in():
    closed = swap.run("4.2", None, records=200)
    assert (closed.num_kept_out, closed.num_wrong, closed.is_learners) == (3, 3, False)
    opened = swap.run("4.2", lambda read: True, records=200)
    assert (opened.num_kept_out, opened.is_learners) == (0, True)
    assert sum("✗" in line for line in opened.lines) == 3
    assert repr(opened).count("none lost") == 1


def test_a_rule_that_raises_lets_nobody_in():
    report = at_the_gate("4.2", lambda read: 1 / 0, "4.1", lambda part: None, is_learners=True)
    assert report.num_kept_out == 3
    assert all("kept out" in line for line in report.lines)


@pytest.mark.slow
def test_every_unseen_part_is_what_it_is_said_to_be():
    assert len(unseen("4.2")) >= 6
    for each in unseen("4.2"):
        report = judge("4.1", each.source)
        assert report.failed_rule is not None, each.name
        assert report.failed_rule.id not in "SA", each.name
        assert each.source not in {known.source for known in zoo("4.1")}


def test_the_seed_chooses_the_parts_a_rule_is_tried_on():
    check = check_of("4.2")
    chosen = {tuple(each.name for part in check.chosen(seed) for each in part) for seed in range(30)}
    assert len(chosen) > 20
    assert all(len(names) == 5 for names in chosen)
    assert check.chosen(3) == check.chosen(3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_good_rule_passes_whatever_the_seed(seed):
    for each in right_answers("4.2"):
        assert judge("4.2", each.source, seed).passed, each.name


@pytest.mark.slow
def test_a_rule_with_a_mistake_of_its_own_is_told_its_line():
    report = judge("4.2", "def records_come_back(read):\n    return read([b'']) == totals\n")
    assert report.failed_rule.finding.code == "unknown_name"
    report = judge("4.2", "def records_come_back(read, pieces):\n    return True\n")
    assert (report.failed_rule.id, report.failed_rule.finding.code) == ("A", "called_otherwise")
    report = judge("4.2", "def records_come_back(read):\n    return read(b'\\0\\0\\0\\0') == []\n")
    assert report.failed_rule.id == "A"
    assert "read takes a list of bytes" in report.failed_rule.message
    assert "your line" in report.failed_rule.message


REMEMBERS = [
    "verdicts = []\ndef rule(read):\n    verdicts.append(holds(read))\n    return all(verdicts)\n",
    "def rule(read, verdicts=[]):\n    verdicts.append(holds(read))\n    return any(verdicts)\n",
    "it = None\ndef rule(read):\n    global it\n    it = holds(read) if it is None else it\n    return it\n",
]
HOLDS = """
def holds(read):
    return [each for _, each in read([b"\\0\\0\\0\\5he", b"llo"])][-1:] == [b"hello"] and tells(read)

def tells(read):
    stream = b"\\0\\0\\0\\5hello\\0\\0\\0\\0\\0\\0\\0\\2hi" * 3
    cuts = [[stream[start : start + size] for start in range(0, len(stream), size)] for size in range(1, 30)]
    return all([each for _, each in read(pieces) if each is not None] == [b"hello", b"", b"hi"] * 3 for pieces in cuts)
"""


def mark(rule):
    """The source with the function `rule` marked as the one to check."""
    return rule.replace("def rule", "@L.exercise('4.2')\ndef rule")


@pytest.mark.slow
@pytest.mark.parametrize("rule", REMEMBERS)
def test_a_verdict_that_is_kept_from_one_part_to_the_next_is_told_as_such(rule):
    report = judge("4.2", HOLDS + mark(rule))
    assert (report.failed_rule.id, report.failed_rule.finding.code) == ("A", "remembers"), str(report)
    assert "what of yours outlives the call" in report.failed_rule.message


@pytest.mark.slow
@pytest.mark.parametrize(
    "too_much", ["assert len(answers) == 1, answers", "def asks():\n        assert not answers\n    asks()"]
)
def test_an_assertion_that_fails_of_a_right_part_is_told_its_line(too_much):
    rule = f"def rule(read):\n    answers = read([b'\\0\\0\\0\\1ab'])\n    {too_much}\n    return True\n"
    report = judge("4.2", rule)
    line = next(number for number, text in enumerate(rule.splitlines(), 1) if "assert" in text)
    finding = report.failed_rule.finding
    assert (report.failed_rule.id, finding.line) == ("B", line), str(report)
    assert re.search(rf"your line +{line} > assert", str(report))


def test_the_reference_part_is_shown_without_what_the_exercise_does_not_need():
    shown = reference_source("4.1")
    compile(shown, "shown", "exec")
    assert "def get_next_record" in shown
    assert "def _take_gathered" in shown
    assert "def peek" not in shown
    assert "# --" not in shown
    assert "\n\n\n" not in shown
