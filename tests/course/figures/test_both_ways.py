"""The figures of lesson 8: what a batch costs and saves, and a result by hand, as the lesson tells them."""

from __future__ import annotations

from course.figures.both_ways import OneResult, begins_again, both_ways, entries_on_disk, how_it_runs


def test_a_stream_has_its_first_result_soon_and_a_batch_needs_fewer_buffers_and_slots():
    stream, batch, one_slot = both_ways().runs
    assert stream.first_ms < 10 < batch.first_ms < one_slot.first_ms
    assert stream.most_buffers > batch.most_buffers > one_slot.most_buffers
    assert (stream.most_kept_bytes, batch.most_kept_bytes) == (0, one_slot.most_kept_bytes)
    assert (stream.num_slots, one_slot.num_slots) == (2, 1)


def test_in_a_batch_no_step_begins_before_the_one_before_has_ended():
    for run in both_ways().runs[1:]:
        spans = {name: (start, end) for name, start, end in run.spans}
        last_read = max(spans[f"readings-{number}"][1] for number in range(2))
        assert min(spans[f"sums-{number}"][0] for number in range(2)) >= last_read
        assert spans["board-0"][0] >= max(spans[f"sums-{number}"][1] for number in range(2))


def test_both_pictures_have_words_and_a_lane_for_each_task():
    picture = both_ways().svg()
    assert "<title" in picture
    assert picture.count("board-0") >= 3
    assert picture.count("first result") >= 3


def test_the_picture_says_what_each_way_takes_since_a_browser_shows_nothing_else():
    drawn = both_ways()
    _, shown = drawn.svg().split("</desc>")
    for run in drawn.runs:
        kept = f"{run.most_buffers} buffers in use and {run.most_kept_bytes:,} bytes in files at most"
        assert f"{run.name}, {run.num_slots} slot" in shown
        assert kept in shown


def test_only_the_task_that_failed_begins_again():
    assert begins_again().rows == (
        ("readings-0 begins to read", "1"), ("readings-1 begins to read", "1"),
        ("sums get the first reading", "1"), ("board-0 gets the first reading", "2"),
    )  # fmt: skip


def test_a_result_by_hand_tells_who_is_refused_what_is_kept_and_what_comes_home():
    story = OneResult(8).open("ab").open("cd").flush().reader().write("ef").finish().reader().read(1).reader()
    lines = repr(story.read(2).read(1).read(1).read(1)).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "open, write 'ab'", "open, write 'cd'", "flush", "a reader: refused", "write 'ef'", "finish",
        "a reader: it is number 1", "reader 1: 'ab'", "a reader: it is number 2", "reader 2: 'ab'", "reader 1: 'cd'",
        "reader 1: 'ef'", "reader 1: END",
    ]  # fmt: skip
    assert "[ab][cd][ef][END]" in lines[6]
    assert lines[6].endswith("home 2")


def test_data_is_compressed_only_where_that_makes_it_smaller_and_events_never():
    assert [row[3] for row in entries_on_disk().rows] == ["no", "yes", "no", "never"]


def test_a_job_says_for_each_mode_how_its_results_are_read():
    said = repr(how_it_runs())
    assert said.count("pipelined:") == said.count("blocking:") == 2
    assert "slots: 1 (5 regions" in said
