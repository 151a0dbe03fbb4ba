"""What is in flight around a task: as sections of its snapshots, and put back before anything that will be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refimpl.consumer.network_input import NetworkInput
from refimpl.errors import RestoreRefusedError
from refimpl.producer.buffer_writing import WrittenSubpartition
from refimpl.producer.overtaking import has_waiting, overtake_waiting
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.records.events import CheckpointBarrier
from refimpl.state.channel_state import InFlightData
from refimpl.state.sections import Section, SectionKind
from refimpl.state.subtask_state import RestoredStates
from refimpl.task.time_service import ProcessingTimeService

__all__ = ["TaskChannels"]

_NAMES = {SectionKind.INPUT_IN_FLIGHT: "input-in-flight", SectionKind.OUTPUT_IN_FLIGHT: "output-in-flight"}


class TaskChannels:
    """The channels of a task with outputs `writers`, which reads `network`, unless it is a source.

    A barrier with a timeout may wait in the outputs: `is_out` says whether it does, `settle` lets it overtake when that
    takes too long, by `time`. `on_read` is called, under exclusion, when a reader has taken one.

    Flink:   ChannelStateWriterImpl, its addOutputDataFuture (runtime.checkpoint.channel), 2.2.1;
             SequentialChannelStateReaderImpl, 1.12
    """

    def __init__(
        self, writers: Sequence[RecordWriter], network: NetworkInput | None, time: ProcessingTimeService
    ) -> None:
        self.network = network
        self.on_read: Callable[[], None] = lambda: None
        self._writers = writers
        self._time = time
        self._waiting: CheckpointBarrier | None = None
        self._deadline_ms = 0.0
        self._passed: list[bytes] | None = None  # by the barrier that has waited too long

    # -- snapshots -------------------------------------------------------------------------------------

    def sections(self, uid: str, checkpoint_id: int, passed: Sequence[bytes] = ()) -> list[Section]:
        """What was captured of the inputs, if it was, and what a barrier has passed in each channel of outputs.

        That is `passed`, or what one has passed that had waited; it is forgotten here.
        """
        found: list[Section] = []
        network, capture = self.network, None if self.network is None else self.network.capture
        if network is not None and capture is not None and capture.is_complete(checkpoint_id):
            state = InFlightData.of(network.channel_names, capture.take(checkpoint_id))
            found += _section(uid, SectionKind.INPUT_IN_FLIGHT, state)
        if passed or self._passed:
            state = InFlightData.of(self._output_names, passed or self._passed or ())
            found += _section(uid, SectionKind.OUTPUT_IN_FLIGHT, state)
        self.forget(checkpoint_id)
        return found

    def restore(self, uid: str, restored: RestoredStates) -> None:
        """Put what was in flight before anything that will be: in the outputs, then in the inputs.

        Raises:
            RestoreRefusedError: the task has no such channel.
        """
        states = {each.kind: InFlightData.from_bytes(each.raw, str(each)) for each in restored.others
                  if each.kind in _NAMES}  # fmt: skip
        if (state := states.get(SectionKind.OUTPUT_IN_FLIGHT)) is not None:
            recovered = dict(state.for_channels(self._output_names, uid))
            channels = [
                (writer, channel) for writer in self._writers for channel in range(len(writer.partition.subpartitions))
            ]
            for number, (writer, channel) in enumerate(channels):
                writer.partition.put_recovered(channel, recovered.get(number, b""))
        if (state := states.get(SectionKind.INPUT_IN_FLIGHT)) is not None:
            if self.network is None:
                raise RestoreRefusedError(
                    f"the operator {uid!r} has state of what was in flight to it, and is a source"
                )
            self.network.recover(state.for_channels(self.network.channel_names, uid))

    def is_captured(self, checkpoint_id: int) -> bool:
        """Whether the input has all that belongs to a checkpoint."""
        capture = None if self.network is None else self.network.capture
        return capture is not None and capture.is_complete(checkpoint_id)

    # -- a barrier that waits in the outputs -----------------------------------------------------------

    def wait_for(self, barrier: CheckpointBarrier) -> None:
        """A barrier with a timeout was queued in all outputs."""
        self._waiting, self._passed = barrier, None
        self._deadline_ms = barrier.timeout_at_ms(self._time.now_ms)
        for queue in self._queues:
            queue.on_barrier_read = self._note_read

    def waits_for(self, checkpoint_id: int) -> bool:
        """Whether a snapshot for that checkpoint has to know first what its barrier passes."""
        return self._waiting is not None and self._waiting.checkpoint_id == checkpoint_id

    @property
    def is_waiting(self) -> bool:
        """Whether it is not known yet what the barrier passes."""
        return (
            self._waiting is not None
            and self._passed is None
            and any(has_waiting(each, self._waiting) for each in self._queues)
        )

    @property
    def has_news(self) -> bool:
        """Whether a barrier has left the outputs since it was queued, or has waited too long."""
        return self._waiting is not None and (not self.is_waiting or self._time.now_ms >= self._deadline_ms)

    @property
    def next_deadline(self) -> float | None:
        """When a barrier here has waited long enough, in ms of processing time; `None` if none waits, or if it has."""
        output_ms = self._deadline_ms if self._waiting is not None and not self.has_news else None
        is_aligning = self.network is not None and not self.network.has_barriers
        input_ms = self.network.alignment.next_deadline if self.network is not None and is_aligning else None
        return min((each for each in (output_ms, input_ms) if each is not None), default=None)

    def settle(self) -> None:
        """Let a barrier that has waited long enough overtake, though an output be full. Under exclusion."""
        barrier = self._waiting
        if barrier is None or not self.is_waiting or self._time.now_ms < self._deadline_ms:
            return
        self._passed = [
            overtake_waiting(each, barrier) if isinstance(each, SubpartitionQueue) else b""
            for each in self._subpartitions
        ]

    @property
    def has_overtaken(self) -> bool:
        """Whether a barrier in the outputs has waited too long."""
        return self._passed is not None

    def forget(self, checkpoint_id: int) -> None:
        """No snapshot for that checkpoint waits for the outputs any more."""
        if self._waiting is not None and self._waiting.checkpoint_id == checkpoint_id:
            self._waiting = self._passed = None

    # -- helpers ---------------------------------------------------------------------------------------

    @property
    def _output_names(self) -> list[str]:
        return [
            f"{each.partition.name}[{channel}]"
            for each in self._writers
            for channel in range(len(each.partition.subpartitions))
        ]

    @property
    def _subpartitions(self) -> list[WrittenSubpartition]:
        return [each for writer in self._writers for each in writer.partition.subpartitions]

    @property
    def _queues(self) -> list[SubpartitionQueue]:
        return [each for each in self._subpartitions if isinstance(each, SubpartitionQueue)]

    def _note_read(self) -> None:
        self.on_read()


def _section(uid: str, kind: SectionKind, state: InFlightData) -> list[Section]:
    if not state.entries:
        return []
    return [Section(uid, _NAMES[kind], kind, state.to_bytes(), channel_bytes=state.num_bytes)]
