"""`show` draws the failing input where a ribbon can, and says the same in words where it cannot."""

from __future__ import annotations

from course.grading.judge import judge
from course.notebook import ShowView, _view
from course.show import ribbon_or_text
from course.specimens import zoo
from widgets import TwoBufferRibbon


def shown(name):
    (specimen,) = [each for each in zoo("3.1") if each.name == name]
    view = _view("3.1", judge("3.1", specimen.source, 7).trace)
    return view, ribbon_or_text(view)


def test_a_header_in_every_buffer_is_marked_at_the_byte_where_it_begins():
    _, drawn = shown("w01_header_in_every_buffer")
    assert isinstance(drawn, TwoBufferRibbon)
    assert "first difference: copy 2, buffer 1, byte 0: yours has 00, Flink has 6f" in repr(drawn)


def test_buffers_stay_open_between_records_that_leave_room():
    steps = ribbon_or_text(
        ShowView(
            "3.1", "two records", "", [["new", 0], ["emit", 0, 16, "6869", 2], ["emit", 0, 16, "6869", 2]],
            [["new", "ok"], ["serialize", "ok"], ["copy", "FULL_RECORD", "000000026869", 0, ""], ["serialize", "ok"],
             ["copy", "FULL_RECORD", "000000026869", 0, ""]],
            [["new", "ok"], ["serialize", "ok"], ["copy", "FULL_RECORD", "000000026869", 0, ""], ["serialize", "ok"],
             ["copy", "FULL_RECORD", "000000026869", 0, ""]],
        )  # fmt: skip
    )
    assert "2 copies into 1 buffer" in repr(steps)


def test_what_a_ribbon_cannot_show_keeps_its_text():
    view, drawn = shown("w14_reset_forgets_header")
    assert drawn is view
    assert "the first step that differs" in repr(view)
