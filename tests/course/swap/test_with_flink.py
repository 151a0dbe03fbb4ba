"""A learner's part talks to Flink: to what one said once, here; to a running one, in `tests/interop`."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers
from course.flink.recorded import conversation
from course.peer import with_flink
from tests.course.swap.test_swap_channels import NAMES, cell

SUMS = tuple(channel["crc32"] for channel in conversation()["channels"])


@pytest.fixture(autouse=True)
def no_flink(monkeypatch):
    monkeypatch.setattr(with_flink, "missing", lambda: "there is none")


@pytest.mark.parametrize(("exercise", "number"), [(each, n) for each in ("18.1", "18.2") for n in range(4)])
def test_a_right_part_reads_what_flink_sent(exercise, number):
    part = cell(right_answers(exercise)[number].source, NAMES[exercise])
    report = swap.run(exercise, part, driver="flink")
    assert (report.is_equal, report.taken_out, report.error) == (True, (), "")
    assert tuple(channel["crc32"] for channel in report.channels) == SUMS
    assert [channel["barriers"] for channel in report.channels] == 2 * [[1, 2, 3, 4]]
    assert (report.num_asked, report.told) == (4, "not found, asked 4 times")
    assert "your part: " in repr(report)
    assert "✓ what Flink sent, byte for byte" in repr(report)


def test_ours_goes_in_where_there_is_no_part():
    report = swap.run("18.1", driver="flink")
    assert (report.is_equal, report.is_learners) == (True, False)
    assert "our part (yours goes in" in repr(report)


@pytest.mark.parametrize(
    ("exercise", "method"),
    [("18.1", "request"), ("18.1", "add_credit"), ("18.1", "resume"), ("18.1", "read_response"), ("18.2", "on_error"),
     ("18.2", "ask_again"), ("18.2", "news")],
)  # fmt: skip
def test_a_part_that_raises_is_taken_out_and_ours_talks_on(exercise, method):
    name = NAMES[exercise]
    wrapped = f"\n\nclass Breaking({name}):\n    def {method}(self, *given):\n        1 / 0\n"
    report = swap.run(exercise, cell(right_answers(exercise)[0].source + wrapped, "Breaking"), driver="flink")
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert (report.is_equal, report.told) == (True, "not found, asked 4 times")


def test_a_part_that_writes_what_flink_does_not_understand_ends_the_conversation():
    source = right_answers("18.1")[0].source.replace('">i16s", credit', '">q16s", credit')
    report = swap.run("18.1", cell(source, "Wire"), driver="flink")
    assert not report.is_equal
    assert "closed by remote task manager" in report.error
    assert "✗ the conversation ended" in repr(report)


def test_only_parts_that_talk_have_flink_at_the_other_end():
    with pytest.raises(ValueError, match=r"there are simulation and threads$"):
        swap.run("9.1", driver="flink")
