"""Who may hold segments on a TaskManager: what several laws ask about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.consumer.remote_channel import RemoteInputChannel
from refimpl.exchange.credit import ConsumerCredit
from refimpl.job.deployment import Deployment
from refimpl.memory.local_pool import LocalBufferPool

__all__ = ["local_pools_of", "reading_of", "remote_channels_of"]


def local_pools_of(deployments: Iterable[Deployment]) -> list[LocalBufferPool]:
    """Those of the outputs, and those of the gates."""
    outputs = [partition.pool for each in deployments for partition in each.partitions]
    return outputs + [pool for each in deployments for pool in each.shuffle.gate_pools]


def remote_channels_of(deployments: Iterable[Deployment]) -> list[ConnectedChannel]:
    """Those that read from other TaskManagers."""
    return [channel for each in deployments for channel in each.shuffle.remote_channels]


def reading_of(channels: Iterable[ConnectedChannel]) -> Iterator[tuple[RemoteInputChannel, ConsumerCredit]]:
    """The channels that may still receive, with their credit, if there are credits."""
    for channel in channels:
        if isinstance(channel, RemoteInputChannel) and not channel.is_released and channel.error is None:
            yield channel, channel.buffers.credit
