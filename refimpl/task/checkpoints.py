"""The checkpoints of one task: what is decided about its snapshots is carried out here, between two elements.

What only a driver can do waits here for it: `writes` are to be put into the store, `reports` are for the coordinator.
A task without a `StatePlace` cuts its streams, and keeps nothing.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from refimpl.consumer.barrier_handler import Abort, AbortReason
from refimpl.consumer.network_input import NetworkInput
from refimpl.errors import USER_CODE_RAISES, StoreError, speaks_for_itself
from refimpl.producer.key_groups import key_group_range
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.events import Alignment, CancelCheckpointMarker, CheckpointBarrier, CheckpointType
from refimpl.records.types import TypeSerializer
from refimpl.state.keyed_state import StateTable, write_table
from refimpl.state.layout import checkpoint_folder, savepoint_folder
from refimpl.state.sections import Section, SectionKind
from refimpl.state.subtask_state import RestoredStates, SubtaskState
from refimpl.task.chain import OperatorChain
from refimpl.task.checkpoint_reports import Cut, Declined, Report, Snapshotted, StatePlace, Unwanted
from refimpl.task.in_flight import TaskChannels
from refimpl.task.snapshot_decisions import (
    BroadcastBarrier,
    BroadcastCancelMarker,
    CancelWrite,
    CaptureInputs,
    DropCapture,
    DropWritten,
    FailTask,
    FinishTask,
    OperatorAborted,
    OperatorComplete,
    PrepareBarrier,
    SendAck,
    SendDecline,
    SendEnded,
    SnapshotDecision,
    TakeState,
    WriteState,
)
from refimpl.task.snapshotting import FINAL_SNAPSHOT, SubtaskSnapshotting
from refimpl.task.source import SourceInput

__all__ = ["SubtaskCheckpoints"]

_POSITION = struct.Struct(">q")
_POSITION_NAME = "source-position"


@dataclass(slots=True)
class _Snapshot:
    """One snapshot under way: where it belongs, how long its barriers took, what is taken of the state, all of it."""

    folder: str
    alignment_ms: float | None = None
    sections: list[Section] = field(default_factory=list)
    passed: list[bytes] = field(default_factory=list)  # by an unaligned barrier, of each channel of each output
    is_unaligned: bool = False
    state: SubtaskState | None = None


class SubtaskCheckpoints:
    """The checkpoints of one task: `last_id` has passed it, or never will; `last_cut` is that of the last barrier.

    Of `source`, the task's input, the position is kept if it is one, and what is in flight if it has channels. The
    driver takes what is in `writes`, puts it into the store, and says `written` or `write_failed`; and takes `reports`.
    One that does not look after each step is called at `on_news`, on the task's thread, with or without the exclusion.
    `on_cut` is called when all that the operators remember is as it belongs to a snapshot, with the name of its file.

    Flink:   SubtaskCheckpointCoordinatorImpl, AsyncCheckpointRunnable (streaming.runtime.tasks), 1.11.4
    """

    def __init__(
        self,
        chain: OperatorChain,
        writers: Sequence[RecordWriter],
        source: object,
        place: StatePlace | None = None,
    ) -> None:
        self.last_cut: Cut | None = None
        self.writes: deque[tuple[int, SubtaskState]] = deque()
        self.reports: deque[Report] = deque()
        self.on_news: Callable[[], None] = _nobody_waits
        self.on_cut: Callable[[str], None] = _nobody_looks
        self._chain = chain
        self._writers = writers
        self._place = place
        self._source = source if isinstance(source, SourceInput) else None
        self.channels = TaskChannels(writers, source if isinstance(source, NetworkInput) else None, chain.time)
        self._operators = {str(node.id): node.operator for node in chain.nodes}
        self._snapshotting = SubtaskSnapshotting(tuple(self._operators))
        self._under_way: dict[int, _Snapshot] = {}
        self._capturing_id: int | None = None  # its state has been taken, and what is in flight is still coming
        self._is_finished = False

    def restore(self, states: Mapping[str, RestoredStates]) -> None:
        """Give each operator what a checkpoint has of it, by uid, and the source its position."""
        for operator in self._chain.operators:
            restored = states.get(operator.context.uid)
            if restored is None:
                continue
            operator.restore(restored)
            self.channels.restore(operator.context.uid, restored)
            if operator is self._chain.head and self._source is not None:
                self._source.seek(*_position_in(restored))

    # -- what happens ----------------------------------------------------------------------------------

    @property
    def last_id(self) -> int:
        return self._snapshotting.last_id

    def pass_on(self, event: CheckpointBarrier | Abort, alignment_ms: float | None = None) -> None:
        """A barrier has come, or will not, behind all elements before it; `go_on` does what follows.

        The barrier has taken `alignment_ms` from its first channel to its last.
        """
        if self._capturing_id is not None and self._capturing_id < event.checkpoint_id:
            self._snapshotting.abort(self._capturing_id, AbortReason.SUBSUMED)
        if isinstance(event, CheckpointBarrier):
            if event.checkpoint_id > self.last_id:
                snapshot = self._snapshot(event.checkpoint_id)
                snapshot.folder, snapshot.alignment_ms = _folder_of(event), alignment_ms
            self._snapshotting.trigger(event)
        else:
            self._snapshotting.abort(event.checkpoint_id, event.reason)

    def take_barriers(self) -> None:
        """Take the barriers that have overtaken what waits in the input. Under exclusion, and before each `take`."""
        if self.channels.network is not None:
            for event in self.channels.network.take_barriers():
                self.pass_on(event)

    def notify_complete(self, checkpoint_id: int) -> None:
        """The coordinator says that a checkpoint counts."""
        self._snapshotting.notify_complete(checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        """The coordinator says that a checkpoint will never count."""
        self._snapshotting.notify_aborted(checkpoint_id)

    def written(self, checkpoint_id: int) -> None:
        """What was among `writes` is durable."""
        self._snapshotting.written(checkpoint_id)

    def write_failed(self, checkpoint_id: int, detail: str) -> None:
        """What was among `writes` could not be put, or nobody knows."""
        self._snapshotting.write_failed(checkpoint_id, detail)

    def end_of_input(self) -> None:
        """All has been processed: a last snapshot says so, that nothing of it is done again; and who waits is told."""
        if self._place is not None:
            self._snapshotting.end_of_input()
        else:
            self._is_finished = True

    # -- what follows ----------------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether no input may be taken before `go_on` has done what is to be done."""
        return self._snapshotting.is_waiting or self._is_captured

    @property
    def has_barriers(self) -> bool:
        """Whether `take_barriers` would bring some."""
        return self.channels.network is not None and self.channels.network.has_barriers

    @property
    def is_over(self) -> bool:
        """After the end of input: whether nothing is being written and nobody waits to be told."""
        return self._is_finished and not self._snapshotting.num_writing and not self._snapshotting.is_waiting

    def go_on(self, is_blocked: Callable[[], bool]) -> None:
        """Do what follows from what has happened, up to where a blocked output must have a buffer first."""
        while True:
            if (decision := self._snapshotting.next_decision(is_blocked())) is not None:
                self._carry_out(decision)
            elif self._is_captured and (checkpoint_id := self._capturing_id) is not None:
                self._capturing_id = None
                self._add_channels(checkpoint_id)
                self._hand_to_driver(checkpoint_id)
            else:
                return

    @property
    def _is_captured(self) -> bool:
        """Whether a snapshot that waited for what is in flight has all of it."""
        if self._capturing_id is None:
            return False
        if self._snapshot(self._capturing_id).is_unaligned:
            return self.channels.is_captured(self._capturing_id)
        return not self.channels.is_waiting

    def _carry_out(self, decision: SnapshotDecision) -> None:
        match decision:
            case PrepareBarrier(checkpoint_id, operator):
                self._call(self._operators[operator].prepare_barrier, operator, checkpoint_id)
            case BroadcastBarrier(barrier):
                self._cut(barrier)
            case TakeState(checkpoint_id, operator):
                self._take(checkpoint_id, operator)
            case WriteState(checkpoint_id):
                self._write(checkpoint_id)
            case OperatorComplete(checkpoint_id, operator):
                self._call(self._operators[operator].notify_complete, operator, checkpoint_id)
            case OperatorAborted(checkpoint_id, operator):
                self._call(self._operators[operator].notify_aborted, operator, checkpoint_id)
            case BroadcastCancelMarker(checkpoint_id):
                for writer in self._writers:
                    writer.broadcast_event(CancelCheckpointMarker(checkpoint_id))
            case _:
                self._report(decision)

    def _report(self, decision: SnapshotDecision) -> None:
        """Carry out what concerns the driver and the coordinator."""
        match decision:
            case SendAck(checkpoint_id):
                self._send_state(checkpoint_id)
            case SendEnded():
                self._send_state(FINAL_SNAPSHOT)
            case SendDecline(checkpoint_id, reason, detail):
                if self._place is not None:
                    self._say(Declined(checkpoint_id, reason, detail))
            case DropCapture(checkpoint_id):
                self.channels.forget(checkpoint_id)
                if (snapshot := self._under_way.get(checkpoint_id)) is not None and snapshot.state is None:
                    del self._under_way[checkpoint_id]
                if self.channels.network is not None:
                    self.channels.network.drop_capture(checkpoint_id)
            case CancelWrite(checkpoint_id) if checkpoint_id == self._capturing_id:
                self._capturing_id = None
                self.channels.forget(checkpoint_id)
                self._snapshotting.written(checkpoint_id)  # nothing was
            case CancelWrite():
                """The driver writes what it has been given; it is dropped then."""
            case DropWritten(checkpoint_id):
                snapshot = self._under_way.pop(checkpoint_id, None)
                if snapshot is not None and snapshot.state is not None:
                    self._say(Unwanted(snapshot.state.file.key))
            case FailTask(detail):
                raise StoreError("the final snapshot", detail)
            case FinishTask():
                self._is_finished = True
            case CaptureInputs(checkpoint_id):
                if self.channels.network is not None and self._place is not None:
                    self.channels.network.begin_capture(checkpoint_id)

    # -- the snapshot ----------------------------------------------------------------------------------

    def _snapshot(self, checkpoint_id: int) -> _Snapshot:
        return self._under_way.setdefault(checkpoint_id, _Snapshot(checkpoint_folder(checkpoint_id)))

    def _cut(self, barrier: CheckpointBarrier) -> None:
        if barrier.has_timeout and self._source is not None:
            barrier = replace(barrier, timestamp=self._chain.time.now_ms)
        num_records_out = sum(writer.num_records for writer in self._writers)
        self.last_cut = Cut(barrier.checkpoint_id, self._chain.num_records_in, num_records_out)
        if self._place is not None:
            self.on_cut(self._place.key(_folder_of(barrier)))
        if barrier.alignment is Alignment.UNALIGNED:
            snapshot = self._snapshot(barrier.checkpoint_id)
            snapshot.is_unaligned = True
            snapshot.passed = [passed for writer in self._writers for passed in writer.overtake(barrier)]
            return
        for writer in self._writers:
            writer.broadcast_event(barrier)
        if barrier.has_timeout and self._place is not None:
            self.channels.wait_for(barrier)

    def _take(self, checkpoint_id: int, operator_id: str) -> None:
        if self._place is None:
            return
        operator = self._operators[operator_id]
        if checkpoint_id == FINAL_SNAPSHOT and operator is self._chain.head:  # no barrier has cut it
            self.on_cut(self._place.key(self._snapshot(checkpoint_id).folder))
        sections = self._snapshot(checkpoint_id).sections
        if operator is self._chain.head and self._source is not None:
            raw = _POSITION.pack(self._source.position) + self._source.mark
            sections.append(Section(operator.context.uid, _POSITION_NAME, SectionKind.SOURCE_POSITION, raw))
        if operator.states is not None:
            context = operator.context
            groups = key_group_range(context.subtask, context.max_parallelism, context.parallelism)
            sections += operator.states.snapshot(context.uid, groups, context.max_parallelism, self._write_table)

    def _write(self, checkpoint_id: int) -> None:
        """Hand the state to the driver, or wait for what is in flight first."""
        is_captured = self._snapshot(checkpoint_id).is_unaligned and self._place is not None
        if (is_captured and self.channels.network is not None) or self.channels.waits_for(checkpoint_id):
            self._capturing_id = checkpoint_id
            return
        if is_captured:
            self._add_channels(checkpoint_id)
        self._hand_to_driver(checkpoint_id)

    def _add_channels(self, checkpoint_id: int) -> None:
        """Add what was captured of the inputs, and what the barrier has passed in the outputs."""
        snapshot, uid = self._snapshot(checkpoint_id), self._chain.head.context.uid
        snapshot.is_unaligned |= self.channels.has_overtaken
        snapshot.sections += self.channels.sections(uid, checkpoint_id, snapshot.passed)

    def _hand_to_driver(self, checkpoint_id: int) -> None:
        """What is there is all; none is none to wait for."""
        snapshot = self._snapshot(checkpoint_id)
        if not snapshot.sections or self._place is None:
            self._snapshotting.written(checkpoint_id)
            return
        is_packed = self._chain.head.context.config.snapshot_compression
        snapshot.state = SubtaskState.of(self._place.key(snapshot.folder), snapshot.sections, is_packed=is_packed)
        self.writes.append((checkpoint_id, snapshot.state))
        self.on_news()

    @staticmethod
    def _write_table(
        table: StateTable[Any], key_type: TypeSerializer, key_groups: range, max_parallelism: int
    ) -> tuple[bytes, ...]:
        """The bytes of one table of keyed state, by key group."""
        return write_table(table, key_type, key_groups, max_parallelism)

    def _send_state(self, checkpoint_id: int) -> None:
        snapshot = self._under_way.pop(checkpoint_id)
        if self._place is None:
            return
        state, is_final = snapshot.state, checkpoint_id == FINAL_SNAPSHOT
        file, states = (None, {}) if state is None else (state.file, state.states)
        self._say(Snapshotted(checkpoint_id, file, states, is_final, snapshot.alignment_ms, snapshot.is_unaligned))

    def _say(self, report: Report) -> None:
        self.reports.append(report)
        self.on_news()

    def _call(self, method: Callable[[int], None], operator_id: str, checkpoint_id: int) -> None:
        """Call an operator's method; what the user's code raises names the operator."""
        try:
            method(checkpoint_id)
        except USER_CODE_RAISES as error:
            if speaks_for_itself(error):
                raise
            raise self._operators[operator_id].fail(None, error) from error


def _nobody_waits() -> None:
    """The driver looks by itself."""


def _nobody_looks(_file: str) -> None:
    """No law is checked."""


def _position_in(restored: RestoredStates) -> tuple[int, bytes]:
    """How far a source had come, 0 if the checkpoint does not say; and its reader's mark."""
    for section in restored.others:
        if section.kind is SectionKind.SOURCE_POSITION:
            return int(_POSITION.unpack_from(section.raw)[0]), section.raw[_POSITION.size :]
    return 0, b""


def _folder_of(barrier: CheckpointBarrier) -> str:
    """Where the state for a barrier belongs: a savepoint's has its name with it."""
    if barrier.type is CheckpointType.SAVEPOINT and barrier.location is not None:
        return savepoint_folder(barrier.location.decode("utf-8", "replace"))
    return checkpoint_folder(barrier.checkpoint_id)
