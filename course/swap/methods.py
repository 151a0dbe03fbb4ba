"""A learner's selector and a learner's channel copy in a running job, with ours behind them.

A selector is made anew from the old one's settings and put in its place. A copy holds open buffers and a record in
hand, so the new one goes on with them. What the learner's method raises takes it out: ours answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from course.swap.guard import Guard
from refimpl.job import Deployment
from refimpl.producer import ChannelCopy, KeyGroupSelector, RecordWriter
from refimpl.task import Task

__all__ = ["our_copy", "our_selector", "their_copy", "their_selector"]


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
