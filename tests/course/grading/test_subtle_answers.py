"""Wrong answers that only a job would show: state that outlives a call, a leak, a wake-up too early, other keys.

Each is the reference part with one thing changed. A check is not written for them, but must ask so much that they are
found.
"""

from __future__ import annotations

import pytest

from course.curriculum.seams import child_job
from course.curriculum.stubs import solution
from course.grading.judge import judge
from course.grading.rules import Status
from course.grading.runner import Grader, Limits

HEADER = "def to_departure(flight: dict[str, Any])"
REMEMBERED = 'seen.setdefault(flight["event_time_ms"], flight["origin"]), max('
ONE_HOME = "Counted = CountedBuffer; Counted.home = getattr(Counted, 'home', self.recycler); Counted.home."
ROOM_FIRST = """self.on_room_changed()
        self.size = min(num_buffers, self.num_max)"""
COPY = "self._position += builder.append"
FULL_FIRST = f"""if builder.is_full:
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        {COPY}"""
DONE_FIRST = f"""if not self.has_serialized_data:
            return SerializationResult.FULL_RECORD
        {COPY}"""
SET = "        self._buffer = buffer\n        self._view"
SET_FOR_ALL = "        type(self)._buffer = buffer\n        vars(self).pop('_buffer', None)\n        self._view"
RANGES = "return key_group * self.num_channels // self.max_parallelism"
GROUPS = "# `key_group_of`"
LARGER_FIRST = """wide, more = divmod(self.max_parallelism, self.num_channels)
        many = more * (wide + 1)
        return key_group // (wide + 1) if key_group < many else more + (key_group - many) // wide"""
WINDOW = "return self.view[index : index + length]"
DONE = "            if result.is_full_record:\n                self.remaining.popleft()\n"
SAID = "self.after_record(channel)\n"

DELAY = 'flight["dep_delay_minutes"]'
LATE = f"max(0, {DELAY})"
WHOLE = "target.window(target_index, length)[:] = self.window(index, length)"
IN_PIECES = """target.window(target_index, length)
        for at in range(0, length, 64):
            piece = bytes(self.window(index, length)[at : at + 64])
            target.window(target_index + at, len(piece))[:] = piece"""
COUNTED = "self.num_handed_out += num_bytes"
SCRATCH = """SHOWN = bytearray(1000)
def shown(record):
    SHOWN[:len(record)] = record
    return memoryview(SHOWN)[:len(record)]
@L."""

AGAIN = """    def again(self, record):
        self.array[:len(record)] = record
        return memoryview(self.array)[:len(record)]

    def _result(self"""

