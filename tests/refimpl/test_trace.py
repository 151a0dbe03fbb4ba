"""A trace keeps what happened, in order, and tells the story of one thing; or it hands rows on and keeps nothing."""

from __future__ import annotations

import pickle
import threading

from refimpl.column_trace import ColumnTrace, Place
from refimpl.trace import Trace, noting


def test_events_are_numbered_and_stamped_with_the_drivers_time() -> None:
    trace, times = Trace(), iter([5_000_000, 5_000_000, 7_500_000])
    trace.use_clock(lambda: next(times))
    trace.note("request", "map-0")(7)
    trace.note("grant", "map-0", 1)(amount=2)
    first, second = trace
    assert (first.sequence, first.time_ms, first.kind, first.subject) == (0, 0.0, "request", "map-0")
    assert (second.sequence, second.time_ms) == (1, 2.5)
    assert (first.detail, second.detail) == ({"segment": 7}, {"target": 1, "credit": 2})
    assert str(second) == "     1     2.500 ms  map-0            grant target=1 credit=2"


def test_the_oldest_events_go_first_and_the_count_goes_on() -> None:
    trace = Trace(capacity=3)
    note = trace.note("request", "pool")
    for segment in range(5):
        note(segment)
    assert [event.detail["segment"] for event in trace] == [2, 3, 4]
    assert (len(trace), trace.num_events) == (3, 5)


def test_a_story_holds_the_last_events_of_one_segment() -> None:
    trace = Trace()
    for step in range(4):
        trace.note(f"step-{step}", "pool")(step % 2)
    story = trace.story("segment", 1, last=1)
    assert "step-3" in story
    assert "step-1" not in story
    assert trace.story("segment", 9) == "(nothing recorded of segment 9)"


def test_who_has_no_trace_has_nothing_to_call() -> None:
    assert noting(None, "request", "pool") is None
    assert noting(Trace(), "request", "pool") is not None
    assert all([Trace(), ColumnTrace()])  # an empty trace is a trace


# -- in columns --------------------------------------------------------------------------------------


def test_rows_are_drained_once_in_order_and_with_their_places() -> None:
    trace, times = ColumnTrace(), iter(range(100))
    trace.use_clock(lambda: next(times), epoch_ns=1_000)
    request, deliver = trace.note("request", "pool"), trace.note("deliver", "map-0 → sink", 1)
    trace.note("local channel", "map-0 → sink", 1, peer="sink-1")()
    request(7)
    deliver(7, 0, 16)
    drained = pickle.loads(pickle.dumps(trace.drain()))
    assert drained.places == (
        Place("request", "pool", -1, ""),
        Place("deliver", "map-0 → sink", 1, ""),
        Place("local channel", "map-0 → sink", 1, "sink-1"),
    )
    assert drained.rows.tolist() == [(1, 2, -1, -1, -1), (2, 0, 7, -1, -1), (3, 1, 7, 0, 16)]
    assert (drained.first_number, drained.epoch_ns, drained.num_lost) == (0, 1_000, 0)
    request(8)
    later = trace.drain()
    assert (later.rows["segment"].tolist(), later.first_number) == ([8], 3)
    assert len(trace.drain().rows) == 0


def test_what_finds_no_room_is_lost_and_counted() -> None:
    trace = ColumnTrace(most_rows=2)
    note = trace.note("request", "pool")
    for segment in range(5):
        note(segment)
    drained = trace.drain()
    assert (drained.rows["segment"].tolist(), drained.num_lost) == ([0, 1], 3)
    note(9)
    assert trace.drain().rows["segment"].tolist() == [9]


def test_rows_of_several_threads_are_all_there_whoever_drains_meanwhile() -> None:
    trace, num_threads, num_rows = ColumnTrace(), 4, 5_000
    notes = [trace.note("request", f"pool-{number}") for number in range(num_threads)]
    threads = [threading.Thread(target=lambda note=note: [note(i) for i in range(num_rows)]) for note in notes]
    for thread in threads:
        thread.start()
    found = []
    while any(thread.is_alive() for thread in threads):
        found.append(trace.drain())
    found.append(trace.drain())
    assert [drained.first_number for drained in found[1:]] == [
        drained.first_number + len(drained.rows) for drained in found[:-1]
    ]
    for number in range(num_threads):
        of_one = [row["segment"] for drained in found for row in drained.rows if row["place"] == number]
        assert of_one == list(range(num_rows))


def test_what_nobody_has_drained_can_be_told() -> None:
    trace = ColumnTrace()
    trace.note("request", "pool")(7)
    trace.note("grant", "map-0 → sink", 1)(amount=3)
    request, grant = trace
    assert (request.kind, request.detail) == ("request", {"segment": 7})
    assert grant.detail == {"target": 1, "credit": 3}
    assert "request" in trace.story("segment", 7)
    trace.drain()
    assert trace.story("segment", 7) == "(nothing recorded of segment 7)"
    assert (len(trace), trace.num_events) == (0, 2)
