"""Cut: what was sent before a checkpoint was processed before it, or is in flight in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from refimpl.checkpoint.decisions import CheckpointCompleted
from refimpl.config import CheckpointingMode
from refimpl.consumer.network_input import NetworkInput
from refimpl.job.deployment import Deployment
from refimpl.producer.broadcast_writer import BroadcastCopy
from refimpl.records.element_serializer import TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP
from refimpl.records.spanning import LENGTH_BYTES
from refimpl.state.channel_state import InFlightData
from refimpl.state.recovery import Recovered
from refimpl.state.sections import SectionKind, read_sections, read_table
from refimpl.state.subtask_state import SubtaskState
from refimpl.task.task import Task

__all__ = ["CutLaw"]

_Moved = tuple[int, int]  # records that a task has taken from others, and sent to others


@dataclass(slots=True)
class _Checkpoint:
    """What tasks have said of one checkpoint: what had moved by then, and the bytes of each channel at either end."""

    moved: dict[str, _Moved] = field(default_factory=dict)
    at_consumer: dict[str, bytes] = field(default_factory=dict)
    at_producer: dict[str, bytes] = field(default_factory=dict)

    def num_in_flight(self) -> int:
        """The records in flight; of each channel they are whole, though it may be cut within one."""
        names = dict.fromkeys([*self.at_consumer, *self.at_producer])
        return sum(_count(name, self.at_consumer.get(name, b"") + self.at_producer.get(name, b"")) for name in names)


class CutLaw:
    """The cuts through a job on all its TaskManagers: records are counted for the whole job, bytes for each channel.

    `begin` comes before an attempt of the job, `look` after each step, before anybody takes from a task what it has
    for the store, and `check` with what became of checkpoints. Nothing is said of a job with at least once, of one in
    which a task has another output beside one that broadcasts, and after a checkpoint of which nothing is known.
    """

    def __init__(self) -> None:
        self._moved: dict[str, _Moved] = {}
        self._checkpoints: dict[int, _Checkpoint] = {}
        self._checked_id = 0
        self._num_recovered = 0
        self._is_blind = False

    def begin(self, recovered: Recovered | None) -> None:
        """An attempt of the job begins, with a checkpoint or with none."""
        restored: _Checkpoint | None = _Checkpoint()
        if recovered is not None and recovered.manifest is not None and recovered.manifest.channel_state:
            restored = self._checkpoints.get(recovered.manifest.checkpoint_id)
        self._is_blind = restored is None
        self._num_recovered = 0 if restored is None else restored.num_in_flight()
        self._moved, self._checkpoints = {}, {}

    def look(self, deployments: Iterable[Deployment]) -> None:
        """Note what tasks have done since the last call."""
        for deployment in deployments:
            self._is_blind |= deployment.config.checkpointing_mode is not CheckpointingMode.EXACTLY_ONCE
            for task in deployment.tasks:
                self._look_at(task)

    def check(self, history: Iterable[object]) -> None:
        """Check the checkpoints that are complete by now and were not at the last call."""
        for each in history:
            if isinstance(each, CheckpointCompleted) and each.checkpoint.checkpoint_id > self._checked_id:
                self._checked_id = each.checkpoint.checkpoint_id
                self._check(self._checked_id)

    def _check(self, checkpoint_id: int) -> None:
        found = self._checkpoints.get(checkpoint_id)
        if self._is_blind or found is None:
            return
        num_in_flight = found.num_in_flight()
        moved = [self._moved_before(checkpoint_id, name) for name in self._moved]
        num_in, num_out = sum(each for each, _ in moved), sum(each for _, each in moved)
        assert num_out + self._num_recovered == num_in + num_in_flight, (
            f"checkpoint {checkpoint_id}: {num_out} records were sent before it and {self._num_recovered} recovered, "
            f"{num_in} were taken in before it and {num_in_flight} are in flight in it"
        )
        self._checkpoints = {each: kept for each, kept in self._checkpoints.items() if each >= checkpoint_id}

    def _moved_before(self, checkpoint_id: int, task: str) -> _Moved:
        """A task that makes two cuts in one step, one behind the other, is seen with the later one only.

        One that has made no cut had ended before.
        """
        known = sorted(number for number, each in self._checkpoints.items() if task in each.moved)
        later = (self._checkpoints[number].moved[task] for number in known if number >= checkpoint_id)
        return next(later, self._moved[task])

    def _look_at(self, task: Task) -> None:
        is_fed, num_copies = isinstance(task.input, NetworkInput), _num_copies(task)
        if num_copies is None:
            self._is_blind = True
            return
        num_out = sum(writer.num_records for writer in task.writers) * num_copies
        self._moved[task.name] = task.chain.num_records_in * is_fed, num_out
        if (cut := task.checkpoints.last_cut) is not None:
            moved = cut.num_records_in * is_fed, cut.num_records_out * num_copies
            self._checkpoints.setdefault(cut.checkpoint_id, _Checkpoint()).moved.setdefault(task.name, moved)
        for checkpoint_id, state in task.checkpoints.writes:
            _note_in_flight(self._checkpoints.setdefault(checkpoint_id, _Checkpoint()), state)


def _num_copies(task: Task) -> int | None:
    """How many channels each record of a task goes to; `None` if that is not one number."""
    copies = {len(each.partition.subpartitions) if isinstance(each.copy, BroadcastCopy) else 1 for each in task.writers}
    return copies.pop() if len(copies) == 1 else None if copies else 0


def _note_in_flight(checkpoint: _Checkpoint, state: SubtaskState) -> None:
    raw, key = b"".join(state.parts), state.file.key

    def read(start: int, length: int) -> bytes:
        return raw[start : start + length]

    for section in read_sections(read, read_table(read, len(raw), key), key):
        if section.kind in (SectionKind.INPUT_IN_FLIGHT, SectionKind.OUTPUT_IN_FLIGHT):
            is_input = section.kind is SectionKind.INPUT_IN_FLIGHT
            side = checkpoint.at_consumer if is_input else checkpoint.at_producer
            side.update((entry.name, entry.data) for entry in InFlightData.from_bytes(section.raw, key).entries)


def _count(channel: str, data: bytes) -> int:
    """The records among the elements that were in flight on a channel."""
    return sum(tag in (TAG_RECORD, TAG_RECORD_WITH_TIMESTAMP) for tag in _tags(channel, data))


def _tags(channel: str, data: bytes) -> Iterator[int]:
    start = 0
    while start < len(data):
        begin = start + LENGTH_BYTES
        start = begin + int.from_bytes(data[start:begin], "big")
        assert begin < start <= len(data), f"what was in flight on {channel} ends within an element"
        yield data[begin]
