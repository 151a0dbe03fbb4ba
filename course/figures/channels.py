"""The runs behind the figures of lessons 9 to 11: one connection between two TaskManagers, looked at closely.

All in the simulation and in its own time, so a figure is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course.checks.drive_credit import Gate
from refimpl.config import Config
from refimpl.consumer import BufferManager, BufferManagerSnapshot
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import StepTask
from refimpl.job import StreamEnvironment
from refimpl.memory import BufferConsumer
from refimpl.producer import PipelinedSubpartition
from refimpl.records import BYTES
from refimpl.task import IterableReader
from refimpl.trace import Trace
from widgets import Recording
from widgets.view_models import topology

__all__ = ["CreditCosts", "HaltedRun", "Ledger", "credit_costs", "halted_sink", "noting", "one_channel"]

SEGMENT_BYTES = 64
FULL_RECORD = bytes(SEGMENT_BYTES - 4 - 1 - 4)
"""With length, tag and its own length, a record of these bytes fills a buffer."""


def one_channel(num_records: int, config: Config) -> StreamEnvironment:
    """A source on one TaskManager and a sink on the other; each record fills a buffer."""
    environment = StreamEnvironment(config)
    source = environment.source(lambda *_: IterableReader([FULL_RECORD] * num_records), "source", BYTES)
    source.slot_sharing_group("producers").rebalance().sink(_ignore).slot_sharing_group("consumers")
    return environment


def _ignore(_value: object) -> None: ...


def noting(trace: Trace) -> type[PipelinedSubpartition]:
    """The engine's own subpartition, with notes where its trace has none: "written" and "told"."""

    class Noting(PipelinedSubpartition):
        def notify(self) -> None:
            trace.note("told", self.owner)()
            super().notify()

        def add(self, consumer: BufferConsumer) -> bool:
            consumer.watch(lambda: trace.note("written", self.owner)())
            return super().add(consumer)

    return Noting


# -- a sink that stands still --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HaltedRun:
    """A job whose sink stood still until nothing else could move, and then read on; counts are data buffers.

    `num_received` of them stood at the sink's TaskManager when all was still, `num_queued` at the source's, which
    reported `backlog`; the source has `num_written` of `num_records` out of its hands, and its pool has `num_pool`.
    """

    recording: Recording
    own: int
    floating: int
    num_records: int
    num_received: int
    num_queued: int
    backlog: int
    num_written: int
    num_pool: int

    def __repr__(self) -> str:
        granted, sent = self.own + self.floating, self.num_received
        return (
            f"left the source's machine   {sent}, into {self.own} own buffers and {self.floating} floating\n"
            f"queued at the source        {self.num_queued}; its backlog is {self.backlog}, since the last may grow\n"
            f"not written yet             {self.num_records - self.num_written}: the {self.num_pool} buffers of the "
            "source's pool are all in its queue\n"
            f"credit of the source        {granted} granted - {sent} sent + 0 forwarded = {granted - sent}"
        )


def halted_sink(own: int, floating: int, num_records: int) -> HaltedRun:
    """Run one channel with the sink standing still, then to the end."""
    config = Config(
        segment_size_bytes=SEGMENT_BYTES,
        num_buffers=32,
        buffers_per_channel=own,
        floating_buffers_per_gate=floating,
        buffer_timeout_ms=-1,
        source_batch=1,
    )
    sink = StepTask("sink-0")
    with Simulation(one_channel(num_records, config), policy="first", num_task_managers=2) as simulation:
        start = simulation.snapshot()
        recording = Recording(topology(start))
        recording.add(start, "start")
        while rest := [action for action in simulation.enabled() if action != sink]:
            simulation.step(rest[0])
            recording.add(simulation.snapshot(), str(rest[0]))
        still = simulation.snapshot()
        while (action := simulation.step()) is not None:
            recording.add(simulation.snapshot(), str(action))
    (channel,) = still.gates[-1].channels
    (partition,) = still.partitions
    (queue,) = partition.subpartitions
    num_written = next(task.num_records_out for task in still.tasks if task.name == "source-0")
    return HaltedRun(
        recording,
        own,
        floating,
        num_records,
        channel.num_available,
        len(queue.queue),
        queue.backlog,
        num_written,
        partition.pool.size,
    )


# -- the ledger ----------------------------------------------------------------------------------------


class Ledger:
    """The numbers of one channel, one line for each thing that happens to it.

    `entries` are such as "backlog 5", "data", "read" (the oldest buffer that waits for the task) and "announce".
    """

    def __init__(self, *entries: str, own: int = 2, floating: int = 8) -> None:
        gate = Gate(BufferManager, 1, own, floating)
        self._rows = [("", *self._numbers(gate))]
        for entry in entries:
            name, *number = entry.split()
            given = [0, *map(int, number)] if name != "read" else [0, 0]
            gate.do([name, *given])
            self._rows.append((entry, *self._numbers(gate)))

    @staticmethod
    def _numbers(gate: Gate) -> tuple[int, ...]:
        (manager,) = gate.managers
        shot = BufferManagerSnapshot.of(manager)
        return (
            shot.num_required,
            shot.num_exclusive_available,
            shot.num_floating_available,
            shot.num_unannounced,
            shot.num_promised,
        )

    def __repr__(self) -> str:
        heads = ("what happens", "wants", "own empty", "floating", "to announce", "promised")
        lines = ["  ".join(f"{head:<14}" if not place else f"{head:>11}" for place, head in enumerate(heads))]
        for name, *numbers in self._rows:
            lines.append("  ".join([f"{name or '(start)':<14}", *(f"{number:>11}" for number in numbers)]))
        return "\n".join(lines)


# -- what credit costs ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreditCosts:
    """One row for each choice of own and floating buffers: (own, floating, messages of credit, milliseconds)."""

    num_buffers: int
    delay_ms: float
    rows: tuple[tuple[int, int, int, float], ...]

    def __repr__(self) -> str:
        lines = [
            f"{self.num_buffers} buffers over a wire of up to {self.delay_ms:g} ms each way",
            "  own  floating  messages of credit  buffers per ms",
        ]
        for own, floating, messages, time_ms in self.rows:
            rate = self.num_buffers / time_ms
            lines.append(f"  {own:>3}  {floating:>8}  {messages:>18}  {rate:>8.2f}  {'▇' * round(8 * rate)}")
        return "\n".join(lines)


def credit_costs(choices: Sequence[tuple[int, int]], num_buffers: int = 200, delay_ms: float = 4.0) -> CreditCosts:
    """The same buffers over a slow wire with so many own and floating buffers, in the simulation's time."""
    rows = []
    for own, floating in choices:
        config = Config(
            segment_size_bytes=SEGMENT_BYTES,
            num_buffers=64,
            buffers_per_channel=own,
            floating_buffers_per_gate=floating,
            buffer_timeout_ms=-1,
            source_batch=1,
            max_buffers_per_channel=32,
        )
        trace = Trace(capacity=20 * num_buffers)
        job = one_channel(num_buffers, config)
        with Simulation(job, 1, "first", 0, 0.01, trace, num_task_managers=2, max_delay_ms=delay_ms) as simulation:
            simulation.run()
            messages = sum(event.kind == "grant" for event in trace)
            rows.append((own, floating, messages, simulation.time_ms))
    return CreditCosts(num_buffers, delay_ms, tuple(rows))