WRONG = [
    # what is kept meets the next call, or the next object
    ("0.1", [(HEADER, "def to_departure(flight, seen={})"), ('flight["origin"], max(', REMEMBERED)], "remembers"),
    ("1.1", [(WINDOW, f"vars(WindowSegment)['kept'].setdefault((index, length), {WINDOW.removeprefix('return ')})"),
             ("    def window", "    kept = {}\n    def window"), ("vars(", "return vars(")], "outlives"),
    ("2.1", [("self.recycler.", ONE_HOME)], "outlives"),
    ("2.2", [("appetites: Sequence[int])", "appetites, shares=[])"), ("    shares: list[int] = []\n", "")],
     "overwrites_earlier"),
    ("2.2", [("    limits =", "    calls.append(1)\n    len(calls) > 40 and __import__('os')._exit(0)\n    limits ="),
             ("from collections", "calls = []\nfrom collections")], "outlives"),
    ("4.1", [(SET, SET_FOR_ALL)], "other_buffer"),
    ("5.1", [("    def channel", "    @lru_cache\n    def channel"),
             ("from refimpl.producer.selector", "from functools import lru_cache\nfrom refimpl.producer.selector")],
     "not_as_it_is"),
    # what is raised keeps its text
    ("1.2", [('unpack(order.value + "i"', 'unpack(order.value + "q"')], "raised"),
    ("1.2", [('struct.pack_into(order.value + "i", self.window(index, 4), 0, value)',
              'self.window(index, 4)[:] = struct.pack(order.value + "q", value)')], "raised"),
    # others still read
    ("2.1", [("self.num_references -= 1", "self.num_references -= 1; self.size = 0")], "changes_what_is_read"),
    ("2.1", [("self.num_references -= 1", "self.num_references -= 1; self.memory[:] = bytes(8)")], None),
    # told before there is anything
    ("2.3", [("self.size = min(num_buffers, self.num_max)", ROOM_FIRST)], "told_too_soon"),
    ("2.3", [("num_buffers < self.num_required", "not self.num_required <= num_buffers <= self.num_max")],
     "refuses_to_grow"),
    # nothing is left, and the buffer is full
    ("3.1", [(COPY, FULL_FIRST)], None),
    ("3.1", [(COPY, DONE_FIRST)], "full_and_nothing_left"),
    # the buffer never comes home
    ("4.1", [(SET, SET.replace("= buffer", "= buffer.retain()"))], "buffer_retained"),
    ("4.1", [("return buffer\n", "return buffer and buffer.retain()\n")], "buffer_retained"),
    ("4.1", [("return buffer\n", "buffer and buffer.recycle()\n        return buffer\n")], "recycled_by_itself"),
    # a record is not what it was when it was handed out: another deserializer has the same array
    ("4.1", [("return self._result(), self._view[start : self._position]",
              "return self._result(), shown(self._view[start : self._position])"),
             ("@L.", SCRATCH)], "shared_by_all"),
    # a verdict by where the part stands, and no verdict at all
    ("4.2", [("    records =", "    asked.append(1)\n    return len(asked) <= 2\n    records ="),
             ("from collections", "asked = []\nfrom collections")], None),
    ("4.2", [("return True", "return 'True'")], "other_verdict"),
    # ranges, keys
    ("5.1", [(RANGES, LARGER_FIRST)], "larger_first"),
    ("5.1", [("code(key, ", "code(int(key) if isinstance(key, float) else key, ")], "not_as_it_is"),
    # right for some keys: no belief that fits one of them is named
    *[("5.1", [(GROUPS, f"return {other}\n        {GROUPS}")], "different") for other in (
        "0", "1", "min(key % 2, 1)", "key % self.num_channels if key == 1 else 0", "(3, 0, 0, 1)[key % 4]")],
    ("5.1", [(RANGES, "return (key_group * self.num_channels // self.max_parallelism - 1) % self.num_channels")],
     "different"),
    ("5.1", [(RANGES, f"{RANGES} if key != 'LGA' else 3")], "different"),
    ("5.1", [("code(key, ", "code(key[::-1] if isinstance(key, str) else key, ")], "own_hash"),
    ("5.1", [(RANGES, f"{RANGES} if self.key_type is None else 0")], "different"),
    ("5.1", [("self.key_type", "None")], "type_ignored"),
    ("5.1", [(GROUPS, f"if isinstance(key, int) and key > 2**41: return 0\n        {GROUPS}")], "different"),
    # a frame that is handed out while nothing should be
    ("10.1", [(COUNTED, f"if not self.is_writable:\n            return\n        {COUNTED}")], "stopped_not_counted"),
    ("10.1", [(COUNTED, f"if not self.is_writable:\n            raise ValueError('stopped')\n        {COUNTED}")],
     "raised"),
    # right for the sizes that a check usually shows
    *[("0.1", [(LATE, late)], "arithmetic") for late in (f"min(1440, {LATE})", f"{LATE} % 2048")],
    ("0.1", [(LATE, f"({LATE} or (-{DELAY} if {DELAY} < -60 else 0))")], "absolute"),
    ("1.1", [(WINDOW, WINDOW.replace("length", "(length & 255)"))], "other_bytes"),
    ("1.1", [(WINDOW, "i = index & 255; return self.view[i : i + length]")], "other_bytes"),
    ("1.1", [(WINDOW, f"self.size = self.size if length else index; {WINDOW}")], "refuses_the_last"),
    ("1.2", [("self.window(index, 4), 0, value", "self.view, self.window(index, 4) and index & 255, value")],
     "other_bytes"),
    ("1.3", [(WHOLE, IN_PIECES)], "overlap_smeared"),
    ("1.3", [(WHOLE, WHOLE.replace("length", "length % 256"))], "other_bytes"),
    ("2.1", [("self.num_references += 1", "self.num_references = min(100, self.num_references + 1)")],
     "retain_counts_nothing"),
    ("2.2", [("in limits:", "in [*limits[:8], *[0] * len(limits[8:])]:")], "loses"),
    ("6.2", [("in graph.in_edges(node.id)", "in [e for e in graph.edges if e.target is node.id]")], "splits_chains"),
    ("6.2", [("if can_chain(edge)", "if can_chain(edge) and len(chains[head_of[edge.source]]) < 10")], "splits_chains"),
    ("6.3", [("record.timestamp)", "record.timestamp if (record.timestamp or 0) >= 0 else None)")], "time_lost"),
    ("6.3", [("tag == self.tag", "self.tag and tag.name.startswith(self.tag.name)")], "copies_in_vain"),
    ("10.1", [(COUNTED, "self.num_handed_out = (self.num_handed_out + num_bytes) % 2**31")], "count_wrong"),
    ("10.1", [("> self.high_bytes", "> self.high_bytes and num_bytes > 1")], "never_stops"),
    ("11.2", [("self.credit += credit", "self.credit = (self.credit + credit) & 255")], "credit_wrong"),
    ("2.3", [("self.num_requested >= self.size", "self.num_requested >= min(self.size, 16)")], None),
    ("2.3", [("while self.idle and", "for _ in range(4 if self.idle else 0):\n            if"),
             ("> self.size:\n            self", "> self.size:\n                self")], "keeps_idle"),
    ("2.3", [("while not self.is_destroyed and self.num_requested <= self.size:",
              "for _ in range(9):\n            if self.is_destroyed or self.num_requested > self.size: break")], None),
    ("5.1", [("code(key, ", "code(key.strip() if isinstance(key, str) else key, ")], "text_changed"),
    ("5.1", [("code(key, ", "code(key.upper() if isinstance(key, str) else key, ")], "text_changed"),
    ("5.1", [("code(key, ", "code(key[:9] if isinstance(key, str) else key, ")], "text_changed"),
    ("5.1", [(RANGES, "return int(key_group * (self.num_channels / self.max_parallelism))")], "fraction_first"),
    ("7.1", [("return self.num_data_buffers if", "return min(10, self.num_data_buffers) if")], None),
    ("7.1", [("while self.queue and not self.is_blocked:",
              "for _ in range(9):\n            if not self.queue or self.is_blocked: break")], "stops_at_empty"),
    ("11.1", [("= backlog + self", "= min(40, backlog) + self")], "wanted_wrong"),
    # the first operator of a job has the id 0
    ("6.1", [("return (", "return bool(edge.source and edge.target) and (")], "zero_is_nothing"),
    ("6.2", [("[node.id] = head", "[node.id] = head = head or node.id")], "zero_is_nothing"),
    # a record that goes on, and one that is over
    ("5.2", [(f"{DONE}                {SAID}", f"            {SAID}{DONE}")], "announced_in_the_middle"),
    ("5.2", [("if self.remaining:\n                    self.record.reset()", "self.record.reset()")],
     "reset_at_the_end"),
]  # fmt: skip


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize(("exercise", "changes", "code"), WRONG)
def test_one_thing_changed_is_found(exercise, changes, code):
    source = solution(exercise)
    for line, other in changes:
        assert line in source
        source = source.replace(line, other, 1)
    report = judge(exercise, source)
    assert report.status not in (Status.PASSED, Status.NOT_STARTED), str(report)
    assert report.failed_rule is not None
    assert report.failed_rule.id != "S", str(report)
    assert report.failed_rule.finding is not None
    assert code in (None, report.failed_rule.finding.code), str(report)


