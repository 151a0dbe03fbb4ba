"""Slips that have nothing to do with an exercise: a check says which one it is, and how the part is called."""

from __future__ import annotations

import pytest

from course.curriculum.stubs import solution
from course.grading.judge import judge

RETURN = '    return flight["origin"], max(0, flight["dep_delay_minutes"])\n'
IN_A_CLASS = f"class Departure:\n    def to_departure(self, flight):\n    {RETURN}"

SLIPS = [
    ("0.1", f"def to_departure(self, flight):\n{RETURN}", "called_otherwise", "called as to_departure(flight)"),
    ("0.1", "def to_departure():\n    return 1\n", "called_otherwise", "called as to_departure(flight)"),
    ("9.1", "def to_frame(body):\n    return body\n", "called_otherwise", "called as to_frame(frame_id, body)"),
    ("1.1", solution("1.1").replace("window(self, ", "window("), "called_otherwise", "window(self, index, length)"),
    ("11.1", solution("11.1").replace("on_recycled(self)", "on_recycled(self, n)"), "called_otherwise",
     "called as on_recycled(self)"),
    ("4.2", "def rule():\n    return True\n", "called_otherwise", "called as records_come_back(read)"),
    ("0.1", f"import functools\n\n\n@functools.cache\ndef to_departure(flight):\n{RETURN}", "not_hashable",
     "a cache, a dict or a set"),
    ("0.1", f'@L.exercise("0.1")\n{IN_A_CLASS}', "class_for_function", "A function is wanted here"),
    ("1.1", "def window(self, index, length):\n    return self.view[index : index + length]\n", "function_for_class",
     "outside of any class"),
    ("0.1", f"def to_departure(flight):\n    a = 1\n\t{RETURN.strip()}\n", "tabs",
     "begin with tabs, others with spaces"),
    ("0.1", f"def to_departure(flight):\n{RETURN}".replace('"origin"', "\u201corigin\u201d"), "curly_quotes",
     "Python's own are straight"),
    ("0.1", f'def to_departure(flight):\n    assert flight["dest"] == "JFK", "mine"\n{RETURN}', "own_assert",
     '2 > assert flight["dest"] == "JFK"'),
    ("9.1", "from refimpl.exchange.framing import to_frame\n", "reference_function", "Write the function yourself"),
    ("9.1", 'def to_frame(frame_id, body):\n    return b"" + chr(frame_id) + body\n', "text_for_bytes",
     "text and bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("exercise", "source", "code", "said"), SLIPS)
def test_a_slip_is_named(exercise, source, code, said):
    report = judge(exercise, source)
    assert not report.passed
    assert report.failed_rule.finding.code == code, str(report)
    assert said in " ".join(str(report).split())


def test_memory_taken_in_pieces_is_no_loop_like_any_other():
    source = "def to_departure(flight):\n    kept = []\n    while True:\n        kept.append([0] * 20_000)\n"
    report = judge("0.1", source)
    assert report.failed_rule.finding.code in ("memory", "grows"), str(report)  # whichever limit is met first
    assert "more memory" in str(report)
