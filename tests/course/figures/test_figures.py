"""The runs behind figures tell what lessons and Flink's own texts say of them."""

import re
import threading
from types import SimpleNamespace

import pytest

from course.figures import live
from course.figures.channels import Ledger
from course.figures.flights import delays_beside
from course.figures.jam import PHASES, follow, left_over
from course.figures.pressure import balance, heat_strip, jammed_job, monitored, who_stores
from course.figures.queues import local_way
from course.figures.times import arrivals, closings, elements_on_the_wire, quiet_airport, told_to_the_valve
from course.figures.wire import nine_steps
from tests.support.polling import until
from widgets import JobView, WatermarkView


@pytest.mark.parametrize("object_reuse", [True, False])
def test_a_changed_flight_is_seen_by_the_other_branch_only_if_the_object_is_the_same(object_reuse):
    def never_early(flight):
        flight["dep_delay_minutes"] = max(0, flight["dep_delay_minutes"])
        return flight

    untouched = delays_beside(lambda flight: flight, object_reuse=object_reuse)
    assert min(untouched) < 0 < max(untouched)
    seen = delays_beside(never_early, object_reuse=object_reuse)
    assert seen == ([max(0, delay) for delay in untouched] if object_reuse else untouched)


LOCAL = ["asks its gate, finds nothing, and sleeps", "writes a record", "flushed", "wakes", "has 3 records again"]
"""The five steps of Flink's own texts: ask and wait, write, flush and notify, wake, read and deserialise."""
REMOTE = [
    "asks its channel, finds nothing, and sleeps", "is written into", "the subpartition tells", "reads 64 bytes",
    "the connection has them", "leave in a message", "decoded", "and the task wakes", "has a record again",
]  # fmt: skip
"""The nine steps of the same texts; what asks for the channel comes before, what gives credit back after."""


def test_the_five_steps_on_one_machine_are_those_of_the_texts_in_a_run_of_the_engine():
    lines = repr(local_way()).splitlines()
    steps = [line.split(None, 1) for line in lines if re.match(r" {13}\d  ", line)]
    assert [number for number, _ in steps] == list("12345")
    assert all(words in said for words, (_, said) in zip(LOCAL, steps, strict=True)), steps
    assert lines[0].endswith("step board-0"), "the reader asks before anything is written"
    assert lines.index(next(line for line in lines if "flush readings-0" in line)) + 1 == next(
        at for at, line in enumerate(lines) if line.strip().startswith("3 ")
    )


def test_the_nine_steps_between_two_machines_are_those_of_the_texts_in_a_run_of_the_engine():
    rows = nine_steps().rows
    numbered = [row for row in rows if row[0]]
    assert [row[0] for row in numbered] == list("123456789")
    assert all(words in row[3] for words, row in zip(REMOTE, numbered, strict=True)), numbered
    assert [row[1] for row in numbered] == sorted(row[1] for row in numbered)
    assert [row[3].partition(":")[0] for row in rows if not row[0]] == ["before", "before", "after", "after"]
    assert [row[2] for row in numbered] == ["sink-0", "source-0", *["tm-0"] * 4, *["tm-1"] * 2, "sink-0"]


def test_the_producer_is_held_first_and_both_are_as_fast_as_the_slower_of_the_two():
    assert PHASES == (("producer", 60), ("consumer", 30), ("", 100), ("consumer", 30), ("", 100))
    followed = follow()
    assert [where for where, _, _ in followed.measured] == [
        "on one machine", "on two, with credits", "on two, without credits"
    ]  # fmt: skip
    for _, *rates in followed.measured:
        assert rates == [(60, 30, 100, 30, 100)] * 2


def test_with_credits_a_producer_waits_earlier_because_less_lies_between_it_and_its_consumer():
    assert 0 < left_over(credit_based=True) < left_over(credit_based=False)


def test_the_receiver_asks_for_the_backlog_and_its_own_buffers_and_not_for_the_backlog_alone():
    """The case of the texts: backlog 4, one of two own buffers empty. They say 3 or 4; Flink and we take 5."""
    assert repr(Ledger("data", "backlog 4")).splitlines()[-1].split() == ["backlog", "4", "6", "1", "5", "5", "1"]


LIVE = {
    "0": live.live_flights, "7": live.live_queues, "10": lambda: live.live_readers(credit_based=False),
    "10, cured": lambda: live.live_readers(credit_based=True), "11": lambda: live.live_credit(2, 3),
}  # fmt: skip


def new_threads(before):
    """Those that are there now; of others in this process some may end meanwhile."""
    return set(threading.enumerate()) - before


