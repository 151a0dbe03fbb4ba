"""Timers: each fires once, and none that is due is left when time has advanced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from refimpl.job.deployment import Deployment
from refimpl.task.operators import Operator
from refimpl.task.task import Task
from refimpl.task.time_service import ProcessingTimers
from refimpl.task.timers import Timer, TimerQueue

__all__ = ["TimersLaw", "check_timer_queue"]


@dataclass(frozen=True, slots=True)
class _Seen:
    """How an operator was: its watermark, how much had happened to its timers, and those that were set."""

    watermark: int
    num_changes: tuple[int, int, int]
    timers: frozenset[Timer]


class TimersLaw:
    """The timers of all operators of a job, looked at after each step; `begin` comes before each attempt.

    A timer that is registered for a moment that is past fires with the next watermark, so only those are due that had
    been there before it.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], _Seen] = {}

    def begin(self) -> None:
        """Other tasks are there."""
        self._seen.clear()

    def look(self, deployments: Iterable[Deployment]) -> None:
        """Check what has happened since the last call.

        Raises:
            AssertionError: a timer was due and has not fired, or one has fired that was not set.
        """
        for deployment in deployments:
            for task in deployment.tasks:
                for operator in task.chain.operators:
                    for timers, _ in () if operator.states is None else operator.states.timers.values():
                        if isinstance(timers, TimerQueue):
                            self._look_at(task.name, operator, timers)
                        elif isinstance(timers, ProcessingTimers):
                            check_timer_queue(f"{task.name}/{operator.context.name}", timers.queue)
                            _check_at_rest(task, operator, timers)

    def _look_at(self, task: str, operator: Operator, queue: TimerQueue) -> None:
        place, before = (task, operator.context.name), self._seen.get((task, operator.context.name))
        watermark, num_changes = operator.current_watermark, queue.num_changes
        if before is not None and (before.watermark, before.num_changes) == (watermark, num_changes):
            return
        check_timer_queue("/".join(place), queue)
        timers = frozenset(queue.items())
        if before is not None and watermark > before.watermark:
            left = sorted(each[0] for each in timers & before.timers if each[0] <= watermark)
            assert not left, f"{'/'.join(place)}: the watermark is {watermark}, and timers of {left} have not fired"
        self._seen[place] = _Seen(watermark, num_changes, timers)


def check_timer_queue(owner: str, queue: TimerQueue) -> None:
    """What was registered has fired, was deleted, or is still set: once each.

    Raises:
        AssertionError: it is not so.
    """
    num_registered, num_fired, num_deleted = queue.num_changes
    num_set = len(queue.items())
    assert num_registered == num_fired + num_deleted + num_set == num_fired + num_deleted + len(queue), (
        f"{owner}: {num_registered} timers were registered, {num_fired} have fired, {num_deleted} were deleted, "
        f"{num_set} are set, and {len(queue)} different ones"
    )


def _check_at_rest(task: Task, operator: Operator, timers: ProcessingTimers) -> None:
    is_at_rest = not task.is_done and not task.is_runnable and all(each.is_available for each in task.writers)
    head = timers.queue.head
    assert not is_at_rest or head is None or head > timers.now_ms, (
        f"{task.name}/{operator.context.name} rests at {timers.now_ms} ms, and a timer of {head} ms has not fired"
    )
