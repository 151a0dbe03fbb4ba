"""A job that counts, is crashed, and goes on from its newest checkpoint: what has become of its counts?

Two sources deal the records out to two counters by key, so each counter reads two channels. What a run of it comes to
depends on its data, its seed and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from refimpl.cluster import FixedDelayRestart
from refimpl.config import CheckpointingMode, Config
from refimpl.consumer import AlternatingBarrierHandler, BarrierAligner, BarrierUnaligner, NetworkInput
from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.records import STRING
from refimpl.state import MemoryStore
from refimpl.task import FunctionContext, IterableReader, KeyedProcessFunction, ProcessContext

__all__ = ["CRASH_STEP", "SEED", "Crashed", "count_through_a_crash", "counting", "crashing_run"]

SEED = 1
"""One where the channels of a counter are far apart at the checkpoint."""

CRASH_STEP = 200
_INTERVAL_MS = 5
_STEP_MS = 0.1
_NUM_RESTARTS = 3


class _Count(KeyedProcessFunction):
    """How many records of its key there have been, said at each."""

    def open(self, context: FunctionContext) -> None:
        self.count = context.value_state("count")

    def process_element(self, value: Any, ctx: ProcessContext) -> Iterable[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


@dataclass(frozen=True, slots=True)
class Crashed:
    """The last count of each key, and the checkpoint the job went on from after the crash."""

    counts: dict[str, int]
    restored_id: int

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def counting(
    keys: Sequence[str], on_count: Callable[[Any], object], mode: CheckpointingMode, unaligned: bool = False
) -> StreamEnvironment:
    """The job, ready to be run; `on_count` gets a key and how many of it there are so far."""
    config = Config(
        segment_size_bytes=64,
        num_buffers=64,
        source_batch=4,
        checkpoint_interval_ms=_INTERVAL_MS,
        checkpointing_mode=mode,
        unaligned=unaligned,
        max_parallelism=256,
    )
    environment = StreamEnvironment(config, 2)
    flights = environment.source(lambda subtask, of: IterableReader(keys[subtask::of]), "flights", STRING)
    counted = flights.key_by(lambda key: key).process(_Count(), name="count")
    counted.rebalance().sink(on_count, "board").set_parallelism(1)
    return environment


def crashing_run(
    keys: Sequence[str],
    on_count: Callable[[Any], object],
    mode: CheckpointingMode,
    seed: int = SEED,
    unaligned: bool = False,
) -> Simulation:
    """The simulation of it, with a store in memory; who runs it crashes it."""
    restart = FixedDelayRestart(_NUM_RESTARTS, 1.0)
    job = counting(keys, on_count, mode, unaligned)
    return Simulation(job, seed, store=MemoryStore(), restart=restart, check_every=0, step_ms=_STEP_MS)


def count_through_a_crash(
    keys: Sequence[str],
    mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE,
    aligner: Callable[[int], Any] | None = None,
    seed: int = SEED,
    crash_step: int = CRASH_STEP,
    unaligner: Callable[[BarrierUnaligner], Any] | None = None,
) -> Crashed:
    """Count, crash after `crash_step` steps, begin again, and count to the end.

    With an `aligner` that says where each task is cut, in the place of ours; or with barriers that overtake, and an
    `unaligner` that is given ours.
    """
    counts: dict[str, int] = {}

    def note(count: tuple[str, int]) -> None:
        counts[count[0]] = max(count[1], counts.get(count[0], 0))

    def put(simulation: Simulation) -> None:
        for task in (each for deployment in simulation.deployments for each in deployment.tasks):
            if not isinstance(task.input, NetworkInput):
                continue
            handler = task.input.alignment
            if type(handler) is BarrierAligner and aligner:
                task.input.alignment = aligner(handler.num_channels)
            elif isinstance(handler, AlternatingBarrierHandler) and type(handler.unaligner) is BarrierUnaligner:
                handler.unaligner = unaligner(handler.unaligner) if unaligner else handler.unaligner

    with crashing_run(keys, note, mode, seed, unaligner is not None) as simulation:
        put(simulation)
        simulation.run(crash_step, on_step=put)
        simulation.crash()
        simulation.run(on_step=put)
        assert simulation.recovery is not None
        restored = simulation.recovery.checkpoints.recovered
        found = 0 if restored is None or restored.manifest is None else restored.manifest.checkpoint_id
    return Crashed(dict(sorted(counts.items())), found)
