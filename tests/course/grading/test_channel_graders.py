"""Lessons 9 to 11: the reference parts with one change, those still right and those wrong in one point."""

from __future__ import annotations

import pytest

from course.curriculum.seams import child_job
from course.curriculum.stubs import solution
from course.grading.judge import judge
from course.grading.runner import Grader, Limits

Change = tuple[str, str]

POLL = "taken = self.view.poll()"
ASK_FIRST = """if not (self.view.is_data_available or self.view.is_event_available):
            return None
        """
PAY = "if taken.buffer.is_buffer:"

PACK = "FRAME_HEADER.pack(HEADER_BYTES + len(body), MAGIC, frame_id) + body"
PACK_LOW = "(len(body) + 9 & 0xFFFF).to_bytes(4, 'big')"
MOVE = "self.expected = number + 1 if number < _LARGEST else _SMALLEST"
AROUND = "(self.expected + 2**31) % 2**32 - 2**31"
LEFT = "self.num_handed_out - self.num_written"
RESUME = f"""if {LEFT} < self.low_bytes:
            self.is_writable = True"""
WAIT = """if self.wait is None:
            self.wait = BufferWait(self.pool)"""
FORGET = """del self.gathered[: self.position]
        self.position = 0
"""
KEEP = "self.gathered += data"
REFUSE = 'raise RemoteProtocolError(f"a frame of {length} B is not between {HEADER_BYTES} and {self.max_frame_bytes}")'
READ = "(length,) = _INT.unpack_from(self.gathered, self.position)"
CUT = "self.gathered = self.gathered[self.position :]\n        self.position = 0\n"
RESTART = "self.gathered.clear()\n            self.position = 0\n"
SEARCH = """
        found = self.gathered.find(b"\\xba\\xdc\\x0f\\xfe", self.position + 8)
        length = length if found < 0 else found - 4 - self.position"""


def above(limit: int) -> str:
    """Forgets what was read only when it is so much."""
    return f"if self.position >= {limit}:\n            " + FORGET.replace("        self", "            self")


def beside(line: str) -> list[Change]:
    """Right, and this is done as well with what comes."""
    return [(FORGET, f"{FORGET}        {line}\n")]


RIGHT: list[tuple[str, str, list[Change]]] = [
    ("9.1", "gives_a_bytearray", [(f"return {PACK}", f"return bytearray({PACK})")]),
    ("9.3", "goes_round", [("number + 1 if number < _LARGEST else _SMALLEST", AROUND.replace("+ 2", "+ 1 + 2"))]),
    ("9.2", "forgets_above_4096", [(FORGET, above(4096))]),
    ("9.2", "forgets_above_65536", [(FORGET, above(65536))]),
    *[("9.2", f"forgets_above_{limit}", [(FORGET, above(limit))]) for limit in (300_000, 990_000, 2**20, 2**22, 2**23)],
    ("9.2", "forgets_above_many_frames", [(FORGET, above(16).replace("16", "16 * self.max_frame_bytes"))]),
    ("9.2", "forgets_each_100_pieces", [
        (FORGET, above(0).replace("self.position >= 0", "(FED.append(1) or len(FED)) % 100 == 0")),
        ("@L.", "FED = []\n@L."),
    ]),
    ("9.2", "gathers_in_bytes", [(FORGET, CUT), (KEEP, "self.gathered = bytes(self.gathered) + bytes(data)")]),
    ("11.2", "looks_before_it_polls", [(POLL, "taken = self.view.poll() if self.is_available else None")]),
    ("11.2", "asks_the_view_first", [(POLL, f"{ASK_FIRST}{POLL}")]),
]  # fmt: skip

