"""`show` draws the failing input where a ribbon can, and says the same in words where it cannot."""

from __future__ import annotations

from course.curriculum.specimens import zoo
from course.grading.judge import judge
from course.learner.step_by_step import ShowView, drawn, view_of
from widgets import TwoBufferRibbon


def shown(name):
    (specimen,) = [each for each in zoo("3.1") if each.name == name]
    view = view_of("3.1", judge("3.1", specimen.source, 7).trace)
    return view, drawn(view)


def test_a_header_in_every_buffer_is_marked_at_the_byte_where_it_begins():
    _, picture = shown("w01_header_in_every_buffer")
    assert isinstance(picture, TwoBufferRibbon)
    assert "first difference: copy 2, buffer 1, byte 0: yours has 00, Flink has 6f" in repr(picture)


def test_buffers_stay_open_between_records_that_leave_room():
    steps = drawn(
        ShowView(
            "3.1",
            "two records",
            "",
            [["new", 0], ["emit", 0, 16, "6869", 2], ["emit", 0, 16, "6869", 2]],
            [
                ["new", "ok"],
                ["serialize", "ok"],
                ["copy", {"result": "FULL_RECORD", "bytes": "000000026869"}],
                ["serialize", "ok"],
                ["copy", {"result": "FULL_RECORD", "bytes": "000000026869"}],
            ],
            [
                ["new", "ok"],
                ["serialize", "ok"],
                ["copy", {"result": "FULL_RECORD", "bytes": "000000026869"}],
                ["serialize", "ok"],
                ["copy", {"result": "FULL_RECORD", "bytes": "000000026869"}],
            ],
        )
    )
    assert "2 copies into 1 buffer" in repr(steps)


def test_what_a_ribbon_cannot_show_keeps_its_text():
    view, picture = shown("w14_reset_forgets_header")
    assert picture is view
    assert "the first step that differs" in repr(view)
