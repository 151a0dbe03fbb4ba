"""Backlog: a channel wants what its producer last said waits there, and its own buffers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.laws.holders import reading_of

__all__ = ["check_backlog"]


def check_backlog(channels: Iterable[ConnectedChannel], backlogs: Mapping[bytes, int]) -> None:
    """A channel wants as many buffers as its producer last said wait there, and its own.

    A backlog is a level: each one replaces the last. `backlogs` are the last that came, by receiver.
    """
    for channel, credit in reading_of(channels):
        backlog = backlogs.get(channel.receiver, -1)  # below 0 it does not say
        assert backlog < 0 or credit.num_required == backlog + credit.num_exclusive, (
            f"{channel} wants {credit.num_required} buffers: {credit.num_exclusive} are its own, {backlog} wait"
        )
