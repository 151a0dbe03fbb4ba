"""Segments: each has exactly one holder, and a buffer exactly the references that can be found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from refimpl.job.deployment import Deployment
from refimpl.laws.holders import local_pools_of, remote_channels_of
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.producer.broadcast_writer import BroadcastCopy
from refimpl.trace import Trace

__all__ = ["check_segments"]


def check_segments(*deployments: Deployment) -> None:
    """Every segment is in one place, and every reference to its buffer is accounted for.

    The deployments are all those of one TaskManager, which share its pool.
    """
    trace, network_pool = deployments[0].trace, deployments[0].pool
    holders: dict[int, str] = {segment.id: "the global pool" for segment in network_pool.free_segments}
    num_references = _count_references(deployments)
    for pool in local_pools_of(deployments):
        for segment in pool.idle_segments:
            _claim(holders, segment.id, f"{pool.name} (idle)", trace)
        for segment_id, buffer in pool.lent.items():
            _claim(holders, segment_id, f"{pool.name} (lent)", trace)
            _check_references(buffer, pool.name, num_references, trace)
        in_use = len(pool.idle_segments) + len(pool.lent)
        assert in_use == pool.num_requested, (
            f"{pool.name} requested {pool.num_requested} segments, {in_use} can be found"
        )
    for channel in remote_channels_of(deployments):
        for buffer in channel.buffers.exclusive_buffers:
            _claim(holders, buffer.segment.id, f"{channel} (exclusive)", trace)
            _check_references(buffer, repr(channel), num_references, trace)
    for segment in network_pool.segments:
        assert segment.id in holders, f"nobody holds segment {segment.id}\n{_story(trace, segment.id)}"


def _count_references(deployments: Iterable[Deployment]) -> Counter[int]:
    """For each buffer, by identity, how many holders can be found."""
    return sum(map(_references_within, deployments), Counter())


def _references_within(deployment: Deployment) -> Counter[int]:
    found: Counter[int] = Counter()
    for partition in deployment.partitions:
        for subpartition in partition.subpartitions:
            for consumer in subpartition.queue:
                found[id(consumer.buffer)] += 1
    for writer in deployment.writers.values():
        for builder in writer.copy.open_builders:
            found[id(builder.buffer)] += 1
        if isinstance(writer.copy, BroadcastCopy) and writer.copy.private_consumer is not None:
            found[id(writer.copy.private_consumer.buffer)] += 1
    held = [piece for task in deployment.tasks for piece in task.input.held_buffers]
    for channel in deployment.shuffle.remote_channels:
        held += channel.held_buffers
    for connection in deployment.shuffle.producer_connections:
        held += connection.lent_buffers
    for receiving in deployment.shuffle.consumer_connections:
        if receiving.decoder.held_buffer is not None:
            held.append(receiving.decoder.held_buffer)
    found.update(id(_whole(piece)) for piece in held)
    return found


def _check_references(buffer: Buffer, holder: str, num_references: Counter[int], trace: Trace | None) -> None:
    found = num_references[id(buffer)]
    assert buffer.num_references == found, (
        f"segment {buffer.segment.id} of {holder}: its buffer counts {buffer.num_references} "
        f"references, {found} holders can be found\n{_story(trace, buffer.segment.id)}"
    )


def _whole(buffer: Buffer | BufferSlice) -> Buffer:
    return buffer.parent if isinstance(buffer, BufferSlice) else buffer


def _claim(holders: dict[int, str], segment_id: int, holder: str, trace: Trace | None) -> None:
    assert segment_id not in holders, (
        f"segment {segment_id} is with {holders[segment_id]} and with {holder}\n{_story(trace, segment_id)}"
    )
    holders[segment_id] = holder


def _story(trace: Trace | None, segment_id: int) -> str:
    if trace is None:
        return "(give the driver a Trace to see the story of the segment)"
    return trace.story("segment", segment_id)
