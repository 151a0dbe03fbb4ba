"""The runs behind figures tell what lessons and Flink's own texts say of them."""

import re
import threading

import pytest

from course.figures import live
from course.figures.channels import Ledger
from course.figures.flights import delays_beside
from course.figures.jam import PHASES, follow, left_over
from course.figures.queues import local_way
from course.figures.wire import nine_steps
from tests.support.polling import until


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


@pytest.mark.parametrize("make", LIVE.values(), ids=LIVE)
def test_a_live_job_is_the_same_moment_each_time_until_it_is_seen_and_runs_then(make):
    before = threading.active_count()
    words, picture = make().text(), make().svg()
    view = make()
    assert (view.text(), view.svg(), threading.active_count()) == (words, picture, before)
    assert "(recorded in the simulation, " in words
    view._on_message(view, {"type": "visible", "view": "one"}, None)
    run = until(lambda: view._source.run)
    until(lambda: run.snapshot().num_steps > 20)
    assert run.snapshot().tasks[0].rest_ms == 20, "slow enough to be seen"
    other = make()  # the cell is run again
    assert run.is_done
    until(lambda: not view.sampler.is_alive)
    assert threading.active_count() == before
    view.close()
    other.close()


def test_a_live_job_that_nobody_ends_ends_by_itself(monkeypatch):
    clock = iter([0.0, 1.0, 599.0, 601.0])
    monkeypatch.setattr(live.time, "monotonic", lambda: next(clock))
    assert list(live._for_a_while("abcdef")) == ["a", "b"]
