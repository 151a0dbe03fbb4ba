"""The words of the options that say how a bounded job runs: what blocks, who starts when, and how results are kept."""

from __future__ import annotations

from enum import Enum

__all__ = ["BoundedDataKind", "Compression", "ExchangeMode", "ExecutionMode", "InputConstraint", "ScheduleMode"]


class ExecutionMode(Enum):
    """How a bounded job is to run; the `FORCED` ones heed no edge that breaks, or break at all.

    Flink:   ExecutionMode (api.common), DataExchangeMode (runtime.io.network), 1.11.4
    """

    PIPELINED = "pipelined"
    PIPELINED_FORCED = "pipelined, also where the job breaks"
    BATCH = "batch"
    BATCH_FORCED = "batch, also within one subtask's line"


class ExchangeMode(Enum):
    """Which edges of a streaming program are pipelined.

    Flink:   GlobalDataExchangeMode (streaming.api.graph), 1.11.4
    """

    ALL_BLOCKING = "none"
    FORWARD_PIPELINED = "those from one subtask to one"
    POINTWISE_PIPELINED = "those from one subtask to some"
    ALL_PIPELINED = "all"


class ScheduleMode(Enum):
    """Which tasks are started when: all at once; each with the first that it can read; or region by region.

    A region are subtasks that exchange records while they run.

    Flink:   ScheduleMode (runtime.jobgraph), 1.11.4; PipelinedRegionSchedulingStrategy (runtime.scheduler.strategy)
    """

    EAGER = "all tasks at once"
    LAZY_FROM_SOURCES = "each task with the first it can read"
    PIPELINED_REGION = "region by region"


class InputConstraint(Enum):
    """For a task with several inputs that is started with the first it can read: of any of them, or of all.

    Flink:   InputDependencyConstraint (api.common), 1.11.4
    Differs: blocking inputs must all be complete in any case; in Flink `ANY` means them too.
    """

    ANY = "any input"
    ALL = "all inputs"


class BoundedDataKind(Enum):
    """How blocking results are kept: written to a file and mapped to be read, written and read, or mapped throughout.

    Flink:   BoundedBlockingSubpartitionType (runtime.io.network.partition), 1.11.4
    """

    FILE_MMAP = "file_mmap"
    FILE = "file"
    MMAP = "mmap"


class Compression(Enum):
    """Whether the buffers of blocking results are compressed, and by which code.

    Flink:   taskmanager.network.blocking-shuffle.compression.enabled, .codec, 1.11.4
    """

    NONE = "none"
    LZ4 = "lz4"
    ZSTD = "zstd"
