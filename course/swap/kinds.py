"""What `swap` of an exercise.toml may say: how a part goes into the job of flights, and what that job is like then."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from course.curriculum.parts import to_departure
from course.data.flights_job import LARGEST_DISORDER_MS, MAP_OPERATOR
from course.swap.blocking import guarded_blocking
from course.swap.chains import guarded_output
from course.swap.channels import (
    put_decoders,
    put_framing,
    put_marks,
    put_receivers,
    put_senders,
    put_sequences,
    put_waits,
)
from course.swap.checkpoints import crashed, our_aligners, their_aligners
from course.swap.event_time import our_generators, our_valves, their_generators, their_valves
from course.swap.guard import Guard
from course.swap.guarded_reader import GuardedDeserializer
from course.swap.memory import MEMORY_KINDS
from course.swap.methods import our_copy, our_flusher, our_selector, their_copy, their_flusher, their_selector
from course.swap.queues import guarded_rules
from course.swap.talks import put_talks, put_wires
from course.swap.unaligned import crashed_with_copies, our_unaligners, their_unaligners
from refimpl.batch_options import ExchangeMode, ExecutionMode
from refimpl.config import Config
from refimpl.consumer import BarrierAligner, BarrierUnaligner, BufferManager, SequenceNumbers, StatusWatermarkValve
from refimpl.exchange import PartitionReader, RequestDecoder, SubpartitionReader, WireFormat, to_frame
from refimpl.exchange.before_credit import PoolBuffers, WaterMarks
from refimpl.job import WatermarkStrategy
from refimpl.producer import (
    BoundedBlockingSubpartition,
    ChannelCopy,
    KeyGroupSelector,
    OutputFlusher,
    PipelinedSubpartition,
)
from refimpl.records import SpanningRecordSerializer, SpillingAdaptiveSpanningRecordDeserializer
from refimpl.task import BoundedOutOfOrderness, CopyingChainingOutput

__all__ = ["FLUSH_TIMEOUT_MS", "KINDS", "Kind"]

FLUSH_TIMEOUT_MS = 1
"""After how long a buffer that is not full is sent, where the part is what sends it."""

_PROBE_MS = 1
_CUT_MS = 1
_STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(LARGEST_DISORDER_MS)


@dataclass(frozen=True, slots=True)
class Kind:
    """A seam of the flights job: how our part is put in, and how a guarded one of a learner's is.

    Where barriers travel, `crashed` runs another job that crashes, with the learner's part or ours, and says in a line
    what became of so many flights.
    """

    name: str
    ours: Callable[[Any], None]
    theirs: Callable[[Any, Guard], None]
    num_task_managers: int = 1
    object_reuse: bool = True
    credit_based: bool = True
    strategy: WatermarkStrategy | None = None
    checkpoint_interval_ms: int = 0
    buffer_timeout_ms: int = Config().buffer_timeout_ms
    execution_mode: ExecutionMode | ExchangeMode = ExchangeMode.ALL_PIPELINED
    unaligned: bool = False
    crashed: Callable[[Guard | None, int], str] | None = None

    def configured(self, config: Config) -> Config:
        """The configuration of a job in which the part has something to do."""
        return dataclasses.replace(
            config,
            object_reuse=self.object_reuse,
            credit_based=self.credit_based,
            execution_mode=self.execution_mode,
            auto_watermark_interval_ms=config.auto_watermark_interval_ms if self.strategy is None else _PROBE_MS,
            checkpoint_interval_ms=self.checkpoint_interval_ms,
            buffer_timeout_ms=self.buffer_timeout_ms,
            unaligned=self.unaligned,
        )


KINDS = {
    "map": Kind(
        to_departure.__name__,
        lambda job: job.swap_function(MAP_OPERATOR, to_departure),
        lambda job, guard: job.swap_function(MAP_OPERATOR, guard.function(to_departure)),
    ),
    "serializer": Kind(
        SpanningRecordSerializer.__name__,
        lambda job: job.swap(SpanningRecordSerializer=SpanningRecordSerializer),
        lambda job, guard: job.swap(SpanningRecordSerializer=guard.serializer),
    ),
    "frame": Kind(to_frame.__name__, lambda job: put_framing(job, None), put_framing, 2),
    "decoder": Kind(RequestDecoder.__name__, lambda job: put_decoders(job, None), put_decoders, 2),
    "sequence": Kind(SequenceNumbers.__name__, lambda job: put_sequences(job, None), put_sequences, 2),
    "wire": Kind(WireFormat.__name__, lambda job: put_wires(job, None), put_wires, 2),
    "talk": Kind(PartitionReader.__name__, lambda job: put_talks(job, None), put_talks, 2),
    "marks": Kind(WaterMarks.__name__, lambda job: put_marks(job, None), put_marks, 2, credit_based=False),
    "waiting": Kind(PoolBuffers.__name__, lambda job: put_waits(job, None), put_waits, 2, credit_based=False),
    "receiver": Kind(BufferManager.__name__, lambda job: put_receivers(job, None), put_receivers, 2),
    "sender": Kind(SubpartitionReader.__name__, lambda job: put_senders(job, None), put_senders, 2),
    "deserializer": Kind(
        SpillingAdaptiveSpanningRecordDeserializer.__name__,
        lambda job: job.swap(SpillingAdaptiveSpanningRecordDeserializer=SpillingAdaptiveSpanningRecordDeserializer),
        lambda job, guard: job.swap(SpillingAdaptiveSpanningRecordDeserializer=partial(GuardedDeserializer, guard)),
    ),
    "copying_output": Kind(
        CopyingChainingOutput.__name__,
        lambda job: job.swap(CopyingChainingOutput=lambda *given: CopyingChainingOutput(*given)),
        lambda job, guard: job.swap(CopyingChainingOutput=guarded_output(guard)),
        object_reuse=False,
    ),
    "subpartition": Kind(
        PipelinedSubpartition.__name__,
        lambda job: job.swap(PipelinedSubpartition=PipelinedSubpartition),
        lambda job, guard: job.swap(PipelinedSubpartition=guarded_rules(guard)),
    ),
    "blocking": Kind(
        BoundedBlockingSubpartition.__name__,
        lambda job: job.swap(BoundedBlockingSubpartition=BoundedBlockingSubpartition),
        lambda job, guard: job.swap(BoundedBlockingSubpartition=guarded_blocking(guard)),
        execution_mode=ExecutionMode.BATCH,
    ),
    **{kind: Kind(*row) for kind, row in MEMORY_KINDS.items()},
    "generator": Kind(BoundedOutOfOrderness.__name__, our_generators, their_generators, strategy=_STRATEGY),
    "valve": Kind(StatusWatermarkValve.__name__, our_valves, their_valves, strategy=_STRATEGY),
    "aligner": Kind(
        BarrierAligner.__name__, our_aligners, their_aligners, checkpoint_interval_ms=_CUT_MS, crashed=crashed
    ),
    "unaligner": Kind(
        BarrierUnaligner.__name__,
        our_unaligners,
        their_unaligners,
        checkpoint_interval_ms=_CUT_MS,
        unaligned=True,
        crashed=crashed_with_copies,
    ),
    "selector": Kind(KeyGroupSelector.__name__, our_selector, their_selector),
    "copy": Kind(ChannelCopy.__name__, our_copy, their_copy),
    "flusher": Kind(OutputFlusher.__name__, our_flusher, their_flusher, buffer_timeout_ms=FLUSH_TIMEOUT_MS),
}
