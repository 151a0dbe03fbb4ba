"""The figures of lesson 5: keys, groups and channels; buffers of a broadcast; and when a buffer leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import (
    BroadcastRecordWriter,
    BroadcastSelector,
    GlobalSelector,
    RecordWriter,
    ResultPartition,
    java_hash_code,
    key_group_of,
    key_group_range,
    operator_index_of,
)
from refimpl.records import LONG, CheckpointBarrier, StreamElementSerializer, StreamRecord

__all__ = ["Lines", "bands", "buffers_of_a_broadcast", "counted", "departures", "moved"]

_BAR = 30


@dataclass(frozen=True, slots=True)
class Lines:
    """A figure of lines of text."""

    title: str
    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join([self.title, *self.lines])


def bands(counts: dict[str, int], num_groups: int, num_channels: int) -> Lines:
    """Which groups each channel owns, which keys are in them, and how many records that makes."""
    loads = [0] * num_channels
    members: list[list[str]] = [[] for _ in range(num_channels)]
    for key, count in counts.items():
        group = key_group_of(key, num_groups)
        channel = operator_index_of(group, num_groups, num_channels)
        loads[channel] += count
        members[channel].append(f"{key} (group {group})")
    most = max(loads)
    lines = []
    for channel, load in enumerate(loads):
        owned = key_group_range(channel, num_groups, num_channels)
        bar = "█" * round(_BAR * load / most) if most else ""
        lines.append(f"channel {channel}  groups {owned[0]:>3} to {owned[-1]:>3}  {load:>6} {bar}")
        lines += [f"           {', '.join(members[channel])}"] if members[channel] else []
    return Lines(f"{sum(loads)} records, {num_groups} key groups, {num_channels} channels:", tuple(lines))


def moved(keys: Sequence[object], before: int, after: int, num_groups: int = 128) -> Lines:
    """How many keys change their channel when the number of channels does, by two rules."""

    def by_modulo(key: object, channels: int) -> int:
        return java_hash_code(key) % channels

    def by_group(key: object, channels: int) -> int:
        return operator_index_of(key_group_of(key, num_groups), num_groups, channels)

    lines = []
    for name, rule in (("hash code modulo channels", by_modulo), ("key groups", by_group)):
        num_moved = sum(rule(key, before) != rule(key, after) for key in keys)
        lines.append(f"  {name:<26} {num_moved:>5} of {len(keys)} keys move")
    return Lines(f"from {before} to {after} channels:", tuple(lines))


def _partition(channels: int, segment: int, timeout_ms: int) -> ResultPartition:
    config = Config(segment_size_bytes=segment, num_buffers=64, buffer_timeout_ms=timeout_ms)
    pool = LocalBufferPool(NetworkBufferPool(64, segment), 1, 64, num_channels=channels)
    pool.set_num_buffers(64)
    return ResultPartition("map-0", channels, pool, config)


def buffers_of_a_broadcast(num_records: int, num_channels: int, segment: int = 52) -> Lines:
    """What `num_records` records for all channels cost: copied for each, or in buffers that all read."""
    lines = []
    for writer_class in (RecordWriter, BroadcastRecordWriter):
        partition = _partition(num_channels, segment, -1)
        before = partition.pool.snapshot().num_requested
        writer = writer_class(partition, BroadcastSelector(), StreamElementSerializer(LONG))
        for number in range(num_records):
            writer.broadcast(StreamRecord(number, None))
        used = partition.pool.snapshot().num_requested - before
        queued = [queue.num_queued for queue in partition.subpartitions]
        lines.append(f"  {writer_class.__name__:<22} {used} buffers; in the queues {queued}")
    return Lines(f"{num_records} records to {num_channels} channels, buffers of {segment} bytes:", tuple(lines))


def departures(timeout_ms: int = 100) -> Lines:
    """One channel, and what its reader is told: when a buffer is full, by the clock, before an event."""
    partition = _partition(1, 52, timeout_ms)
    writer = RecordWriter(partition, GlobalSelector(), StreamElementSerializer(LONG))
    told: list[str] = []
    (queue,) = partition.subpartitions
    queue.view.open(lambda: told.append("told"))
    lines = []

    def note(time_ms: int, what: str) -> None:
        deadline = partition.next_deadline(time_ms)
        waiting = "" if deadline is None else f"the clock will look at {deadline:.0f} ms"
        words = f"the reader is told, and takes {_read(partition)}" if told else "the reader is not told"
        told.clear()
        lines.append(f"  {time_ms:>4} ms  {what:<30} {words:<52} {waiting}".rstrip())

    def write(num_records: int) -> None:
        for number in range(num_records):
            writer.emit(StreamRecord(number, None))

    write(1)
    note(0, "one record")
    partition.on_timeout(timeout_ms)
    note(timeout_ms, "the clock")
    write(3)
    note(110, "three more: the buffer is full")
    write(1)
    note(112, "one more: the next is opened")
    write(1)
    note(120, "one record")
    writer.broadcast_event(CheckpointBarrier(1, 120))
    note(120, "an event")
    return Lines(f"a buffer of 52 bytes, records of 13, a buffer timeout of {timeout_ms} ms:", tuple(lines))


def _read(partition: ResultPartition) -> str:
    """Take what there is, buffer by buffer, and say what it was."""
    taken = []
    for queue in partition.subpartitions:
        while (entry := queue.poll()) is not None:
            taken.append(f"{entry.buffer.size} bytes" if entry.buffer.is_buffer else "the event")
            entry.buffer.recycle()
    return ", then ".join(taken)


def counted(values: Iterable[str]) -> dict[str, int]:
    """How often each value comes, the most frequent first."""
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
