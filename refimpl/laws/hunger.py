"""Hunger: a remote channel that has more empty buffers than it wants takes no more."""

from __future__ import annotations

from collections.abc import Iterable

from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.laws.holders import reading_of

__all__ = ["HungerLaw"]


class HungerLaw:
    """What the channels of one connection had. Between two calls of `check` there must be one step."""

    def __init__(self) -> None:
        self._num_empty: dict[bytes, int] = {}

    def check(self, channels: Iterable[ConnectedChannel]) -> None:
        """No channel has more than it wants, unless it had as many before."""
        for channel, credit in reading_of(channels):
            num_empty = len(channel.buffers.empty_buffers)
            most = max(credit.num_required, self._num_empty.get(channel.receiver, num_empty))
            assert num_empty <= most, f"{channel} needs {most} empty buffers at most, it has {num_empty}"
            self._num_empty[channel.receiver] = num_empty