WRONG: list[tuple[str, str, str, list[Change]]] = [
    ("9.1", "A", "raised", [(PACK, "[][3]")]),
    ("9.1", "C", "length_ends_early", [(PACK, f"{PACK_LOW} + ({PACK})[4:]")]),
    ("9.1", "C", "raised", [(PACK, f"bytes([0, 0, *divmod(len(body) + 9, 256)]) + ({PACK})[4:]")]),
    ("9.1", "C", "bytes_wrong", [(PACK, PACK.replace("+ body", "+ body[:65536]"))]),
    ("9.1", "C", "overwrites_earlier", [
        ("FRAME_HEADER = ", "_OUT = bytearray()\nFRAME_HEADER = "),
        (f"return {PACK}", f"_OUT[:] = {PACK}\n    return _OUT"),
    ]),
    ("9.2", "C", "keeps_what_is_lent", [
        (FORGET, "self.pieces = getattr(self, 'pieces', [])\n"),
        (KEEP, "self.pieces.append(memoryview(data))\n        self.gathered = bytearray().join(self.pieces)"),
    ]),
    ("9.2", "C", "keeps_what_is_lent", [
        (FORGET, CUT), (KEEP, "self.gathered = self.gathered + data if self.gathered else data"),
    ]),
    ("9.2", "C", "changes_what_is_lent", beside("if isinstance(data, bytearray): data[:1] = b'!'")),
    ("9.2", "E", "looks_for_magic", [(READ, f"{READ}{SEARCH}")]),
    ("9.2", "G", "waits_for_short", [(REFUSE, "return None")]),
    ("9.2", "G", "raised", [(REFUSE, "raise ValueError(length)")]),
    ("9.2", "H", "keeps_everything", [(FORGET, f"if self.position == len(self.gathered):\n            {RESTART}")]),
    ("9.2", "H", "keeps_everything", [(FORGET, f"if self.position < 0:\n            {RESTART}")]),
    ("9.2", "H", "keeps_everything", [(FORGET, "pass\n")]),
    ("9.2", "H", "keeps_everything", [
        (FORGET, above(2**20)), (KEEP, f"{KEEP}\n        self.h = [*getattr(self, 'h', ()), bytes(data)]"),
    ]),
    ("9.2", "H", "keeps_everything", [
        (FORGET, "self.kept = getattr(self, 'kept', b'') + bytes(self.gathered[: self.position])\n        " + FORGET),
    ]),
    ("9.2", "H", "keeps_everything", beside("self.h = type(self)._h = getattr(self, '_h', []) + [bytes(data)]")),
    ("9.2", "H", "keeps_everything", beside("self.undo = [*getattr(self, 'undo', ()), lambda: data]")),
    ("9.2", "H", "keeps_everything", beside("globals().setdefault('ALL', []).append(len(data))")),
    ("9.3", "A", "raised", [(MOVE, "raise OverflowError(number)")]),
    ("9.3", "B", "kept_elsewhere", [
        (MOVE, "self.mine = number + 1 if number < _LARGEST else _SMALLEST"),
        ("number = self.expected", "number = vars(self).setdefault('mine', 0)"),
        ("number == self.expected", "number == vars(self).setdefault('mine', 0)"),
    ]),
    ("9.3", "E", "wraps_wrong", [("else _SMALLEST", "else -_LARGEST")]),
    ("9.3", "E", "wraps_wrong", [(MOVE, "self.expected = min(number + 1, _LARGEST)")]),
    ("9.3", "E", "wraps_early", [("number < _LARGEST", "number < _LARGEST - 1")]),
    ("9.3", "E", "wraps_early", [("number < _LARGEST", "number < 2**15 - 1")]),
    ("9.3", "E", "wraps_early", [("number < _LARGEST", "number < 2**30")]),
    ("9.3", "E", "wraps_early", [("number < _LARGEST", "number < 10**6")]),
    ("9.3", "E", "kept_elsewhere", [
        (MOVE, "self.expected = number + 1"), ("number = self.expected", f"number = {AROUND}"),
        ("number == self.expected", f"number == {AROUND}"),
    ]),
    ("10.1", "G", "written_stops", [(RESUME, f"self.is_writable = {LEFT} < self.low_bytes")]),
    ("10.2", "F", "keeps_its_place", [("self.end_wait()", "self.wait = None")]),
    ("10.2", "C", "gives_up_its_place", [(WAIT, WAIT.replace("if self.wait is None:\n    ", "self.end_wait()\n"))]),
    ("10.2", "C", "in_line_again", [(WAIT, "self.wait = BufferWait(self.pool)")]),
    ("11.2", "E", "retains", [(PAY, f"taken.buffer.retain()\n        {PAY}")]),
    ("11.2", "E", "recycles", [(PAY, f"taken.buffer.recycle()\n        {PAY}")]),
    ("11.2", "E", "asks_often", [("if taken is None", "taken = self.view.poll() or taken\n        if taken is None")]),
]  # fmt: skip


def changed(exercise: str, changes: list[Change]) -> str:
    """The reference part with these texts replaced, each of which it has once."""
    source = solution(exercise)
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


@pytest.mark.slow
@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize(
    ("exercise", "changes"), [pytest.param(each, changes, id=f"{each}-{name}") for each, name, changes in RIGHT]
)
def test_a_change_that_is_still_right_passes(exercise, changes):
    report = judge(exercise, changed(exercise, changes), 7)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize(("exercise", "rule", "code", "changes"), WRONG)
def test_a_change_that_is_wrong_is_named(exercise, rule, code, changes):
    """With time enough for those that do more and more: on a slow machine they would have no end."""
    grader = Grader(child_job(exercise), Limits().times(4))
    report = judge(exercise, changed(exercise, changes), 7, grader=grader)
    assert report.failed_rule is not None
    assert report.failed_rule.finding is not None
    assert (report.failed_rule.id, report.failed_rule.finding.code) == (rule, code), str(report)
