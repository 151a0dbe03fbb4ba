"""A job all of whose flights are between its tasks when barriers overtake them: what is in the checkpoint then?

A source for each airport sends its flights while the one task that reads them, the board, stands still. Then comes a
checkpoint, and a crash. What a run comes to depends on the flights and on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from refimpl.checkpoint import CompletedCheckpoint
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config, FlinkVersion
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Coordinate, StepTask
from refimpl.job import StreamEnvironment
from refimpl.records import STRING
from refimpl.state import InFlightData, MemoryStore, SectionKind
from refimpl.state.sections import read_sections, read_table
from refimpl.task import IterableReader

__all__ = ["Waited", "checkpoint_what_waits", "in_flight"]

_FOLDER = "job"  # where a simulation keeps the checkpoints of its job
_ROOM = 1_000_000  # buffers of one channel: nobody waits for one
_INTERVAL_MS = 1  # of checkpoints, and a step takes as long: one is due as soon as anything was sent


@dataclass(frozen=True, slots=True)
class Waited:
    """What became of flights that all waited at the checkpoint.

    `copied_bytes` says for each airport how much of its channel is in the checkpoint, `arrived` what the board got
    after the crash, in its order.
    """

    copied_bytes: dict[str, int]
    arrived: list[str]


def in_flight(checkpoint: CompletedCheckpoint, store: MemoryStore) -> Iterator[tuple[SectionKind, InFlightData]]:
    """The parts of a complete checkpoint that hold what was in flight, with the side on which it was copied."""
    for key in (f"{_FOLDER}/{each}" for each in checkpoint.keys):
        read = partial(store.get, key)
        for section in read_sections(read, read_table(read, store.size(key), key), key):
            if section.kind in (SectionKind.INPUT_IN_FLIGHT, SectionKind.OUTPUT_IN_FLIGHT):
                yield section.kind, InFlightData.from_bytes(section.raw, key)


def checkpoint_what_waits(flights: Mapping[str, Sequence[str]]) -> Waited:
    """Send all flights of all airports to a board that stands still, take an unaligned checkpoint, crash, and go on."""
    arrived: list[str] = []
    store = MemoryStore()
    restart = FixedDelayRestart(1, 1.0)
    job = _job(flights, arrived)
    with Simulation(
        job, policy="round_robin", store=store, restart=restart, check_every=0, step_ms=_INTERVAL_MS
    ) as run:
        assert run.recovery is not None
        sources = [StepTask(f"airport-{number}") for number in range(len(flights))]
        for source, sent in zip(sources, flights.values(), strict=True):
            for _ in sent:
                run.step(source)
        run.step(next(action for action in run.enabled() if isinstance(action, Coordinate)))
        for source in sources:  # each sends its barrier now, which goes before all of it
            run.step(source)
        kept = run.recovery.checkpoints.coordinator.completed
        while (complete := kept.latest) is None:
            run.step()
        names, copied = list(flights), dict.fromkeys(flights, 0)
        for _, state in in_flight(complete, store):
            for entry in state.entries:
                number = int(entry.name.partition(" ")[0].rpartition("-")[2])
                copied[names[number]] += len(entry.data)
        run.crash()
        arrived.clear()
        run.run()
    return Waited(copied, arrived)


def _job(flights: Mapping[str, Sequence[str]], arrived: list[str]) -> StreamEnvironment:
    config = Config(
        segment_size_bytes=64,
        num_buffers=4_096,
        buffers_per_channel=1_024,
        max_buffers_per_channel=_ROOM,
        source_batch=1,
        checkpoint_interval_ms=_INTERVAL_MS,
        unaligned=True,
        flink_version=FlinkVersion.V2_2,
    )
    of_airport = list(flights.values())
    environment = StreamEnvironment(config, len(of_airport))
    source = environment.source(lambda subtask, _of: IterableReader(of_airport[subtask]), "airport", STRING)
    source.rebalance().sink(arrived.append, "board").set_parallelism(1)
    return environment
