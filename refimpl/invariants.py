"""The laws every run keeps, checked on the whole system and not on its parts.

    Segments    every segment has exactly one holder: the global pool, an idle place in a local pool,
                or one buffer; and a buffer has exactly the references that can be found
    Order       sequence numbers have no gaps (asserted where buffers are read)
    Records     at the end, every exchange delivered what was emitted
    Liveness    if nothing can move, everything is done
    Memory      no pool has more out than its size and overdraft; together they have what there is

A broken law is our bug: an `AssertionError` that names the segment and tells its story.
"""

from __future__ import annotations

from collections import Counter

from refimpl.job.deployment import Deployment
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.producer.broadcast_writer import BroadcastRecordWriter
from refimpl.trace import Trace

__all__ = ["check_all", "check_end", "check_liveness", "check_memory", "check_segments"]


def check_all(deployment: Deployment) -> None:
    """The laws that hold between any two steps."""
    check_segments(deployment)
    check_memory(deployment)


def check_segments(deployment: Deployment) -> None:
    """Every segment is in one place, and every reference to its buffer is accounted for."""
    holders: dict[int, str] = {
        segment.id: "the global pool" for segment in deployment.pool.free_segments
    }
    num_references = _count_references(deployment)
    for partition in deployment.partitions:
        pool = partition.pool
        for segment in pool.idle_segments:
            _claim(holders, segment.id, f"{pool.name} (idle)", deployment.trace)
        for segment_id, buffer in pool.lent.items():
            _claim(holders, segment_id, f"{pool.name} (lent)", deployment.trace)
            found = num_references[id(buffer)]
            assert buffer.num_references == found, (
                f"segment {segment_id} of {pool.name}: its buffer counts {buffer.num_references} "
                f"references, {found} holders can be found\n{_story(deployment.trace, segment_id)}"
            )
        in_use = len(pool.idle_segments) + len(pool.lent)
        assert in_use == pool.num_requested, (
            f"{pool.name} requested {pool.num_requested} segments, {in_use} can be found"
        )
    for segment in deployment.pool.segments:
        assert segment.id in holders, (
            f"nobody holds segment {segment.id}\n{_story(deployment.trace, segment.id)}"
        )


def check_memory(deployment: Deployment) -> None:
    """No pool takes more than its share, and together they never promise or hold more than there is.

    Pools shrink only while a job is being deployed, when nothing is out: so there is nothing to
    drain, and the bound is strict.
    """
    for partition in deployment.partitions:
        pool = partition.pool
        limit = pool.size + deployment.config.max_overdraft_buffers
        assert pool.is_destroyed or pool.num_requested <= limit, (
            f"{pool.name} has {pool.num_requested} segments, its share is {pool.size}, its limit {limit}"
        )
    total = len(deployment.pool.segments)
    num_out = sum(partition.pool.num_requested for partition in deployment.partitions)
    assert num_out + deployment.pool.num_free == total, (
        f"{num_out} segments are with local pools and {deployment.pool.num_free} are free, "
        f"together not {total}"
    )
    sizes = sum(partition.pool.size for partition in deployment.partitions)
    assert sizes <= total, f"local pools may use {sizes} segments, there are {total}"


def check_liveness(deployment: Deployment) -> None:
    """Nothing can move, so everything must be done."""
    for task in deployment.tasks:
        assert task.is_done, (
            f"nothing can move, but {task.name} is {task.progress.value}; "
            f"its outputs: {[writer.partition.pool for writer in task.writers]}"
        )


def check_end(deployment: Deployment) -> None:
    """A run that ended well left nothing behind, and every exchange delivered what was emitted."""
    check_liveness(deployment)
    check_all(deployment)
    for partition in deployment.partitions:
        for subpartition in partition.subpartitions:
            assert subpartition.num_queued == 0, f"{subpartition} was not read to its end"
        assert not partition.pool.lent, f"{partition.pool.name} still has buffers out"
    delivered: Counter[int] = Counter()
    emitted: Counter[int] = Counter()
    for index, edge in enumerate(deployment.graph.job.edges):
        for subtask in range(deployment.graph.job.vertices[edge.source].parallelism):
            writer = deployment.writers[index, subtask]
            is_broadcast = isinstance(writer, BroadcastRecordWriter)
            copies = len(writer.partition.subpartitions) if is_broadcast else 1
            emitted[edge.target] += writer.num_records * copies
    for vertex, task in zip(deployment.graph.vertices, deployment.tasks, strict=True):
        delivered[vertex.vertex.id] += task.chain.num_records_in
    for vertex_id, num_emitted in emitted.items():
        name = deployment.graph.job.vertices[vertex_id].name
        assert num_emitted == delivered[vertex_id], (
            f"{num_emitted} records were emitted to {name}, {delivered[vertex_id]} arrived"
        )


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
    for task in deployment.tasks:
        for held in task.held_buffers():
            found[id(_whole(held))] += 1
    return found


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
