"""Lesson 8: answers that no zoo has, written from the text of the lesson and the stub alone."""

from __future__ import annotations

import pytest

from course.curriculum.specimens import right_answers
from course.grading.judge import judge

HEAD = """
from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.memory import BufferConsumer
from refimpl.producer import BlockingState, BlockingSubpartition, BoundedBlockingView
from refimpl.job import Boundedness, ConsumerStart
from refimpl.producer import ResultPartitionType
"""
CHANNEL = (
    HEAD
    + """
class BlockingChannel(BlockingSubpartition):
    def add(self, consumer):
        if self.state == BlockingState.WRITING:
            self.flush()
            self.current = consumer
            return True
        consumer.close()
        return False

    def flush(self):
        if self.current is not None:
            piece = self.current.take()
            try:
                if piece.size > 0:
                    self.write(piece)
            finally:
                piece.recycle()
            if self.current.is_finished:
                self.current = None

    def finish(self, version=FlinkVersion.V1_11):
        self.flush()
        self.add(self.end_of_partition(version))
        self.flush()
        self.seal()

    def create_view(self):
        if self.state != BlockingState.FINISHED:
            raise LocalUsageError("not now")
        return self.new_view()
"""
)
WHY_NOT = (
    HEAD
    + """
def why_not(result, boundedness, start):
    if start == ConsumerStart.AFTER_LAST_OUTPUT:
        if not result.is_blocking:
            return "nobody would read"
        if boundedness == Boundedness.UNBOUNDED:
            return "there is no last output"
    elif result.is_blocking:
        return "too early"
    return None
"""
)
RULE = (
    HEAD
    + """
def reads_as_written(new_result):
    r = new_result()
    r.write(b"A"); r.write(b"B")
    try:
        r.reader()
    except LocalUsageError:
        pass
    else:
        return False
    r.write(b"C")
    r.finish()
    x, y = r.reader(), r.reader()
    got = [x.read(), y.read(), x.read(), y.read(), x.read(), y.read(), x.read(), y.read()]
    return got == [b"A", b"A", b"B", b"B", b"C", b"C", None, None]
"""
)


def changed(source, *changes):
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


RIGHT = {
    "channel": ("8.1", CHANNEL),
    "channel, end by hand": (
        "8.1",
        changed(
            CHANNEL,
            (
                "        self.add(self.end_of_partition(version))\n        self.flush()\n        self.seal()",
                "        end = self.end_of_partition(version)\n        self.write(end.take())\n        self.seal()",
            ),
        ),
    ),
    "channel, refused first": (
        "8.1",
        changed(
            CHANNEL,
            (
                'raise LocalUsageError("not now")',
                "raise LocalUsageError",
            ),
        ),
    ),
    "channel, own flag": (
        "8.1",
        changed(
            CHANNEL,
            (
                "        self.seal()",
                "        self.seal()\n        self.is_over = True",
            ),
            (
                "if self.state == BlockingState.WRITING:",
                'if not getattr(self, "is_over", False) and self.state is not BlockingState.RELEASED:',
            ),
        ),
    ),
    "why": ("8.2", WHY_NOT),
    "why, one line": (
        "8.2",
        HEAD
        + """
def why_not(result, boundedness, start):
    last = start is ConsumerStart.AFTER_LAST_OUTPUT
    return None if (last and boundedness is Boundedness.BOUNDED if result.is_blocking else not last) else "no"
""",
    ),
    "why, values": (
        "8.2",
        HEAD
        + """
def why_not(result, boundedness, start):
    is_batch = "BLOCKING" in result.name
    late = start.value == "after the last output"
    if is_batch and boundedness.value == "unbounded":
        return f"{result.name}: never ends"
    if late is not is_batch:
        return f"{start.value} does not go with {result.name}"
""",
    ),
    "rule": ("8.3", RULE),
    "rule, late reader": (
        "8.3",
        changed(
            RULE, ('    r.write(b"C")\n    r.finish()', '    r.write(b"C")\n    r.finish()\n    r.reader().read()')
        ),
    ),
    "rule, asserts": (
        "8.3",
        changed(RULE, ("    return got ==", "    assert got =="), ("None, None]\n", "None, None]\n    return True\n")),
    ),
}

