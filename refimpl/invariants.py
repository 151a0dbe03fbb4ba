"""The laws every run keeps, checked on the whole system and not on its parts.

    Segments    every segment has exactly one holder: the global pool, an idle place in a local pool,
                a remote channel, or one buffer; and a buffer has exactly the references to be found
    Credit      the empty buffers of a remote channel are those it will announce and those it has
                promised; the promises are on their way, with the producer, or data coming back
    Backlog     a remote channel wants what its producer last said waits there, and its own buffers
    Fairness    on a connection, a channel with data and credit waits at most one round
    Hunger      a remote channel that has more empty buffers than it wants takes no more
    Order       sequence numbers have no gaps (asserted where buffers are read)
    Records     at the end, every exchange delivered what was emitted
    Liveness    if nothing can move, everything is done
    Memory      no pool has more out than its size and overdraft; together they have what there is

A broken law is our bug: an `AssertionError` that names the segment and tells its story.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.consumer.remote_channel import RemoteInputChannel
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.credit import ConsumerCredit
from refimpl.exchange.messages import AddCredit, BufferResponse, Message, PartitionRequest
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.exchange.producer_credit import ReaderSnapshot
from refimpl.job.deployment import Deployment
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.producer.broadcast_writer import BroadcastCopy
from refimpl.trace import Trace

__all__ = [
    "RecordCounts",
    "StepLaws",
    "check_all",
    "check_backlog",
    "check_credit",
    "check_end",
    "check_end_here",
    "check_liveness",
    "check_memory",
    "check_records",
    "check_segments",
]


def check_all(*deployments: Deployment) -> None:
    """The laws that hold between any two steps, on every TaskManager by itself.

    The deployments are all that have taken anything from their pools.
    """
    by_pool: dict[int, list[Deployment]] = {}
    for deployment in deployments:
        by_pool.setdefault(id(deployment.pool), []).append(deployment)
    for on_one_pool in by_pool.values():
        check_segments(*on_one_pool)
        check_memory(*on_one_pool)


def check_segments(*deployments: Deployment) -> None:
    """Every segment is in one place, and every reference to its buffer is accounted for.

    The deployments are all those of one TaskManager, which share its pool.
    """
    trace, network_pool = deployments[0].trace, deployments[0].pool
    holders: dict[int, str] = {segment.id: "the global pool" for segment in network_pool.free_segments}
    num_references = _count_references(deployments)
    for pool in _local_pools(deployments):
        for segment in pool.idle_segments:
            _claim(holders, segment.id, f"{pool.name} (idle)", trace)
        for segment_id, buffer in pool.lent.items():
            _claim(holders, segment_id, f"{pool.name} (lent)", trace)
            _check_references(buffer, pool.name, num_references, trace)
        in_use = len(pool.idle_segments) + len(pool.lent)
        assert in_use == pool.num_requested, (
            f"{pool.name} requested {pool.num_requested} segments, {in_use} can be found"
        )
    for channel in _remote_channels(deployments):
        for buffer in channel.buffers.exclusive_buffers:
            _claim(holders, buffer.segment.id, f"{channel} (exclusive)", trace)
            _check_references(buffer, repr(channel), num_references, trace)
    for segment in network_pool.segments:
        assert segment.id in holders, f"nobody holds segment {segment.id}\n{_story(trace, segment.id)}"


def check_memory(*deployments: Deployment) -> None:
    """No pool takes more than its share, and together they never promise or hold more than there is.

    The deployments are all those of one TaskManager, which share its pool. Shares are dealt anew when
    another deployment comes or goes, or a remote channel gives its exclusive buffers back, and one may
    come out smaller than what its pool has out, which then drains. Before that the bound is strict.
    """
    network_pool, channels, pools = deployments[0].pool, _remote_channels(deployments), _local_pools(deployments)
    has_dealt_anew = len(deployments) > 1 or any(channel.is_released for channel in channels)
    num_overdraft = max(deployment.config.max_overdraft_buffers for deployment in deployments)
    for pool in pools:
        limit = (pool.num_max if has_dealt_anew else pool.size) + num_overdraft
        assert pool.is_destroyed or pool.num_requested <= limit, (
            f"{pool.name} has {pool.num_requested} segments, its share is {pool.size}, its limit {limit}"
        )
    total = len(network_pool.segments)
    exclusive = sum(len(channel.buffers.exclusive_buffers) for channel in channels)
    num_out = sum(pool.num_requested for pool in pools)
    assert num_out + exclusive + network_pool.num_free == total, (
        f"{num_out} segments are with local pools, {exclusive} with remote channels and "
        f"{network_pool.num_free} are free, together not {total}"
    )
    sizes = sum(pool.size for pool in pools if not pool.is_destroyed)
    assert sizes + exclusive <= total, (
        f"local pools may use {sizes} segments and remote channels have {exclusive}, there are {total}"
    )


def check_credit(
    channels: Iterable[ConnectedChannel],
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
    readers = producer.snapshot().readers
    asked_for = set(readers)
    for message in (*consumer.unsent_messages, *to_producer):
        if isinstance(message, PartitionRequest | AddCredit):
            on_its_way[message.receiver] += message.credit
            asked_for.add(message.receiver)
    num_data: Counter[bytes] = Counter()
    for answer in to_consumer:
        if isinstance(answer, BufferResponse) and answer.data_type.is_buffer:
            num_data[answer.receiver] += 1
    for channel, credit in _reading(channels):
        num_empty = len(channel.buffers.empty_buffers)
        assert num_empty == credit.num_unannounced + credit.num_promised, (
            f"{channel} has {num_empty} empty buffers, {credit.num_promised} promised and "
            f"{credit.num_unannounced} to be announced"
        )
        receiver = channel.receiver
        if receiver not in asked_for:
            continue  # the wait before the request is repeated
        at_producer = readers[receiver].credit if receiver in readers else 0
        assert at_producer >= 0, f"{channel}: its producer has sent {-at_producer} buffers without credit"
        assert credit.num_promised == on_its_way[receiver] + at_producer + num_data[receiver], (
            f"{channel} has promised {credit.num_promised} buffers; {on_its_way[receiver]} credits are on "
            f"their way, {at_producer} with the producer, {num_data[receiver]} buffers on the way back"
        )


def check_backlog(channels: Iterable[ConnectedChannel], backlogs: Mapping[bytes, int]) -> None:
    """A channel wants as many buffers as its producer last said wait there, and its own.

    A backlog is a level: each one replaces the last. `backlogs` are the last that came, by receiver.
    """
    for channel, credit in _reading(channels):
        backlog = backlogs.get(channel.receiver, -1)  # below 0 it does not say
        assert backlog < 0 or credit.num_required == backlog + credit.num_exclusive, (
            f"{channel} wants {credit.num_required} buffers: {credit.num_exclusive} are its own, {backlog} wait"
        )


class StepLaws:
    """Fairness and hunger on one connection. Between two calls of `check` there must be one step."""

    def __init__(self) -> None:
        self._said: dict[bytes, int] = {}
        self._turns: dict[bytes, Counter[bytes]] = {}  # of the others, for each that waits
        self._num_empty: dict[bytes, int] = {}

    def check(
        self,
        channels: Iterable[ConnectedChannel],
        readers: Mapping[bytes, ReaderSnapshot],
        may_speak: Iterable[bytes],
    ) -> None:
        """`readers` are the producer's, by receiver; `may_speak` have data and credit, or an event."""
        said = {receiver: reader.last_sequence_number for receiver, reader in readers.items()}
        spoke = [receiver for receiver, number in said.items() if number != self._said.get(receiver, -1)]
        turns: dict[bytes, Counter[bytes]] = {}
        for waiting in may_speak:
            assert readers[waiting].is_enqueued, f"{waiting.hex()} may speak and is not in the line"
            turns[waiting] = Counter()
            if waiting in self._turns and waiting not in spoke:
                turns[waiting] = self._turns[waiting]
                turns[waiting].update(spoke)
            for other in spoke:
                assert turns[waiting][other] <= 1, f"{other.hex()} spoke twice while {waiting.hex()} waited"
        self._said, self._turns = said, turns
        for channel, credit in _reading(channels):
            num_empty = len(channel.buffers.empty_buffers)
            most = max(credit.num_required, self._num_empty.get(channel.receiver, num_empty))
            assert num_empty <= most, f"{channel} needs {most} empty buffers at most, it has {num_empty}"
            self._num_empty[channel.receiver] = num_empty


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
    check_end_here(*deployments)
    check_records([RecordCounts.of(deployment) for deployment in deployments])


def check_end_here(*deployments: Deployment) -> None:
    """On each of these TaskManagers, a run that ended well left nothing behind."""
    check_liveness(*deployments)
    check_all(*deployments)
    for deployment in deployments:
        for partition in deployment.partitions:
            for subpartition in partition.subpartitions:
                assert subpartition.num_queued == 0, f"{subpartition} was not read to its end"
    for pool in _local_pools(deployments):
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
            is_broadcast = isinstance(writer.copy, BroadcastCopy)
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


def _reading(channels: Iterable[ConnectedChannel]) -> Iterator[tuple[RemoteInputChannel, ConsumerCredit]]:
    """The channels that may still receive, with their credit, if there are credits."""
    for channel in channels:
        if isinstance(channel, RemoteInputChannel) and not channel.is_released and channel.error is None:
            yield channel, channel.buffers.credit


def _local_pools(deployments: Iterable[Deployment]) -> list[LocalBufferPool]:
    outputs = [partition.pool for each in deployments for partition in each.partitions]
    return outputs + [pool for each in deployments for pool in each.shuffle.gate_pools]


def _remote_channels(deployments: Iterable[Deployment]) -> list[ConnectedChannel]:
    return [channel for each in deployments for channel in each.shuffle.remote_channels]


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
