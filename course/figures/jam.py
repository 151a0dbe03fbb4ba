"""The runs behind the figures of lesson 10: a connection with one slow reader, before credits and with them.

All in the simulation and in its own time, in rounds: in a round each reader that is awake may take one step, and in
between everything else moves as far as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from course.figures.channels import FULL_RECORD, SEGMENT_BYTES
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import StepTask
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES
from refimpl.task import IterableReader

__all__ = ["Followed", "Jam", "WhereItStands", "barriers_through", "follow", "jam", "left_over", "where_it_stands"]

_NUM_CHANNELS = 4
_ROUNDS = 16
_SENT_AT_MS = 16  # when all is full that lies between a source and a slow sink


def _endless(config: Config, parallelism: int) -> StreamEnvironment:
    """Sources on one TaskManager that never end, each with a sink of its own on the other."""
    environment = StreamEnvironment(config, parallelism=parallelism)
    source = environment.source(lambda *_: IterableReader(iter(lambda: FULL_RECORD, None)), "source", BYTES)
    source.slot_sharing_group("producers").sink(_ignore).slot_sharing_group("consumers")
    return environment


def _ignore(_value: object) -> None: ...


def _config(*, credit_based: bool) -> Config:
    return Config(
        segment_size_bytes=SEGMENT_BYTES,
        num_buffers=128,
        credit_based=credit_based,
        source_batch=1,
        buffer_timeout_ms=-1,
    )


def _records(simulation: Simulation, kind: str) -> list[int]:
    return [task.num_records_in for task in simulation.snapshot().tasks if task.name.startswith(kind)]


def _round(simulation: Simulation, resting: set[StepTask], awake: Sequence[StepTask]) -> None:
    """Let each of `awake` take one step, and all else but `resting` move as far as it can."""
    for task in awake:
        if task in simulation.enabled():
            simulation.step(task)
    while rest := [each for each in simulation.enabled() if each not in resting]:
        simulation.step(rest[0])


# -- the jam and its cure --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Jam:
    """What each reader got in each phase, in buffers a round; the first reader slept in the phases in `asleep`."""

    credit_based: bool
    asleep: tuple[bool, ...]
    rates: tuple[tuple[float, ...], ...]

    def __repr__(self) -> str:
        lines = [f"{'with' if self.credit_based else 'without'} credits, {_NUM_CHANNELS} channels on one connection"]
        lines.append(
            "  rounds      "
            + "".join(f"{place * _ROUNDS + 1:>5} to {(place + 1) * _ROUNDS:<4}" for place in range(len(self.asleep)))
        )
        for reader, rates in enumerate(self.rates):
            cells = []
            for is_asleep, rate in zip(self.asleep, rates, strict=True):
                bar = "sleeps" if is_asleep and not reader else "▇" * round(4 * rate)
                cells.append(f"{rate:>5.2f} {bar:<7}")
            lines.append(f"  reader {reader}    " + "".join(cells))
        return "\n".join(line.rstrip() for line in lines)


def jam(*, credit_based: bool, phases: Sequence[bool] = (False, True, True, False, False)) -> Jam:
    """Run four channels on one connection; in the phases that are true the first reader sleeps."""
    sinks = [StepTask(f"sink-{number}") for number in range(_NUM_CHANNELS)]
    rates: list[list[float]] = [[] for _ in sinks]
    job = _endless(_config(credit_based=credit_based), _NUM_CHANNELS)
    with Simulation(job, num_task_managers=2, check_every=0) as simulation:
        _round(simulation, set(sinks), [])
        for is_asleep in phases:
            before = _records(simulation, "sink")
            for _ in range(_ROUNDS):
                _round(simulation, set(sinks), sinks[1:] if is_asleep else sinks)
            for reader, (now, then) in enumerate(zip(_records(simulation, "sink"), before, strict=True)):
                rates[reader].append((now - then) / _ROUNDS)
    return Jam(credit_based, tuple(phases), tuple(map(tuple, rates)))


# -- where it stands ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WhereItStands:
    """Where the data of four channels is when the first reader sleeps and nothing moves any more, in buffers.

    Each row has a number for each channel, or yes and no.
    """

    rows: tuple[tuple[str, tuple[int | bool, ...]], ...]

    def __repr__(self) -> str:
        heads = "".join(f"  channel {number}" for number in range(_NUM_CHANNELS))
        lines = [f"{'in buffers, while the first reader sleeps':<45}{heads}"]
        lines += [f"  {what:<43}" + "".join(f"{_in_words(each):>11}" for each in found) for what, found in self.rows]
        return "\n".join(lines)


def where_it_stands(*, credit_based: bool) -> WhereItStands:
    """Let the first reader sleep until nothing can move but it, and count what lies where."""
    sinks = [StepTask(f"sink-{number}") for number in range(_NUM_CHANNELS)]
    with Simulation(
        _endless(_config(credit_based=credit_based), _NUM_CHANNELS), num_task_managers=2, check_every=0
    ) as simulation:
        for _ in range(3 * _ROUNDS):
            _round(simulation, set(sinks), sinks[1:])
        shot = simulation.snapshot()
        channels = [gate.channels[0] for gate in shot.gates]
        (wire,) = shot.wires
        on_the_wire = [sum(frame.receiver == channel.receiver for frame in wire.responses) for channel in channels]
        queued = [len(partition.subpartitions[0].queue) for partition in shot.partitions]
        taken = [
            partition.subpartitions[0].num_buffers_total - left
            for partition, left in zip(shot.partitions, queued, strict=True)
        ]
        staged = [
            num_taken - num_passing - channel.num_received
            for num_taken, num_passing, channel in zip(taken, on_the_wire, channels, strict=True)
        ]
        must_wait = [not partition.pool.is_available for partition in shot.partitions]
        (link,) = simulation.links.values()
        is_reading = link.consumer.pause is None
    rows = (
        ("received, unread", tuple(channel.num_available for channel in channels)),
        ("come, but no buffer to lie in", tuple(staged)), ("on the wire", tuple(on_the_wire)),
        ("queued at the sender", tuple(queued)), ("must its source wait?", tuple(must_wait)),
        ("is the connection read?", (is_reading,) * _NUM_CHANNELS),
    )  # fmt: skip
    return WhereItStands(rows)


def _in_words(found: int | bool) -> str:
    return ("no", "yes")[found] if isinstance(found, bool) else str(found)


# -- the producer that follows its consumer ------------------------------------------------------------------

Phase = tuple[str, int]
"""Who is held, "producer", "consumer" or "" for nobody, and at how many percent of its best."""
PHASES: tuple[Phase, ...] = (("producer", 60), ("consumer", 30), ("", 100), ("consumer", 30), ("", 100))
"""As in the experiment of Flink's own texts."""


