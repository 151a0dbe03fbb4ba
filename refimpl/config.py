"""Every option of the engine, with the name and default it has in Flink.

Rule: what a user may want to change stands here. A number that is part of a format or of a rule,
and a bound that only an attacker meets, is a constant of the file it belongs to.
"""

from __future__ import annotations

import dataclasses
import tempfile
from dataclasses import dataclass
from enum import Enum
from typing import Any

from refimpl.batch_options import (
    BoundedDataKind,
    Compression,
    ExchangeMode,
    ExecutionMode,
    InputConstraint,
    ScheduleMode,
)
from refimpl.errors import ConfigError

__all__ = ["UNBOUNDED", "CheckpointingMode", "Config", "FlinkVersion", "option_table"]

UNBOUNDED = 2_147_483_647
"""`Integer.MAX_VALUE`, what Flink uses for "no upper limit" on a number of buffers."""

_OWN_ERROR_BYTES = 4_096  # a missing partition takes half of that in 2.x: a consumer must be able to read it


class FlinkVersion(Enum):
    """Which Flink's byte layouts and rules to follow where they differ."""

    V1_11 = "1.11.4"
    V2_2 = "2.2.1"


class CheckpointingMode(Enum):
    """What a task does with a channel that has delivered a barrier before the others: let it wait, or not."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


def option(default: object, flink_key: str, unit: str, flink_default: str, meaning: str) -> Any:
    """A `Config` field that remembers its Flink name for `option_table` and the docs."""
    return dataclasses.field(
        default=default,
        metadata={
            "flink_key": flink_key,
            "unit": unit,
            "flink_default": flink_default,
            "meaning": meaning,
        },
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The options of one engine, checked when they are made.

    Raises:
        ConfigError: a value is out of range; names the option, the value and the range.

    Flink:   TaskManagerOptions, NettyShuffleEnvironmentOptions, ExecutionOptions, 1.11.4
    """

    segment_size_bytes: int = option(
        32_768, "taskmanager.memory.segment-size", "bytes", "32768",
        "size of one memory segment, so of one network buffer",
    )  # fmt: skip
    num_buffers: int = option(
        2_048, "taskmanager.network.numberOfBuffers", "segments", "2048",
        "segments of the global pool, all allocated at the start",
    )  # fmt: skip
    buffers_per_channel: int = option(
        2, "taskmanager.network.memory.buffers-per-channel", "buffers", "2",
        "how many buffers an output may use for each of its channels",
    )  # fmt: skip
    floating_buffers_per_gate: int = option(
        8, "taskmanager.network.memory.floating-buffers-per-gate", "buffers", "8",
        "extra buffers shared by the channels of one output",
    )  # fmt: skip
    max_buffers_per_channel: int = option(
        10, "taskmanager.network.memory.max-buffers-per-channel", "buffers", "10",
        "a channel holding more than this makes its task stop taking input",
    )  # fmt: skip
    max_overdraft_buffers: int = option(
        0, "taskmanager.network.memory.max-overdraft-buffers-per-gate", "buffers", "none in 1.11",
        "buffers an output may take beyond its size to finish a record (5 since 1.16, 20 in 2.x)",
    )  # fmt: skip
    credit_based: bool = option(
        True, "taskmanager.network.credit-model", "", "true",
        "a producer sends only what its consumer has promised room for; False as before 1.5 (an option to 1.9)",
    )  # fmt: skip
    buffer_timeout_ms: int = option(
        100, "execution.buffer-timeout", "ms", "100",
        "period of the output flusher; 0 flushes after each record, -1 never by time",
    )  # fmt: skip
    request_backoff_initial_ms: int = option(
        100, "taskmanager.network.request-backoff.initial", "ms", "100",
        "wait before a partition that was not found is asked for again; it doubles each time",
    )  # fmt: skip
    request_backoff_max_ms: int = option(
        10_000, "taskmanager.network.request-backoff.max", "ms", "10000",
        "longest such wait; after it the channel fails. With both 0 nothing is asked for again",
    )  # fmt: skip
    connect_retries: int = option(
        3, "taskmanager.network.retries", "attempts", "0",
        "how often a connection that could not be made is tried again, with waits as above",
    )  # fmt: skip
    connect_timeout_ms: int = option(
        120_000, "taskmanager.network.netty.client.connectTimeoutSec", "ms", "120 s",
        "how long one attempt to connect may take, the handshake of TLS included",
    )  # fmt: skip
    max_frame_bytes: int = option(
        4 * 1024 * 1024, "(none)", "bytes", "2147483647",
        "longest frame a connection takes in, besides one that fills a segment",
    )  # fmt: skip
    max_event_bytes: int = option(
        1024 * 1024, "(none)", "bytes", "no limit",
        "events that may wait in one remote channel; they need no credit, so nothing else limits them",
    )  # fmt: skip
    max_channels_per_connection: int = option(
        65_536, "(none)", "channels", "no limit",
        "channels that one consumer may read over one connection",
    )  # fmt: skip
    first_frame_timeout_ms: int = option(
        10_000, "(none)", "ms", "no limit",
        "a connection over which nothing was asked for after so long is closed",
    )  # fmt: skip
    spill_threshold_bytes: int = option(
        5 * 1024 * 1024, "(constant THRESHOLD_FOR_SPILLING)", "bytes", "5242880",
        "a record longer than this that spans buffers is gathered in a file",
    )  # fmt: skip
    spill_directory: str | None = option(
        None, "io.tmp.dirs", "path", "the system's",
        "where spilled records go; None is the system's temporary directory",
    )  # fmt: skip
    max_parallelism: int | None = option(
        None, "pipeline.max-parallelism", "key groups", "derived",
        "number of key groups; None derives it from the parallelism as Flink does",
    )  # fmt: skip
    object_reuse: bool = option(
        False, "pipeline.object-reuse", "", "false",
        "hand the same object down a chain instead of a copy",
    )  # fmt: skip
    chaining: bool = option(
        True, "pipeline.operator-chaining", "", "true",
        "put operators that can share a task into one",
    )  # fmt: skip
    source_batch: int = option(
        64, "(a source emits one record at a time)", "records", "1",
        "records a source hands on in one step, so that a step is worth its price",
    )  # fmt: skip
    shortcuts: bool | None = option(
        None, "(what a JIT compiler does)", "", "always",
        "the same bytes with less work (`refimpl.shortcuts`); None is off in a Simulation and on elsewhere",
    )  # fmt: skip
    auto_watermark_interval_ms: int = option(
        200, "pipeline.auto-watermark-interval", "ms", "200 ms; 0 in 1.11 without event time",
        "how often a watermark generator is asked, in processing time; 0 is never",
    )  # fmt: skip
    latency_tracking_interval_ms: int = option(
        0, "metrics.latency.interval", "ms", "0",
        "how often each source subtask sends a latency marker, in processing time; 0 is never",
    )  # fmt: skip
    epoch_ms: int | None = option(
        None, "(none)", "ms", "the time of day",
        "what processing time is when a run starts; None is the time of day, and 0 in a Simulation",
    )  # fmt: skip
    checkpoint_interval_ms: int = option(
        0, "execution.checkpointing.interval", "ms", "none",
        "how often the sources send a barrier, which all tasks align; 0 is never. State is saved if a run has a store",
    )  # fmt: skip
    checkpoint_timeout_ms: int = option(
        600_000, "execution.checkpointing.timeout", "ms", "10 min",
        "a checkpoint that is not complete after so long is given up",
    )  # fmt: skip
    max_concurrent_checkpoints: int = option(
        1, "execution.checkpointing.max-concurrent-checkpoints", "checkpoints", "1",
        "checkpoints that may be under way at one time",
    )  # fmt: skip
    min_pause_ms: int = option(
        0, "execution.checkpointing.min-pause", "ms", "0",
        "least time from the end of a checkpoint to the next one",
    )  # fmt: skip
    tolerable_failed_checkpoints: int = option(
        0, "execution.checkpointing.tolerable-failed-checkpoints", "checkpoints", "0",
        "so many may fail one after the other before the job does",
    )  # fmt: skip
    checkpoints_retained: int = option(
        1, "state.checkpoints.num-retained", "checkpoints", "1",
        "complete checkpoints that are kept in the store, the newest ones",
    )  # fmt: skip
    snapshot_compression: bool = option(
        False, "execution.checkpointing.snapshot-compression", "", "false",
        "state is packed before it is stored (`setUseSnapshotCompression`); with zlib here, with snappy in Flink",
    )  # fmt: skip
    unaligned: bool = option(
        False, "execution.checkpointing.unaligned", "", "false",
        "barriers overtake what waits, which becomes part of the checkpoint (`enableUnalignedCheckpoints`)",
    )  # fmt: skip
    aligned_checkpoint_timeout_ms: int = option(
        0, "execution.checkpointing.aligned-checkpoint-timeout", "ms", "0",
        "with `unaligned`: a barrier overtakes when it has waited so long; 0 is at once. In 2.x",
    )  # fmt: skip
    checkpointing_mode: CheckpointingMode = option(
        CheckpointingMode.EXACTLY_ONCE, "execution.checkpointing.mode", "", "EXACTLY_ONCE",
        "whether a channel that has delivered a barrier waits for the others",
    )  # fmt: skip
    execution_mode: ExecutionMode | ExchangeMode = option(
        ExchangeMode.ALL_PIPELINED, "(ExecutionConfig.setExecutionMode)", "", "PIPELINED",
        "which exchanges are read while they are written, and which when they are finished",
    )  # fmt: skip
    schedule_mode: ScheduleMode = option(
        ScheduleMode.PIPELINED_REGION, "jobmanager.scheduler.scheduling-strategy", "", "EAGER for streams",
        "which tasks are started when; without a blocking exchange all regions are started at once",
    )  # fmt: skip
    input_constraint: InputConstraint = option(
        InputConstraint.ANY, "(ExecutionConfig.setDefaultInputDependencyConstraint)", "", "ANY",
        "whether a task that is started lazily waits for the first record of any input, or of all",
    )  # fmt: skip
    bounded_data: BoundedDataKind = option(
        BoundedDataKind.FILE_MMAP, "taskmanager.network.blocking-shuffle.type", "", "file",
        "how the files of blocking results are written and read",
    )  # fmt: skip
    compression: Compression = option(
        Compression.NONE, "taskmanager.network.blocking-shuffle.compression.enabled", "", "false",
        "how the buffers of blocking results are compressed; one that would not get smaller stays as it is",
    )  # fmt: skip
    max_spill_bytes: int = option(
        64 * 1024**3, "(none)", "bytes", "no limit",
        "how much the blocking results of a job may take on the disk of one TaskManager",
    )  # fmt: skip
    seed: int = option(
        0, "(none)", "", "random",
        "where random choices start, so that a run can be repeated",
    )  # fmt: skip
    flink_version: FlinkVersion = option(
        FlinkVersion.V1_11, "(none)", "", "",
        "whose byte layouts to use for elements and events",
    )  # fmt: skip

    def __post_init__(self) -> None:
        self._check_numbers()
        if self.request_backoff_max_ms < self.request_backoff_initial_ms:
            expected = f"at least request_backoff_initial_ms, {self.request_backoff_initial_ms}"
            raise ConfigError("request_backoff_max_ms", self.request_backoff_max_ms, expected)
        self._check_words()
        self._check_unaligned()
        if self.segment_size_bytes > 2**30:
            raise ConfigError("segment_size_bytes", self.segment_size_bytes, "at most 1 GiB")
        epoch: object = self.epoch_ms
        if epoch is not None and (isinstance(epoch, bool) or not isinstance(epoch, int)):
            raise ConfigError("epoch_ms", epoch, "a whole number of ms, or None")
        groups = self.max_parallelism
        is_number = isinstance(groups, int) and not isinstance(groups, bool)
        if groups is not None and not (is_number and 1 <= groups <= 32_768):
            raise ConfigError("max_parallelism", groups, "between 1 and 32768, or None")

    def _check_words(self) -> None:
        for name, kinds in (
            ("checkpointing_mode", (CheckpointingMode,)),
            ("execution_mode", (ExecutionMode, ExchangeMode)),
            ("schedule_mode", (ScheduleMode,)),
            ("input_constraint", (InputConstraint,)),
            ("bounded_data", (BoundedDataKind,)),
            ("compression", (Compression,)),
        ):
            value = getattr(self, name)
            if not isinstance(value, kinds):
                words = " or ".join(str(word) for kind in kinds for word in kind)
                raise ConfigError(name, value, f"it must be {words}")

    def _check_unaligned(self) -> None:
        """What barriers that overtake do not go together with."""
        if self.aligned_checkpoint_timeout_ms:
            given = self.aligned_checkpoint_timeout_ms
            if not self.unaligned:
                raise ConfigError("aligned_checkpoint_timeout_ms", given, "0 without unaligned=True")
            if self.flink_version is FlinkVersion.V1_11:
                expected = "0 with flink_version=V1_11, whose barriers do not say how long they wait"
                raise ConfigError("aligned_checkpoint_timeout_ms", given, expected)
        if not self.unaligned:
            return
        if self.checkpointing_mode is not CheckpointingMode.EXACTLY_ONCE:
            raise ConfigError("unaligned", True, "checkpointing_mode=EXACTLY_ONCE: at least once nobody waits anyway")
        if not self.credit_based:
            raise ConfigError("unaligned", True, "credit_based=True: there were no barriers that overtake before")
        if self.max_concurrent_checkpoints > 1:
            raise ConfigError("unaligned", True, "max_concurrent_checkpoints=1: one capture is all a channel can have")

    def _check_numbers(self) -> None:
        for name, least in (
            ("segment_size_bytes", 1),
            ("num_buffers", 1),
            ("buffers_per_channel", 1),
            ("floating_buffers_per_gate", 0),
            # 2.x stops a task at this number: at 1 its open buffer would do so, which only the task can fill.
            ("max_buffers_per_channel", 1 if self.flink_version is FlinkVersion.V1_11 else 2),
            ("max_overdraft_buffers", 0),
            ("buffer_timeout_ms", -1),
            ("request_backoff_initial_ms", 0),
            ("request_backoff_max_ms", 0),
            ("connect_retries", 0),
            ("connect_timeout_ms", 1),
            ("max_frame_bytes", 1_024),
            ("max_event_bytes", 1_024),
            ("max_channels_per_connection", 1),
            ("first_frame_timeout_ms", 1),
            ("spill_threshold_bytes", 1),
            ("source_batch", 1),
            ("auto_watermark_interval_ms", 0),
            ("latency_tracking_interval_ms", 0),
            ("checkpoint_interval_ms", 0),
            ("checkpoint_timeout_ms", 1),
            ("aligned_checkpoint_timeout_ms", 0),
            ("max_concurrent_checkpoints", 1),
            ("min_pause_ms", 0),
            ("tolerable_failed_checkpoints", 0),
            ("checkpoints_retained", 1),
            ("max_spill_bytes", 1),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(name, value, f"it must be a whole number, at least {least}")

    @property
    def frame_limit_bytes(self) -> int:
        """The longest frame: `max_frame_bytes`, a full segment with the longest header, or an error of ours."""
        return max(self.max_frame_bytes, 5 * self.segment_size_bytes + 64, _OWN_ERROR_BYTES)

    @property
    def spill_path(self) -> str:
        """The directory for spilled records, resolved."""
        return self.spill_directory or tempfile.gettempdir()


def option_table() -> list[dict[str, str]]:
    """One row per option: name, Flink's key, unit, our default, Flink's default, meaning."""
    return [
        {"name": field.name, "default": str(field.default), **field.metadata} for field in dataclasses.fields(Config)
    ]
