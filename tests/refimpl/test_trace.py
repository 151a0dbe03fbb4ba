"""A trace keeps what happened, in order, and tells the story of one thing."""

from __future__ import annotations

from refimpl.trace import Trace


def test_events_are_numbered_and_stamped_with_the_drivers_time() -> None:
    trace = Trace()
    trace.add("request", "map-0", segment=7, channel=1)
    trace.now_ms = 2.5
    trace.add("recycle", "map-0", segment=7)
    first, second = trace
    assert (first.sequence, first.time_ms, first.kind, first.subject) == (0, 0.0, "request", "map-0")
    assert (second.sequence, second.time_ms) == (1, 2.5)
    assert first.detail == {"segment": 7, "channel": 1}


def test_the_oldest_events_go_first_and_the_count_goes_on() -> None:
    trace = Trace(capacity=3)
    for segment in range(5):
        trace.add("request", "pool", segment=segment)
    assert [event.detail["segment"] for event in trace] == [2, 3, 4]
    assert (len(trace), trace.num_events) == (3, 5)


def test_a_story_holds_the_last_events_of_one_segment() -> None:
    trace = Trace()
    for step in range(4):
        trace.add(f"step-{step}", "pool", segment=step % 2)
    story = trace.story("segment", 1, last=1)
    assert "step-3" in story
    assert "step-1" not in story
    assert trace.story("segment", 9) == "(nothing recorded of segment 9)"
