"""The laws every run keeps, checked on the whole system and not on its parts.

    Segments    every segment has exactly one holder: the global pool, an idle place in a local pool,
                a remote channel, or one buffer; and a buffer has exactly the references to be found
    Credit      what a remote channel has promised is on its way, with the producer, or data coming back
    Order       sequence numbers have no gaps (asserted where buffers are read)
    Records     at the end, every exchange delivered what was emitted
    Liveness    if nothing can move, everything is done
    Memory      no pool has more out than its size and overdraft; together they have what there is

A broken law is our bug: an `AssertionError` that names the segment and tells its story.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refimpl.consumer.remote_channel import RemoteInputChannel
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.messages import AddCredit, BufferResponse, Message, PartitionRequest
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.job.deployment import Deployment
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.producer.broadcast_writer import BroadcastRecordWriter
from refimpl.trace import Trace

__all__ = [
    "RecordCounts",
    "check_all",
    "check_credit",
    "check_end",
    "check_end_here",
    "check_liveness",
    "check_memory",
    "check_records",
    "check_segments",
]


def check_all(*deployments: Deployment) -> None:
    """The laws that hold between any two steps, on every TaskManager by itself."""
    for deployment in deployments:
        check_segments(deployment)
        check_memory(deployment)


def check_segments(deployment: Deployment) -> None:
    """Every segment is in one place, and every reference to its buffer is accounted for."""
    trace = deployment.trace
    holders: dict[int, str] = {
        segment.id: "the global pool" for segment in deployment.pool.free_segments
    }
    num_references = _count_references(deployment)
    for pool in _local_pools(deployment):
        for segment in pool.idle_segments:
            _claim(holders, segment.id, f"{pool.name} (idle)", trace)
        for segment_id, buffer in pool.lent.items():
            _claim(holders, segment_id, f"{pool.name} (lent)", trace)
            _check_references(buffer, pool.name, num_references, trace)
        in_use = len(pool.idle_segments) + len(pool.lent)
        assert in_use == pool.num_requested, (
            f"{pool.name} requested {pool.num_requested} segments, {in_use} can be found"
        )
    for channel in deployment.shuffle.remote_channels:
        for buffer in channel.buffers.exclusive_buffers:
            _claim(holders, buffer.segment.id, f"{channel} (exclusive)", trace)
            _check_references(buffer, repr(channel), num_references, trace)
    for segment in deployment.pool.segments:
        assert segment.id in holders, f"nobody holds segment {segment.id}\n{_story(trace, segment.id)}"


def check_memory(deployment: Deployment) -> None:
    """No pool takes more than its share, and together they never promise or hold more than there is.

    Shares are dealt anew when a remote channel gives its exclusive buffers back, and one may come out
    smaller than what its pool has out, which then drains. Before that the bound is strict.
    """
    pools = _local_pools(deployment)
    has_dealt_anew = any(channel.is_released for channel in deployment.shuffle.remote_channels)
    for pool in pools:
        limit = (pool.num_max if has_dealt_anew else pool.size) + deployment.config.max_overdraft_buffers
        assert pool.is_destroyed or pool.num_requested <= limit, (
            f"{pool.name} has {pool.num_requested} segments, its share is {pool.size}, its limit {limit}"
        )
    total = len(deployment.pool.segments)
    exclusive = sum(len(channel.buffers.exclusive_buffers) for channel in deployment.shuffle.remote_channels)
    num_out = sum(pool.num_requested for pool in pools)
    assert num_out + exclusive + deployment.pool.num_free == total, (
        f"{num_out} segments are with local pools, {exclusive} with remote channels and "
        f"{deployment.pool.num_free} are free, together not {total}"
    )
    sizes = sum(pool.size for pool in pools)
    assert sizes + exclusive <= total, (
        f"local pools may use {sizes} segments and remote channels have {exclusive}, there are {total}"
    )


def check_credit(
    channels: Iterable[RemoteInputChannel],
    consumer: ConsumerConnection,
    producer: ProducerConnection,
    to_producer: Iterable[Message],
    to_consumer: Iterable[Message],
) -> None:
    """What a channel has promised is on its way, with the producer, or data on the way back.

    `channels` are those of this connection; the messages are those that one end has sent and the
    other has not received. Events cost nothing and do not count. The law holds for every channel that
    still reads, until the connection ends.
    """
    if consumer.is_closed or producer.is_closed:
        return
    on_its_way: Counter[bytes] = Counter()
    asked_for = set(producer.snapshot().readers)
    for message in (*consumer.unsent_messages, *to_producer):
        if isinstance(message, PartitionRequest | AddCredit):
            on_its_way[message.receiver] += message.credit
            asked_for.add(message.receiver)
    num_data: Counter[bytes] = Counter()
    for answer in to_consumer:
        if isinstance(answer, BufferResponse) and answer.data_type.is_buffer:
            num_data[answer.receiver] += 1
    readers = producer.snapshot().readers
    for channel in channels:
        if channel.is_released or channel.receiver not in asked_for:
            continue  # not asked for: the wait before the request is repeated
        at_producer = readers[channel.receiver].credit if channel.receiver in readers else 0
        found = on_its_way[channel.receiver] + at_producer + num_data[channel.receiver]
        promised = channel.buffers.credit.num_promised
        assert promised == found, (
            f"{channel} has promised {promised} buffers; {on_its_way[channel.receiver]} credits are on "
            f"their way, {at_producer} with the producer, {num_data[channel.receiver]} buffers on the way back"
        )


def check_liveness(*deployments: Deployment) -> None:
    """Nothing can move, so everything must be done."""
    for deployment in deployments:
        for task in deployment.tasks:
            assert task.is_done, (
                f"nothing can move, but {task.name} is {task.progress.value}; "
                f"its outputs: {[writer.partition.pool for writer in task.writers]}"
            )


def check_end(*deployments: Deployment) -> None:
    """A run that ended well left nothing behind, and every exchange delivered what was emitted.

    The deployments are those of all TaskManagers.
    """
    for deployment in deployments:
        check_end_here(deployment)
    check_records([RecordCounts.of(deployment) for deployment in deployments])


def check_end_here(deployment: Deployment) -> None:
    """On one TaskManager, a run that ended well left nothing behind."""
    check_liveness(deployment)
    check_all(deployment)
    for partition in deployment.partitions:
        for subpartition in partition.subpartitions:
            assert subpartition.num_queued == 0, f"{subpartition} was not read to its end"
    for pool in _local_pools(deployment):
        assert not pool.lent, f"{pool.name} still has buffers out"


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """On one TaskManager, records emitted to and arrived at each job vertex, by its name."""

    emitted: Counter[str]
    delivered: Counter[str]

    @staticmethod
    def of(deployment: Deployment) -> RecordCounts:
        """The counts of one part of a job."""
        job = deployment.graph.job
        counts = RecordCounts(Counter(), Counter())
        for (index, _), writer in deployment.writers.items():
            is_broadcast = isinstance(writer, BroadcastRecordWriter)
            copies = len(writer.partition.subpartitions) if is_broadcast else 1
            counts.emitted[job.vertices[job.edges[index].target].name] += writer.num_records * copies
        for vertex, task in deployment.vertices_and_tasks:
            counts.delivered[vertex.name] += task.chain.num_records_in
        return counts


def check_records(parts: Sequence[RecordCounts]) -> None:
    """At the end, what all TaskManagers together emitted to a vertex has arrived there."""
    emitted = sum((part.emitted for part in parts), Counter())
    delivered = sum((part.delivered for part in parts), Counter())
    for name, num_emitted in emitted.items():
        assert num_emitted == delivered[name], (
            f"{num_emitted} records were emitted to {name}, {delivered[name]} arrived"
        )


def _local_pools(deployment: Deployment) -> list[LocalBufferPool]:
    return [*(partition.pool for partition in deployment.partitions), *deployment.shuffle.gate_pools]


def _count_references(deployment: Deployment) -> Counter[int]:
    """For each buffer, by identity, how many holders can be found."""
    found: Counter[int] = Counter()
    for partition in deployment.partitions:
        for subpartition in partition.subpartitions:
            for consumer in subpartition.consumers:
                found[id(consumer.buffer)] += 1
    for writer in deployment.writers.values():
        for builder in writer.open_builders:
            found[id(builder.buffer)] += 1
        if isinstance(writer, BroadcastRecordWriter) and writer.private_consumer is not None:
            found[id(writer.private_consumer.buffer)] += 1
    held = [piece for task in deployment.tasks for piece in task.held_buffers()]
    for channel in deployment.shuffle.remote_channels:
        held += channel.held_buffers
    for connection in deployment.shuffle.producer_connections:
        held += connection.lent_buffers
    for receiving in deployment.shuffle.consumer_connections:
        if receiving.decoder.held_buffer is not None:
            held.append(receiving.decoder.held_buffer)
    found.update(id(_whole(piece)) for piece in held)
    return found


def _check_references(
    buffer: Buffer, holder: str, num_references: Counter[int], trace: Trace | None
) -> None:
    found = num_references[id(buffer)]
    assert buffer.num_references == found, (
        f"segment {buffer.segment.id} of {holder}: its buffer counts {buffer.num_references} "
        f"references, {found} holders can be found\n{_story(trace, buffer.segment.id)}"
    )


def _whole(buffer: Buffer | BufferSlice) -> Buffer:
    return buffer.parent if isinstance(buffer, BufferSlice) else buffer


def _claim(holders: dict[int, str], segment_id: int, holder: str, trace: Trace | None) -> None:
    assert segment_id not in holders, (
        f"segment {segment_id} is with {holders[segment_id]} and with {holder}\n"
        f"{_story(trace, segment_id)}"
    )
    holders[segment_id] = holder


def _story(trace: Trace | None, segment_id: int) -> str:
    if trace is None:
        return "(give the driver a Trace to see the story of the segment)"
    return trace.story("segment", segment_id)
