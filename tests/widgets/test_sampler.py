"""A pump on a real threaded run: coalesced, watched or not, and it ends."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from refimpl.drivers import ThreadedRun
from refimpl.errors import LocalUsageError
from widgets import PipelineMap, Sampler

DEADLINE_S = 120.0


class Mailbox:
    """Collects messages, says on which thread they came, and waits for one."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.threads: set[str] = set()
        self._arrived = threading.Condition()

    def __call__(self, message: dict[str, Any]) -> None:
        with self._arrived:
            self.messages.append(message)
            self.threads.add(threading.current_thread().name)
            self._arrived.notify_all()

    def wait_for(self, wanted) -> dict[str, Any]:
        with self._arrived:
            assert self._arrived.wait_for(lambda: any(map(wanted, self.messages)), DEADLINE_S), self.messages[-3:]
            return next(message for message in self.messages if wanted(message))


def steps_of(snapshot):
    return [snapshot.num_steps, snapshot.time_ms]


def sampler_of(run, box, pack=steps_of, **options):
    pump = Sampler(run, pack, box, **options)
    pump.watch(True)
    pump.start()
    return pump


def test_it_ends_with_the_frame_that_says_done(job):
    box = Mailbox()
    run = ThreadedRun(job(400)).start()
    pump = sampler_of(run, box)
    run.join(DEADLINE_S)
    last = box.wait_for(lambda message: message["done"])
    pump._thread.join(DEADLINE_S)
    assert not pump.is_alive
    assert last is box.messages[-1]
    assert last["frame"][0] == run.snapshot().num_steps
    assert [message["seq"] for message in box.messages] == list(range(1, len(box.messages) + 1))
    assert box.threads == {"sluice-sampler"}


def test_what_comes_home_after_the_end_is_still_shown(job):
    box = Mailbox()
    run = ThreadedRun(job(40)).start()
    away = [3]
    pump = sampler_of(run, box, pack=lambda snapshot: [snapshot.num_steps, snapshot.time_ms, *away])
    run.join(DEADLINE_S)
    box.wait_for(lambda message: message["done"] and message["frame"][2] == 3)
    away[0] = 0
    box.wait_for(lambda message: message["done"] and message["frame"][2] == 0)
    pump._thread.join(DEADLINE_S)
    assert not pump.is_alive
    assert [message["frame"][2] for message in box.messages if message["done"]] == [3, 0]


def test_a_frame_like_the_last_is_not_sent(job, gate):
    box = Mailbox()
    with ThreadedRun(job(40)) as run:  # not started: nothing moves, so there is one frame
        pump = sampler_of(run, box)
        box.wait_for(lambda message: message["seq"] == 1)
        looked = threading.Event()
        pump.submit(lambda: pump.submit(lambda: pump.submit(looked.set)))
        assert looked.wait(DEADLINE_S)
        assert pump.num_sent == 1
        assert pump.num_skipped >= 1
        assert pump.stop()


def test_a_note_pauses_and_resumes_the_run(job, gate):
    box = Mailbox()
    with ThreadedRun(job(200_000)) as run:
        pump = sampler_of(run.start(), box)
        pump.submit(run.pause)
        box.wait_for(lambda message: message["paused"])
        seen = len(box.messages)
        pump.submit(run.resume)
        box.wait_for(lambda message: not message["paused"] and message["seq"] > seen)
        assert pump.stop()


def test_whoever_looks_again_gets_a_frame_at_once(job):
    box = Mailbox()
    with ThreadedRun(job(40)) as run:
        pump = sampler_of(run, box)
        box.wait_for(lambda message: message["seq"] == 1)
        pump.watch(False)
        pump.watch(True)
        box.wait_for(lambda message: message["seq"] == 2)
        assert pump.stop()


def test_an_unwatched_pump_ends_with_the_job(job):
    box = Mailbox()
    run = ThreadedRun(job(40)).start()
    pump = Sampler(run, lambda snapshot: [], box)
    pump.start()
    run.join(DEADLINE_S)
    pump._thread.join(DEADLINE_S)
    assert not pump.is_alive
    assert box.messages == []


def test_whoever_looks_after_the_end_still_gets_the_last_frame(job):
    box = Mailbox()
    run = ThreadedRun(job(40)).start()
    pump = Sampler(run, steps_of, box)
    pump.start()
    run.join(DEADLINE_S)
    pump._thread.join(DEADLINE_S)
    pump.watch(True)
    assert [(m["done"], m["error"], m["frame"][0]) for m in box.messages] == [(True, "", run.snapshot().num_steps)]
    pump.watch(False)
    assert len(box.messages) == 1


def test_it_never_looks_more_often_than_it_was_told(job):
    looks: list[float] = []

    def pack(snapshot):
        looks.append(time.monotonic())
        return [len(looks), 0.0]  # never like the last

    with ThreadedRun(job(40)) as run:
        box = Mailbox()
        pump = Sampler(run, pack, box, 25)
        pump.watch(True)
        pump.start()
        box.wait_for(lambda message: message["seq"] == 12)
        assert pump.stop()
    assert looks[11] - looks[0] >= 11 / 25 * 0.9


def test_closing_the_view_stops_the_pump_and_not_the_job(job):
    with ThreadedRun(job(200_000)) as run:
        view = PipelineMap(run.start())
        assert not view.sampler.is_alive  # nobody has looked yet
        view._on_message(view, {"type": "visible", "view": "a"}, None)
        assert view.sampler.is_alive
        view.close()
        assert not view.sampler.is_alive
        assert not run.is_done


@pytest.mark.parametrize("rate", [0, -1, 31, 1000])
def test_a_rate_that_would_flood_is_refused(rate):
    with pytest.raises(LocalUsageError, match="at most 30"):
        Sampler(None, lambda snapshot: [], print, rate)


def test_a_moment_that_cannot_be_shown_is_told_once_and_the_pump_goes_on(job):
    """Whatever a view of the learner's own does with a moment."""
    is_broken = threading.Event()
    is_broken.set()

    def pack(snapshot):
        if is_broken.is_set():
            raise ZeroDivisionError("oh")
        return steps_of(snapshot)

    box = Mailbox()
    with ThreadedRun(job(200_000)) as run:
        pump = sampler_of(run.start(), box, pack)
        box.wait_for(lambda message: message["type"] == "refused")
        looked = threading.Event()
        pump.submit(lambda: pump.submit(lambda: pump.submit(looked.set)))
        assert looked.wait(DEADLINE_S)
        assert box.messages == [{"type": "refused", "words": "ZeroDivisionError: oh"}]
        is_broken.clear()
        box.wait_for(lambda message: message["type"] == "frame")
        assert box.messages[1] == {"type": "refused", "words": ""}
        assert pump.stop()


def test_what_is_asked_for_after_the_end_is_refused_and_not_left_without_an_answer(job):
    box = Mailbox()
    run = ThreadedRun(job(40)).start()
    pump = sampler_of(run, box)
    run.join(DEADLINE_S)
    box.wait_for(lambda message: message.get("done"))
    pump.submit(lambda: run.slow("sink", 5))  # while it waits for what comes home
    box.wait_for(lambda message: message["type"] == "refused")
    pump._thread.join(DEADLINE_S)
    pump.submit(lambda: run.slow("sink", 5))
    words = [message["words"] for message in box.messages if message["type"] == "refused"]
    assert words == ["the job has ended: there is nothing left to change"] * 2
    assert [task.rest_ms for task in run.snapshot().tasks] == [0.0] * len(run.snapshot().tasks)