@pytest.mark.parametrize("make", LIVE.values(), ids=LIVE)
def test_a_live_job_is_the_same_moment_each_time_until_it_is_seen_and_runs_then(make):
    before = set(threading.enumerate())
    words, picture = make().text(), make().svg()
    view = make()
    assert (view.text(), view.svg(), new_threads(before)) == (words, picture, set())
    assert "(recorded in the simulation, " in words
    view._on_message(view, {"type": "visible", "view": "one"}, None)
    run = until(lambda: view._source.run)
    until(lambda: run.snapshot().num_steps > 20)
    until(lambda: run.snapshot().tasks[0].rest_ms == 20)  # slow enough to be seen
    other = make()  # the cell is run again
    assert run.is_done
    until(lambda: not view.sampler.is_alive)
    until(lambda: not new_threads(before))
    view.close()
    other.close()


def test_a_live_job_that_nobody_ends_ends_by_itself(monkeypatch):
    clock = iter([0.0, 1.0, 599.0, 601.0])
    # The module's clock alone: other threads of this process ask the real one.
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert list(live._for_a_while("abcdef")) == ["a", "b"]


def test_the_largest_time_less_the_bound_less_one_decides_who_is_late():
    assert [late for _, _, late in closings([7, 11, 9, 12, 17, 15], (0, 1, 2)).rows] == [(9, 15), (9, 15), ()]
    assert repr(elements_on_the_wire()).splitlines()[4].split()[-9:] == [
        "02",
        "00",
        "00",
        "00",
        "00",
        "00",
        "00",
        "00",
        "0b",
    ]


@pytest.mark.parametrize("bound_min", [0, 10, 60])
def test_late_flights_are_those_whose_hour_ended_a_bound_before_the_newest(bound_min):
    found = arrivals(bound_min)
    late = [each.due_ms // 3_600_000 * 3_600_000 + 3_600_000 <= each.watermark_ms + 1 for each in found.flights]
    assert [each.is_late for each in found.flights] == late
    assert any(late)
    assert all(each.is_behind for each in found.late)
    assert found.svg().count("m0 -10") == len(found.late)


def test_the_quiet_airport_holds_all_back_until_it_speaks():
    text = [repr(WatermarkView(quiet_airport(), at=at)) for at in (35, 60)]
    assert "timestamps-2 → hourly[0]: none yet  ▲ holds it back" in text[0]
    assert "hourly → results-0: the end" in text[1]


def test_a_channel_that_is_back_counts_when_it_has_caught_up():
    rows = told_to_the_valve("0 at 10", "1 idle", "1 active", "0 at 20", "1 at 12", "1 at 20", num_channels=2).rows
    assert [row[2] for row in rows] == ["none yet", "(none yet)", "(none yet)", "(none yet)", "(12)", "20"]
    assert [row[-1] for row in rows] == ["-", "watermark 10", "-", "watermark 20", "-", "-"]


def test_the_monitor_takes_its_hundred_samples_and_the_sink_is_not_held_back():
    found = monitored()
    assert (found.num_samples, found.delay_ms) == (100, 50.0)
    assert found.took_ms >= 99 * found.delay_ms
    held = dict(found.rows)
    assert held["sink-0"] == 0
    assert min(held["source-0"], held["parse-0"]) > 90
    assert "sink-0       0 of 100 held back   ratio 0.00   OK" in repr(found)


def test_the_strip_ends_at_the_culprit_in_each_phase():
    lines = repr(heat_strip()).splitlines()
    held = {line[:8]: [line[10:][at : at + 8] for at in range(0, 36, 9)] for line in lines[1:6]}
    assert [name for name, cells in held.items() if "█" in cells[3]] == ["parse-0 ", "window-0", "window-1"]
    assert all(cells[0].strip() == "" for cells in held.values())
    assert held["parse-0 "][1].strip() == held["sink-0  "][3].strip() == ""


def test_the_jam_reaches_the_source_and_the_view_names_the_sink():
    recording = jammed_job(until_ms=200.0)
    view = JobView(recording, at=-1)
    assert "backpressured: source-0" in view.text()
    assert "bottleneck: sink-0 has too much to do" in view.text()
    view.close()


def test_link_by_link_each_node_stores_and_end_to_end_only_the_last():
    found = who_stores()
    assert min(found.per_link) > 0
    assert found.end_to_end[0] == 0 < found.per_link[1] < found.end_to_end[1]
    assert found.allocation[1] > found.allocation[0]


def test_a_balance_is_what_was_given_less_what_is_under_way():
    rows = [line.split()[-4:] for line in balance(5, "send 3", "credit 1", "send 3").splitlines()[1:]]
    assert [int(row[0]) - (int(row[1]) - int(row[2])) for row in rows] == [int(row[3]) for row in rows] == [5, 2, 3, 0]