@dataclass(frozen=True, slots=True)
class Followed:
    """How fast both ends ran in each phase, in percent of their best, beside who was held in it, and at how much.

    `measured` has for each setting the rates of the producer and of the consumer.
    """

    phases: tuple[Phase, ...]
    measured: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]

    def __repr__(self) -> str:
        heads = "".join(f"{who or 'nobody':>9}  " for who, _ in self.phases).rstrip()
        lines = [f"{'speed in percent; held is':<40}{heads}", _bars("at", [percent for _, percent in self.phases])]
        for where, producer, consumer in self.measured:
            lines += [_bars(f"{where}: the producer", producer), _bars(f"{'':<{len(where)}}  the consumer", consumer)]
        return "\n".join(lines)


def _bars(name: str, rates: Sequence[int]) -> str:
    return f"  {name:<38}" + "".join(f"{rate:>4} {'▇' * round(rate / 20):<6}" for rate in rates).rstrip()


def follow(phases: Sequence[Phase] = PHASES, rounds: int = 100) -> Followed:
    """Run one source and one sink, each at most one step a round, and hold one of them in each phase.

    A phase has `rounds` in which what lies between the two may fill or empty, then `rounds` that count.
    On one TaskManager the sink reads the source's queue; on two there is a connection, with credits and without.
    """
    measured = []
    for where, config, width in (
        ("on one machine", _config(credit_based=True), 1),
        ("on two, with credits", _config(credit_based=True), 2),
        ("on two, without credits", _config(credit_based=False), 2),
    ):
        with Simulation(_endless(config, 1), num_task_managers=width, check_every=0) as simulation:
            measured.append((where, *_followed(simulation, phases, rounds)))
    return Followed(tuple(phases), tuple(measured))


def left_over(*, credit_based: bool) -> int:
    """How many buffers a source still writes after its sink, on another machine, has stopped, until it must wait."""
    source, sink = StepTask("source-0"), StepTask("sink-0")
    job = _endless(_config(credit_based=credit_based), 1)
    with Simulation(job, num_task_managers=2, check_every=0) as simulation:
        for _ in range(_ROUNDS):
            _round(simulation, {source, sink}, [source, sink])
        before = now = _both(simulation)["producer"]
        while True:
            _round(simulation, {source, sink}, [source])
            if _both(simulation)["producer"] == now:
                return now - before
            now = _both(simulation)["producer"]


def _followed(simulation: Simulation, phases: Sequence[Phase], rounds: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ends = {"consumer": StepTask("sink-0"), "producer": StepTask("source-0")}
    rates: dict[str, list[int]] = {"producer": [], "consumer": []}
    for held, percent in phases:
        before, due = _both(simulation), dict.fromkeys(ends, 0)
        for number in range(2 * rounds):
            if number == rounds:
                before = _both(simulation)
            due = {end: 100 * (end != held) + percent * (end == held) + due[end] % 100 for end in ends}
            _round(simulation, set(ends.values()), [task for end, task in ends.items() if due[end] >= 100])
        for end, now in _both(simulation).items():
            rates[end].append(round(100 * (now - before[end]) / rounds))
    return tuple(rates["producer"]), tuple(rates["consumer"])


def _both(simulation: Simulation) -> dict[str, int]:
    """How many records each end has had so far."""
    (written,), (read,) = _records(simulation, "source"), _records(simulation, "sink")
    return {"producer": written, "consumer": read}


# -- what holds a barrier up ---------------------------------------------------------------------------------


def barriers_through(pace: int, *, credit_based: bool) -> tuple[int, ...]:
    """Rounds until a barrier is through to each reader; the first takes a step in one of `pace` rounds only."""
    sinks = [StepTask(f"sink-{number}") for number in range(_NUM_CHANNELS)]
    config = replace(_config(credit_based=credit_based), checkpoint_interval_ms=_SENT_AT_MS)
    sent, number, through = -1, 0, [-1] * _NUM_CHANNELS
    with Simulation(_endless(config, _NUM_CHANNELS), num_task_managers=2, check_every=0) as simulation:
        readers = [task for each in simulation.deployments for task in each.tasks if task.name.startswith("sink")]
        while min(through) < 0:
            _round(simulation, set(sinks), sinks if number % pace == 0 else sinks[1:])
            number += 1
            if sent < 0 and simulation.deployments[0].checkpoints.next_id > 1:
                sent = number
            for place, task in enumerate(readers):
                if task.checkpoints.last_cut is not None and through[place] < 0:
                    through[place] = number - sent
    return tuple(through)
