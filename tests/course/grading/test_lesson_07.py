"""Lesson 7: wrong answers that are nearly a right one, and what each is told."""

from __future__ import annotations

import pytest

from course.curriculum.specimens import right_answers
from course.grading.judge import judge

_RIGHT = next(each.source for each in right_answers("7.1") if each.name == "r01_plain")
_ADD = """        if not self.enqueue(consumer):
            return False
        if self.num_finished == 1 and not self.is_flush_requested and not self.is_blocked:
            self.notify()
        return True
"""
_MARK = """        self.is_flush_requested = is_news or len(self.queue) > 1
        if is_news:
            self.notify()
"""
_LAST = """            if len(self.queue) == 1:
                self.is_flush_requested = False
"""
_LEAVES = """            if head.is_finished:
                self.remove_head()
                head.close()
"""
_DELIVER, _TAKEN = "                return self.deliver(piece)\n", "                taken = self.deliver(piece)\n"
_IS_LAST = "            is_last = len(self.queue) == 1\n"
_REMOVE = "                self.remove_head()\n"

SOURCES = {"7.1": _RIGHT}
WRONG = {
    ("7.1", "tells_before_the_mark"): ([(_MARK, '''        if is_news:
            self.notify()
        self.is_flush_requested = is_news or len(self.queue) > 1
''')], "F.told_before_the_mark"),
    ("7.1", "tells_before_it_joined"): ([(_ADD, '''        num = len(self.queue) + consumer.is_finished
        if num == 1 and not (self.is_finished or self.is_flush_requested or self.is_blocked):
            self.notify()
        return self.enqueue(consumer)
''')], "E.told_before_it_joined"),
    ("7.1", "tells_of_an_event_too_early"): ([(_ADD, '''\
        if consumer.is_finished and not (self.queue or self.is_finished or self.is_blocked):
            self.notify()
            return self.enqueue(consumer)
''' + _ADD)], "E.told_before_it_joined"),
    ("7.1", "delivers_then_takes_the_mark_down"): ([(_LAST, _IS_LAST), (_DELIVER, _TAKEN + '''
                self.is_flush_requested = self.is_flush_requested and not is_last
                return taken
            if is_last:
                self.is_flush_requested = False
''')], "G.mark_after_deliver"),
    ("7.1", "delivers_then_removes"): ([(_LEAVES, ""), (_DELIVER, _TAKEN + '''
                if head.is_finished:
                    self.remove_head()
                    head.close()
                return taken
            if head.is_finished:
                self.remove_head()
                head.close()
''')], "H.removed_after_deliver"),
    ("7.1", "delivers_then_counts"): ([(_REMOVE, "                self.queue.popleft()\n"), (_DELIVER, _TAKEN + '''
                self.num_data_buffers -= head.is_finished and head.is_buffer
                return taken
            self.num_data_buffers -= head.is_finished and head.is_buffer
''')], "H.removed_after_deliver"),
    ("7.1", "says_no_backlog"): ([(_DELIVER, "                return self.deliver(piece)._replace(backlog=0)\n")],
                                 "H.other_words_with_the_piece"),
    ("7.1", "says_there_is_no_more"): ([(_DELIVER, _TAKEN + '''
                return taken._replace(is_more_available=False)
''')], "G.other_words_with_the_piece"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for _, name in WRONG])
def test_a_wrong_queue_is_told_its_belief(name):
    changes, code = WRONG["7.1", name]
    source = _RIGHT
    for old, new in changes:
        assert source.count(old) == 1
        source = source.replace(old, new)
    report = judge("7.1", source)
    assert not report.passed
    failed = report.failed_rule
    assert f"{failed.id}.{failed.finding.code}" == code, str(report)