WRONG = {
    "previous closed": (
        "8.1",
        CHANNEL,
        [
            (
                "            self.flush()\n            self.current = consumer",
                "            if self.current: self.current.close()\n            self.current = consumer",
            )
        ],
        "A.previous_lost",
    ),
    "last one only if open": (
        "8.1",
        CHANNEL,
        [
            (
                "        self.flush()\n        self.add(self.end_of_partition(version))\n        self.flush()",
                "        self.current = self.end_of_partition(version)\n        self.flush()",
            )
        ],
        "B.tail_lost",
    ),
    "not sealed": ("8.1", CHANNEL, [("        self.seal()", "        pass")], "B.not_sealed"),
    "readable when something is written": (
        "8.1",
        CHANNEL,
        [("if self.state != BlockingState.FINISHED:", "if self.num_buffers == 0:")],
        "C.reads_too_early",
    ),
    "view made once": (
        "8.1",
        CHANNEL,
        [
            ("        self.seal()", "        self.seal()\n        self.view = self.new_view()"),
            ("        return self.new_view()", "        return self.view"),
        ],
        "D.shared_place",
    ),
    "recycles only what it writes": (
        "8.1",
        CHANNEL,
        [
            ("self.write(piece)", "self.write(piece)\n                    piece.recycle()"),
            ("            finally:\n                piece.recycle()", "            finally:\n                pass"),
        ],
        "E.empty_not_recycled",
    ),
    "forgets always": (
        "8.1",
        CHANNEL,
        [
            (
                "            if self.current.is_finished:\n                self.current = None",
                "            self.current = None",
            )
        ],
        "E.rest_lost",
    ),
    "takes after release": (
        "8.1",
        CHANNEL,
        [("if self.state == BlockingState.WRITING:", "if self.state != BlockingState.FINISHED:")],
        "H.adds_after_the_end",
    ),
    "lazy is for all": (
        "8.2",
        WHY_NOT,
        [("    elif result.is_blocking:", "    elif result.is_blocking and start == ConsumerStart.AT_ONCE:")],
        "E.first_is_not_all",
    ),
    "endless batch": ("8.2", WHY_NOT, [("if boundedness == Boundedness.UNBOUNDED:", "if False:")], "F.never_finished"),
    "is_bounded is the stream": (
        "8.2",
        WHY_NOT,
        [
            (
                "    return None",
                '    return "a bounded result" if result.is_bounded and boundedness == Boundedness.UNBOUNDED else None',
            )
        ],
        "G.bounded_by_name",
    ),
    "no batch with pipes": (
        "8.2",
        WHY_NOT,
        [
            (
                "    return None",
                '    return "a batch" if not result.is_blocking and boundedness == Boundedness.BOUNDED else None',
            )
        ],
        "B.batch_must_block",
    ),
    "no early": (
        "8.3",
        RULE,
        [("    r.finish()\n", "    r.finish()\n    return [r.reader().read() for _ in range(1)] == [b'A']\n")],
        "C.never_second",
    ),
    "one reader": (
        "8.3",
        HEAD
        + """
def reads_as_written(new_result):
    r = new_result()
    r.write(b"A"); r.write(b"B"); r.finish()
    x = r.reader()
    return [x.read(), x.read(), x.read()] == [b"A", b"B", None]
""",
        [],
        "C.never_second",
    ),
    "wants bytes at the end": ("8.3", RULE, [("None, None]", 'b"", b""]')], "B.turns_all_down"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_answer_that_no_list_has_passes(name):
    exercise, source = RIGHT[name]
    report = judge(exercise, source)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_that_no_zoo_has_is_told_its_belief(name):
    exercise, source, changes, code = WRONG[name]
    report = judge(exercise, changed(source, *changes))
    assert not report.passed
    failed = report.failed_rule
    assert f"{failed.id}.{failed.finding.code}" == code, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("exercise", ["8.1", "8.2", "8.3"])
def test_right_answers_pass_with_any_seed(exercise, seed):
    for each in right_answers(exercise):
        report = judge(exercise, each.source, seed)
        assert report.passed, f"seed {seed}, {each.name}: {report}"
