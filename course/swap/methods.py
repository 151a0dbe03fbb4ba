"""A learner's selector, channel copy and flush policy in a running job, with ours behind them.

A selector is made anew from the old one's settings and put in its place. A copy holds open buffers and a record in
hand, so the new one goes on with them; a policy goes on with the deadline. What the learner's method raises takes it
out: ours answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from course.swap.guard import Guard
from refimpl.job import Deployment
from refimpl.producer import (
    BufferWritingResultPartition,
    ChannelCopy,
    KeyGroupSelector,
    OutputFlusher,
    RecordWriter,
)
from refimpl.task import Task

__all__ = ["our_copy", "our_flusher", "our_selector", "their_copy", "their_flusher", "their_selector"]


def _writers(job: Any) -> Iterator[tuple[Task, RecordWriter]]:
    """Each task of a job with each of its writers."""
    deployments: list[Deployment] = getattr(job, "deployments", None) or [job.deployment]
    for deployment in deployments:
        for task in deployment.tasks:
            for writer in task.writers:
                yield task, writer


# -- selectors -------------------------------------------------------------------------------------


def our_selector(job: Any) -> None:
    """Put in a selector of ours for each that there is: the swap that changes nothing."""
    _swap_selectors(job, KeyGroupSelector)


def their_selector(job: Any, guard: Guard) -> None:
    """Put the learner's selectors in."""

    def channel_of_key(self: Any, key: object) -> int:
        if not guard.is_out:
            with guard.call():
                channel: Any = guard.part.channel_of_key(self, key)
                if not 0 <= channel < self.num_channels or channel != int(channel):
                    raise IndexError(f"there is no channel {channel!r}; they are 0 to {self.num_channels - 1}")
                return int(channel)
        return KeyGroupSelector.channel_of_key(self, key)

    with guard.call():
        _swap_selectors(job, type(guard.part.__name__, (guard.part,), {"channel_of_key": channel_of_key}))


def _swap_selectors(job: Any, make: type[KeyGroupSelector]) -> None:
    for task, writer in _writers(job):
        one = writer.selector
        if type(one) is KeyGroupSelector:
            other = make(one.key_of, one.max_parallelism, one.key_type)
            other.setup(one.num_channels)
            task.submit(partial(writer.swap_selector, other))


# -- copies ----------------------------------------------------------------------------------------


def our_copy(job: Any) -> None:
    """Put in a copy of ours for each writer that records are dealt out by: the swap that changes nothing."""
    _swap_copies(job, None)


def their_copy(job: Any, guard: Guard) -> None:
    """Let the learner's class copy from the next record on."""

    def copy_to_channels(self: Any) -> bool:
        if not guard.is_out:
            with guard.call():
                return bool(guard.part.copy_to_channels(self))
        return ChannelCopy.copy_to_channels(self)

    with guard.call():
        _swap_copies(job, type(guard.part.__name__, (guard.part,), {"copy_to_channels": copy_to_channels}))


def _swap_copies(job: Any, part: type[ChannelCopy] | None) -> None:
    for task, writer in _writers(job):
        if not writer.selector.is_broadcast:
            task.submit(partial(writer.swap_copy, part or writer.copies_with))


# -- flush policies --------------------------------------------------------------------------------


def our_flusher(job: Any) -> None:
    """Put in a flush policy of ours for each output: the swap that changes nothing."""
    _swap_flushers(job, OutputFlusher)


def their_flusher(job: Any, guard: Guard) -> None:
    """Let the learner's policy say when readers are told."""
    with guard.call():
        _swap_flushers(job, _guarded_flusher(guard))


def _guarded_flusher(guard: Guard) -> type[OutputFlusher]:
    """The learner's class with ours behind it."""
    theirs: Any = guard.part

    class Guarded(theirs):  # type: ignore[misc]  # the class is the learner's
        deadline_ms: float | None
        given_ms: float | None = None  # the deadline that theirs gave last

        def is_after_each_record(self) -> bool:
            if not guard.is_out:
                with guard.call():
                    return bool(super().is_after_each_record())
            return OutputFlusher.is_after_each_record(self)

        def next_deadline(self, now_ms: float, is_waiting: bool) -> float | None:
            before = self.deadline_ms
            if not guard.is_out:
                with guard.call():
                    given = super().next_deadline(now_ms, is_waiting)
                    if given is not None and not is_waiting:  # a run without end: there is always a deadline
                        raise ValueError(f"a deadline at {given} ms for nothing that waits")
                    self.given_ms = None if given is None else float(given)
                    return self.given_ms
                self.deadline_ms = before
            return OutputFlusher.next_deadline(self, now_ms, is_waiting)

        def is_due(self, now_ms: float, since_ms: float | None = None) -> bool:
            before = self.deadline_ms
            if not guard.is_out:
                with guard.call():
                    is_due = bool(super().is_due(now_ms, since_ms))
                    if is_due or since_ms is not None or self.given_ms is None or now_ms < self.given_ms:
                        return is_due  # otherwise who waits for its deadline would come again and again
                    raise ValueError(f"nothing was due at {now_ms:g} ms, though it had said {self.given_ms:g}")
                self.deadline_ms = before if since_ms is not None or before is None else min(before, now_ms)
            return OutputFlusher.is_due(self, now_ms, since_ms)

    Guarded.__name__ = theirs.__name__
    return Guarded


def _swap_flushers(job: Any, make: type[OutputFlusher]) -> None:
    for task, writer in _writers(job):
        task.submit(partial(_put_flusher, writer.partition, make))


def _put_flusher(partition: BufferWritingResultPartition, make: type[OutputFlusher]) -> None:
    flusher = make(partition.flusher.timeout_ms)
    flusher.deadline_ms = partition.flusher.deadline_ms
    partition.flusher = flusher
