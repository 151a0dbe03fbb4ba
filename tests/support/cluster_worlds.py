"""A cluster with a real job in it, for tests: what it is made of, what it must commit, and its golden scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import ClassVar

from refimpl.cluster import ExecutionState, FixedDelayRestart, JobState, MemberKind
from refimpl.config import Config
from refimpl.drivers.cluster_simulation import DISPATCHER, ClusterAction, ClusterSimulation, Elect, job_master_of
from refimpl.drivers.file_transactions import FileSink
from refimpl.drivers.simulation import CallStore, Tell
from refimpl.job import StreamEnvironment
from refimpl.records import STRING
from refimpl.state import MemoryStore
from tests.support.checkpoint_worlds import Counting, listed, numbers_of

__all__ = [
    "JOB",
    "Clustered",
    "committed",
    "counting_job",
    "expected",
    "is_running",
    "running_cluster",
    "small_memory",
    "task_managers",
]

JOB = "counts"
LETTERS = "abcab"
PARALLELISM = 3


def small_memory(**more: object) -> Config:
    """Small buffers, so that records are under way for a while, and a checkpoint every few steps."""
    given: dict[str, object] = {
        "segment_size_bytes": 64, "num_buffers": 100, "source_batch": 1, "buffer_timeout_ms": 1,
        "checkpoint_interval_ms": 4, "floating_buffers_per_gate": 2,
    }  # fmt: skip
    return Config(**{**given, **more})  # type: ignore[arg-type]


def counting_job(folder: Path, config: Config, times: int = 6, parallelism: int = PARALLELISM) -> StreamEnvironment:
    """Letters, counted by key, into files that count when a checkpoint does: one region, as wide as `parallelism`."""
    environment = StreamEnvironment(config, parallelism)
    letters = environment.from_collection(LETTERS * times, "letters", STRING).set_parallelism(parallelism)
    counted = letters.key_by(lambda letter: letter).process(Counting(), "count").rebalance()
    counted.sink_to(FileSink(folder), name="file")
    return environment


def expected(times: int = 6, parallelism: int = PARALLELISM) -> list[str]:
    """What is committed in the end, sorted; each source subtask has every letter of its own."""
    counts = Counter(LETTERS * times * parallelism)
    return sorted(f"{letter}{number}" for letter, total in counts.items() for number in range(1, total + 1))


def committed(folder: Path) -> list[str]:
    """What is in files that count, sorted."""
    files = [each for each in folder.iterdir() if not each.name.startswith(".")] if folder.is_dir() else []
    return sorted(line for each in files for line in each.read_text().split())


def running_cluster(
    folder: Path, seed: int, times: int = 6, store: MemoryStore | None = None, num_slots: int = 2, **more: object
) -> ClusterSimulation:
    """Three TaskManagers; the job has been submitted, and begins again whenever it can."""
    config = small_memory(**more)
    cluster = ClusterSimulation(3, num_slots, seed, config=config, store=store, max_delay_ms=0.3)
    cluster.run(lambda run: DISPATCHER in run.members.alive)
    cluster.submit(JOB, counting_job(folder, config, times), lambda: FixedDelayRestart(1_000, 5.0))
    return cluster


def is_running(cluster: ClusterSimulation) -> bool:
    """Whether every attempt of the job runs, for a leader that is there."""
    (job,) = cluster.snapshot().jobs
    return job.state is JobState.RUNNING and {state for _, state in job.executions} == {ExecutionState.RUNNING}


def task_managers(cluster: ClusterSimulation) -> list[str]:
    """The addresses of those in whose slots something runs."""
    shown = [each for each in cluster.snapshot().members if each.kind is MemberKind.TASK_MANAGER]
    return sorted(each.address for each in shown if any(slot.executions for slot in each.slots))


class Clustered:
    """A cluster in a golden script: three TaskManagers, and the job that counts letters."""

    DEFAULTS: ClassVar[dict[str, object]] = {"times": 6, "every": 4, "slots": 2, "seed": 0}
    TOLD = (
        "RegisterTaskManager", "RegisterJobMaster", "OfferedSlots", "RequestSlot", "GiveSlot", "SlotFailed",
        "SlotWasFreed", "that ",
    )  # fmt: skip

    def __init__(self, words: list[str]) -> None:
        given = numbers_of(words, self.DEFAULTS)
        times, every, slots, seed = (int(str(given[name])) for name in ("times", "every", "slots", "seed"))
        self.folder = TemporaryDirectory()
        self.times = times
        self.cluster = running_cluster(
            Path(self.folder.name), seed, times, MemoryStore(), slots, checkpoint_interval_ms=every
        )
        self.attempts: dict[ExecutionState, int] = {}
        self.job_state: JobState | None = None
        self.completed = 0

    def do(self, words: list[str]) -> Iterator[str]:
        for line in self.done(words):
            yield from wrap(line, 118, subsequent_indent="  ", break_on_hyphens=False)

    def done(self, words: list[str]) -> Iterator[str]:
        match words:
            case ["until", "all", "hear", *text]:
                yield from self.until_all_hear(" ".join(text))
            case ["until", *text]:
                yield from self.until(" ".join(text))
            case ["crash", *who]:
                self.cluster.crash(" ".join(who))
                yield f"{self.now}: {' '.join(who)} is gone"
            case ["revive", *who]:
                self.cluster.revive(" ".join(who))
                yield f"{self.now}: {' '.join(who)} is back"
            case ["pause", *who]:
                self.cluster.members.pause(" ".join(who))
                yield f"{self.now}: {' '.join(who)} stands still"
            case ["resume", *who]:
                self.cluster.members.resume(" ".join(who))
                yield f"{self.now}: {' '.join(who)} goes on"
            case ["run"]:
                yield from self.run()
            case ["files"]:
                found, wanted = committed(Path(self.folder.name)), expected(self.times)
                yield f"committed: {len(found)} lines, " + (
                    "each once" if found == wanted else "not all, or some twice"
                )
            case _:
                known = "until WORDS, crash WHO, revive WHO, pause WHO, resume WHO, run, files"
                raise ValueError(f"{' '.join(words)!r} is none of {known}")

    def run(self) -> Iterator[str]:
        """Let it come to its end; told is only what becomes of the job."""
        while not self.cluster.is_at_rest:
            for line in self.step():
                if ": the job is " in line:
                    yield line
        self.cluster.check_at_rest()
        yield f"{self.now}: every slot is free, and every segment home"

    def until(self, text: str) -> Iterator[str]:
        for _ in range(20_000):
            lines = self.step()
            yield from lines
            if any(text in line for line in lines):
                return
        raise AssertionError(f"20000 steps, and nothing with {text!r}")

    def until_all_hear(self, text: str) -> Iterator[str]:
        waiting = {each for each in self.cluster.members.alive if each.startswith("tm-")}
        while waiting:
            for line in self.until(f"hears {text}"):
                waiting -= {each for each in waiting if f"{each} hears {text}" in line}
                yield line

    def step(self) -> list[str]:
        """A step; what there is to say of it."""
        action = self.cluster.step()
        lines = [f"{self.now}: {line}" for line in self.said_of(action)]
        (job,) = self.cluster.snapshot().jobs
        if job.state is not self.job_state:
            self.job_state = job.state
            why = f": {job.failure}" if job.state is JobState.RESTARTING else ""
            lines.append(f"{self.now}: the job is {job.state.value}{why}")
        new = [each for each in job.completed if each > self.completed]
        lines += [f"{self.now}: checkpoint {each} is complete" for each in new]
        self.completed = max(self.completed, *new) if new else self.completed
        states = Counter(state for _, state in job.executions)
        if states != self.attempts and len(states) == 1:
            state = next(iter(states))
            number = {each.attempt for each, _ in job.executions}
            lines.append(f"{self.now}: all {states[state]} attempts, number {listed(number)}, are {state.value}")
        self.attempts = dict(states)
        return lines

    def said_of(self, action: ClusterAction | None) -> Iterator[str]:
        if isinstance(action, Tell) and action.what.startswith(self.TOLD):
            what, _, line = action.what.rpartition(" to ")
            receiver, _, sender = line.partition(" from ")
            is_news = sender in ("election", "network") or what.endswith("is gone")
            yield f"{receiver} hears {what}" if is_news else f"{sender} to {receiver}: {what}"
        elif isinstance(action, Elect):
            yield f"somebody leads {action.address}"
        elif isinstance(action, CallStore) and "find the newest" in action.what:
            checkpoints = self.cluster.members.present(job_master_of(JOB)).checkpoints
            assert checkpoints is not None
            recovered = None if checkpoints.run is None else checkpoints.run.recovered
            yield f"the job goes on from {'nothing' if recovered is None else recovered.key or 'nothing'}"

    @property
    def now(self) -> str:
        return f"{self.cluster.time_ms:.1f} ms"

    def state(self) -> Iterator[str]:
        for each in sorted(self.cluster.snapshot().members, key=lambda member: member.address):
            slots = [
                f"[{slot.slot.index}] {slot.state.value}"
                + (f", {slot.allocation}, {len(slot.executions)} attempts" if slot.allocation else "")
                for slot in each.slots
            ]
            epoch = f", epoch {each.epoch}" if each.epoch else ""
            yield f"{each.address}: {each.state.value}{epoch}" + (f"; {'; '.join(slots)}" if slots else "")

    def close(self) -> None:
        self.folder.cleanup()
