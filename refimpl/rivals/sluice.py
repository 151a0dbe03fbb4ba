"""Our own two rows: the workload as a job of the engine, without and with credit, in the timed simulation.

No model of it: the tasks, buffers, credits and wires are those of every other run.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

from refimpl.config import Config
from refimpl.drivers.simulation.run import Simulation
from refimpl.drivers.simulation.work import Costs
from refimpl.job.environment import StreamEnvironment
from refimpl.records.elements import StreamRecord
from refimpl.records.types import BYTES
from refimpl.rivals.measures import SAMPLE_MS, Run, Sample
from refimpl.rivals.workload import NUM_BRANCHES, RECORD_BYTES, SINK, SLOW, SOURCE, WORK, Workload

__all__ = ["SEGMENT_BYTES", "run_engine"]

SEGMENT_BYTES = 1_024
_STAGES = "source", "work", "sink"
_HEAD = struct.Struct(">dB")
"""When a record was emitted, and of which branch it is."""


class _Counts:
    """What sources and sinks of the job have seen; `clock` is the run's virtual time."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = lambda: 0.0
        self.emitted = [0] * NUM_BRANCHES
        self.left = [0] * NUM_BRANCHES
        self.latencies_ms: list[float] = []

    def take(self, value: bytes) -> None:
        """The sink's function."""
        emitted_ms, branch = _HEAD.unpack_from(value)
        self.left[branch] += 1
        if branch == SLOW:
            self.latencies_ms.append(self.clock() - emitted_ms)


class _Reader:
    """A source that always has a record: when it was read, and what else makes it `RECORD_BYTES` long."""

    def __init__(self, branch: int, counts: _Counts) -> None:
        self._branch, self._counts = branch, counts
        self._rest = bytes(RECORD_BYTES - _HEAD.size)

    def read(self, max_records: int) -> list[StreamRecord]:
        self._counts.emitted[self._branch] += max_records
        value = _HEAD.pack(self._counts.clock(), self._branch) + self._rest
        return [StreamRecord(value) for _ in range(max_records)]

    def close(self) -> None:
        """Nothing is open."""


def _same(value: bytes) -> bytes:
    return value


def _job(counts: _Counts, credit_based: bool) -> StreamEnvironment:
    """Three stages, each on a TaskManager of its own; a branch is a subtask of each, so both share the connections."""
    config = Config(segment_size_bytes=SEGMENT_BYTES, num_buffers=128, credit_based=credit_based, source_batch=1)
    environment = StreamEnvironment(config, parallelism=NUM_BRANCHES)
    source = environment.source(lambda branch, _width: _Reader(branch, counts), _STAGES[SOURCE], BYTES)
    worked = source.slot_sharing_group(_STAGES[SOURCE]).map(_same, _STAGES[WORK], type=BYTES)
    worked.slot_sharing_group(_STAGES[WORK]).sink(counts.take, _STAGES[SINK]).slot_sharing_group(_STAGES[SINK])
    return environment


def run_engine(workload: Workload, delay_ms: float, *, credit_based: bool) -> Run:
    """Run the workload on the engine."""
    counts = _Counts()
    costs = Costs(
        {
            f"{name}-{branch}": partial(workload.service_ms, stage, branch)
            for stage, name in enumerate(_STAGES)
            for branch in range(NUM_BRANCHES)
        },
        link_delay_ms=delay_ms,
    )
    samples = list[Sample]()
    with Simulation(
        _job(counts, credit_based), workload.seed, policy="timed", check_every=0, num_task_managers=3, costs=costs
    ) as simulation:
        counts.clock = lambda: simulation.time_ms
        while len(samples) * SAMPLE_MS < workload.total_ms:
            while simulation.time_ms < (len(samples) + 1) * SAMPLE_MS:
                simulation.step()
            taken = sum(
                deployment.config.num_buffers - deployment.pool.num_free for deployment in simulation.deployments
            )
            samples.append(Sample(tuple(counts.emitted), tuple(counts.left), taken * SEGMENT_BYTES))
    name = f"Sluice, {'with' if credit_based else 'without'} credit"
    return Run(name, workload.seed, tuple(workload.phases), tuple(samples), tuple(counts.latencies_ms))