SLOWER = """from time import process_time
calls = []
def slower():
    calls.append(1)
    until = process_time() + 0.001 * max(0, len(calls) - 25) ** 2
    while process_time() < until:
        pass
"""


def test_what_is_too_slow_for_the_last_rules_in_one_program_does_not_pass():
    source = SLOWER + solution("0.1").replace("    return flight", "    slower()\n    return flight")
    grader = Grader(child_job("0.1"), Limits(case_seconds=1.0, run_seconds=0.6))
    assert judge("0.1", solution("0.1"), grader=grader).passed
    report = judge("0.1", source, grader=grader)
    assert report.status is Status.TIMEOUT, str(report)
    assert report.failed_rule is not None
    assert report.failed_rule.finding is not None
    assert report.failed_rule.finding.code == "slows_down", str(report)


def test_an_engines_class_that_is_changed_only_in_one_program_is_noticed():
    paid = "        self.num_references -= 1"
    late = "        seen.append(1)\n        if len(seen) > 40:\n            Buffer.seen = seen\n"
    source = "seen = []\n" + solution("2.1").replace(paid, late + paid)
    report = judge("2.1", source)
    assert report.failed_rule is not None
    assert report.failed_rule.finding is not None
    assert report.failed_rule.finding.code == "tampered", str(report)


def test_where_a_part_stands_says_nothing_about_it():
    """Whatever the first part is, another seed puts the others elsewhere; so who only counts is found by some."""
    first = solution("4.2").replace("return False", "return first_said(False)")
    first = first.replace("return True", "return first_said(True)")
    source = "said = []\ndef first_said(it):\n    said.append(it)\n    return it == said[0]\n" + first
    assert not all(judge("4.2", source, seed=seed).passed for seed in range(4))


@pytest.mark.parametrize("changes", [
    [("self._memory = _memory_for(self._record_length, self._memory)", "self._memory.clear()")],
    [("self._position = 0\n", "self._position = 0; self.array = bytearray(300_000)\n"),
     ("return self._result(), self._view[start : self._position]",
      "return self._result(), self.again(self._view[start : self._position])"),
     ("    def _result(self", AGAIN)],
])  # fmt: skip
def test_a_record_may_be_another_one_after_the_next_call(changes):
    source = solution("4.1")
    for line, other in changes:
        assert line in source
        source = source.replace(line, other, 1)
    report = judge("4.1", source)
    assert report.passed, str(report)


def test_pieces_may_be_any_iterable_of_bytes():
    assert judge("4.2", solution("4.2").replace("read(pieces)", "read(each for each in pieces)")).passed


def test_what_uses_up_its_time_in_c_code_is_endless_and_not_gone():
    source = solution("0.1").replace("    return flight", "    sum(range(10**12))\n    return flight")
    limits = Limits(wall_seconds=2.0, case_seconds=0.5, run_seconds=1.5, cpu_seconds=3)
    report = judge("0.1", source, grader=Grader(child_job("0.1"), limits))
    assert report.status is Status.TIMEOUT, str(report)
