"""Two worlds of golden scripts: a coordinator alone, and a job that has a store.

Their commands stand in `tests/README.md`, those of other worlds in `test_scenarios.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import ClassVar

from refimpl.checkpoint import (
    Ack,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointCoordinator,
    CheckpointFailureReason,
    CheckpointOptions,
    CheckpointRequest,
    CompletedCheckpoints,
    CoordinatorDecision,
    Delete,
    DeleteManifest,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    RequestRefused,
    TaskEvent,
    TriggerCheckpoint,
    WriteManifest,
)
from refimpl.cluster import FailureRateRestart, FixedDelayRestart, RestartStrategy
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.file_transactions import FileSink
from refimpl.drivers.simulation import Action
from refimpl.errors import SluiceError
from refimpl.job import StreamEnvironment
from refimpl.records import STRING
from refimpl.state import Fault, FaultKind, MemoryStore, StateFile
from refimpl.task import FunctionContext, KeyedProcessFunction, ProcessContext

Lines = Iterator[str]
MOST_STEPS = 5_000


def numbers_of(words: Iterable[str], known: dict[str, object]) -> dict[str, object]:
    """The `name=value` words of a first command over the defaults in `known`."""
    given = dict(known)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            raise ValueError(f"{word!r} is none of {', '.join(f'{name}=' for name in known)}")
        given[name] = value if isinstance(known[name], str) else int(value)
    return given


def listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "nobody"


def decided(decision: CoordinatorDecision) -> str:
    """What is to be done, in words."""
    match decision:
        case TriggerCheckpoint(number, request, _, attempts):
            kind = f"savepoint {request.name}, checkpoint {number}" if request.name else f"checkpoint {number}"
            return f"{kind} begins: a barrier from {listed(attempts)}"
        case WriteManifest(number):
            return f"write the manifest of {number}"
        case NotifyComplete(number, attempts):
            return f"tell {listed(attempts)}: {number} is complete"
        case NotifyAborted(number, attempts):
            return f"tell {listed(attempts)}: {number} is aborted"
        case DeleteManifest(number):
            return f"delete the manifest of {number}"
        case Delete(keys):
            return f"delete {listed(keys)}"
        case FailJob(cause):
            return f"the job fails: {cause}"
    return news_of(decision)


def news_of(news: CheckpointCompleted | CheckpointAborted | RequestRefused) -> str:
    match news:
        case CheckpointCompleted(checkpoint):
            return f"checkpoint {checkpoint.checkpoint_id} is complete"
        case CheckpointAborted(number, _, reason, detail, missing):
            rest = "".join(f"; {text}" for text in (detail, f"not from {listed(missing)}" if missing else "") if text)
            return f"checkpoint {number} is aborted: {reason.value}{rest}"
        case RequestRefused(_, reason):
            return f"no checkpoint: {reason.value}"


class Coordinator:
    """A coordinator whose tasks and whose store are the script: a source, a map and a sink, which run."""

    DEFAULTS: ClassVar[dict[str, object]] = {
        "interval": 0, "timeout": 600_000, "concurrent": 1, "pause": 0, "tolerable": 0, "retained": 1,
    }  # fmt: skip
    TASKS = ("source", "map", "sink")

    def __init__(self, words: list[str]) -> None:
        given = numbers_of(words, self.DEFAULTS)
        options = CheckpointOptions(*(int(str(given[name])) for name in [*self.DEFAULTS][:5]))
        self.coordinator = CheckpointCoordinator(options, CompletedCheckpoints(int(str(given["retained"]))))
        self.now_ms = 0.0
        self.num_asked = 0
        self.attempt = 0
        list(self.start())

    def start(self) -> Lines:
        """All tasks run, in their next attempt."""
        self.attempt += 1
        names = [self.name(task) for task in self.TASKS]
        self.coordinator.start(names, names[:1], self.now_ms)
        for name in names:
            yield from map(decided, self.coordinator.task_reports(name, TaskEvent.RUN, self.now_ms))

    def name(self, task: str) -> str:
        """A task of now; of an attempt that has been is said which, `sink#1`."""
        return task if "#" in task else f"{task}#{self.attempt}"

    def do(self, words: list[str]) -> Lines:
        made, now_ms = self.coordinator, self.now_ms
        match words:
            case ["time", ms]:
                self.now_ms = float(ms)
                return map(decided, made.on_timeout(self.now_ms))
            case ["ask"]:
                self.num_asked += 1
                return map(decided, made.submit(CheckpointRequest(self.num_asked, now_ms), now_ms))
            case ["savepoint", name]:
                self.num_asked += 1
                return map(decided, made.submit(CheckpointRequest.for_savepoint(self.num_asked, now_ms, name), now_ms))
            case ["ack", number, *tasks]:
                return (line for task in tasks for line in self.acknowledge(int(number), self.name(task)))
            case ["decline", number, task, *why]:
                reason = CheckpointFailureReason.DECLINED
                return map(decided, made.decline(int(number), self.name(task), reason, " ".join(why), now_ms))
            case ["written", number]:
                return map(decided, made.manifest_written(int(number), now_ms))
            case ["not", "written", number, *why]:
                return map(decided, made.manifest_not_written(int(number), " ".join(why), now_ms))
            case ["restart"]:
                stopped = list(map(decided, made.stop(now_ms)))
                return iter([*stopped, *self.start()])
        known = "time MS, ask, savepoint NAME, ack N TASK …, decline N TASK WHY, written N, not written N WHY, restart"
        raise ValueError(f"{' '.join(words)!r} is none of {known}")

    def acknowledge(self, number: int, task: str) -> Lines:
        ack = Ack(number, task, (StateFile(f"chk-{number}/{task}", 1, "00"),))
        result, decisions = self.coordinator.acknowledge(ack, self.now_ms)
        yield f"{task} acknowledges {number}: {result.name.lower()}"
        yield from map(decided, decisions)

    def state(self) -> Lines:
        shot = self.coordinator.snapshot()
        for pending in shot.pending:
            missing = f"waits for {listed(pending.missing)}" if pending.missing else "all have acknowledged"
            yield f"checkpoint {pending.checkpoint_id}: {pending.state.value}; {missing}"
        kept = ", ".join(str(each.checkpoint_id) for each in shot.kept)
        yield f"kept: {kept or 'none'}; {shot.num_failed} failed in a row"

    def close(self) -> None: ...


class Counting(KeyedProcessFunction):
    """Which of its key each value is: `a3` is the third a."""

    def open(self, context: FunctionContext) -> None:
        self.count = context.value_state("count")

    def process_element(self, value: str, ctx: ProcessContext) -> Iterable[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value}{self.count.value()}"


def counts(environment: StreamEnvironment, folder: Path) -> None:
    """Letters, counted by key, into files that count when the checkpoint does."""
    letters = environment.from_collection("abcab" * 4, "letters", STRING).set_parallelism(1)
    counted = letters.key_by(lambda letter: letter).process(Counting(), "count").rebalance()
    counted.sink_to(FileSink(folder), name="file").set_parallelism(1)


def numbers(environment: StreamEnvironment, folder: Path) -> None:
    """Thirty numbers, into the files of two subtasks."""
    numbers = environment.from_collection(range(30), "numbers").set_parallelism(1).rebalance()
    numbers.sink_to(FileSink(folder), name="file").set_parallelism(2)


JobMaker = Callable[[StreamEnvironment, Path], None]
STORED_JOBS: dict[str, JobMaker] = {"counts": counts, "numbers": numbers}


class Recovering:
    """A job of `STORED_JOBS` in the simulation: what it has in the store outlives its crashes, and the run."""

    DEFAULTS: ClassVar[dict[str, object]] = {
        "every": 0, "timeout": 600_000, "retained": 1, "parallelism": 1, "restarts": 3, "failures": 0, "within": 100,
        "wait": 1, "batch": 1, "segment": 64, "seed": 0, "policy": "first", "task_managers": 1,
    }  # fmt: skip
    JOBS = STORED_JOBS
    savepoint: str | None = None  # what the next run is to go on from

    def __init__(self, words: list[str]) -> None:
        self.make = self.JOBS[words[0]]
        self.given = numbers_of(words[1:], self.DEFAULTS)
        self.store = MemoryStore()
        self.folder = TemporaryDirectory()
        self.num_told = 0
        self.simulation = self.begin()

    def begin(self) -> Simulation:
        """Another run of the job on the same store."""
        given = self.given
        environment = StreamEnvironment(self.config(), int(str(given["parallelism"])))
        self.make(environment, Path(self.folder.name))
        wait_ms = float(str(given["wait"]))
        restart: RestartStrategy = FixedDelayRestart(int(str(given["restarts"])), wait_ms)
        if given["failures"]:
            restart = FailureRateRestart(int(str(given["failures"])), float(str(given["within"])), wait_ms)
        self.num_told = 0
        return Simulation(
            environment, int(str(given["seed"])), str(given["policy"]), step_ms=0.2, store=self.store, restart=restart,
            trust_pickle=True, num_task_managers=int(str(given["task_managers"])), savepoint=self.savepoint,
        )  # fmt: skip

    def config(self) -> Config:
        given = {name: value if isinstance(value, str) else int(str(value)) for name, value in self.given.items()}
        return Config(
            segment_size_bytes=given["segment"], num_buffers=96, source_batch=given["batch"], buffer_timeout_ms=0,
            checkpoint_interval_ms=given["every"], checkpoint_timeout_ms=given["timeout"],
            checkpoints_retained=given["retained"],
        )  # fmt: skip

    def do(self, words: list[str]) -> Lines:
        for line in self.done(words):
            yield from wrap(line, 118, subsequent_indent="  ", break_on_hyphens=False)

    def done(self, words: list[str]) -> Lines:
        match words:
            case ["run"]:
                yield from self.run()
            case ["until", *text]:
                yield from self.until(" ".join(text))
            case ["do", *text]:
                yield from self.step(self.first_enabled(" ".join(text)))
            case ["crash"]:
                yield from self.crash()
            case ["kill"]:
                self.simulation.__exit__()
                yield "the process is gone"
            case ["again", *changes]:
                yield from self.again(changes)
            case ["savepoint", name]:
                recovery = self.simulation.recovery
                assert recovery is not None
                recovery.checkpoints.savepoint(name, self.simulation.time_ms)
            case ["fault", kind, call, *within]:
                self.store.faults.append(Fault(FaultKind[kind.upper()], call, " ".join(within)))
            case ["store"]:
                yield from self.stored()
            case ["files"]:
                yield from self.outside()
            case _:
                known = "run, until WORDS, do WORDS, crash, kill, again, savepoint NAME, fault KIND CALL WITHIN, store"
                raise ValueError(f"{' '.join(words)!r} is none of {known}, files")

    # -- what happens ------------------------------------------------------------------------------------

    def run(self) -> Lines:
        """Let the policy go on to the end; of checkpoints that are complete is told how many there were."""
        num_completed = 0
        for num_steps in range(MOST_STEPS):
            if self.simulation.is_closed or not self.simulation.enabled():
                yield f"done after {num_steps} steps and {num_completed} complete checkpoints"
                return
            for line in self.step(None):
                if line.endswith("is complete"):
                    num_completed += 1
                elif "no checkpoint" not in line:
                    yield line
        raise AssertionError(f"{MOST_STEPS} steps and no end")

    def until(self, text: str) -> Lines:
        """Let the policy go on until something has happened, or could happen next, in which `text` is."""
        for _ in range(MOST_STEPS):
            if (action := self.next_with(text)) is not None:
                yield f"{self.now}: next comes {tidy(str(action))}"
                return
            for line in self.step(None):
                yield line
                if text in line:
                    return
        raise AssertionError(f"{MOST_STEPS} steps, and nothing with {text!r}")

    def next_with(self, text: str) -> Action | None:
        return next((each for each in self.simulation.enabled() if text in str(each)), None)

    def first_enabled(self, text: str) -> Action:
        if (action := self.next_with(text)) is None:
            raise ValueError(f"nothing with {text!r} is enabled, only {', '.join(map(str, self.simulation.enabled()))}")
        return action

    def step(self, action: Action | None) -> Lines:
        """A step; what there is to say of it."""
        had = list(self.simulation.enabled())
        try:
            done = self.simulation.step(action)
        except SluiceError as error:
            yield f"{self.now}: the job has failed for ever: {type(error).__name__}"
            return
        if action is not None:
            yield f"{self.now}: {tidy(str(done))}"
        yield from self.news()
        coming = [each for each in self.simulation.enabled() if str(each).startswith("restart") and each not in had]
        yield from (f"{self.now}: the job has failed; {each}" for each in coming)
        if done is not None and str(done).startswith("restart"):
            yield self.began()

    def crash(self) -> Lines:
        try:
            self.simulation.crash()
        except SluiceError as error:
            yield f"{self.now}: the job has failed for ever: {error}"
            return
        yield from self.news()
        yield f"{self.now}: the job has failed; " + str(self.simulation.enabled()[-1])

    def again(self, changes: Sequence[str]) -> Lines:
        self.savepoint = next((each.removeprefix("from=") for each in changes if each.startswith("from=")), None)
        changes = [each for each in changes if not each.startswith("from=")]
        self.given = numbers_of(changes, self.given)
        self.simulation.__exit__()
        try:
            self.simulation = self.begin()
        except SluiceError as error:
            yield f"no run: {type(error).__name__}: {tidy(str(error))}"
            return
        yield self.began()

    def began(self) -> str:
        recovery = self.simulation.recovery
        assert recovery is not None
        recovered = recovery.checkpoints.recovered
        assert recovered is not None
        source = "from nothing" if recovered.key is None else f"from {recovered.key}"
        return f"{self.now}: the job begins {source}" + "".join(f"; {tidy(each)}" for each in recovered.problems)

    def news(self) -> Lines:
        recovery = self.simulation.recovery
        assert recovery is not None
        new = list(recovery.checkpoints.history)[self.num_told :]
        self.num_told += len(new)
        for each in new:
            yield f"{self.now}: {tidy(news_of(each))}"

    # -- in words ----------------------------------------------------------------------------------------

    @property
    def now(self) -> str:
        return f"{self.simulation.time_ms:g} ms"

    def stored(self) -> Lines:
        """What is in the store, by folder, without the claims of leaders."""
        folders: dict[str, list[str]] = {}
        for key in sorted(self.store.files):
            folder, _, name = key.removeprefix("job/").rpartition("/")
            folders.setdefault(folder, []).append(tidy(name).removesuffix(".state"))
        lines = [f"store: {folder}/ {', '.join(names)}" for folder, names in folders.items() if folder]
        yield from lines or ["store: nothing"]

    def outside(self) -> Lines:
        """The values in files that count, in the order of these; and the others."""
        found = sorted(Path(self.folder.name).iterdir(), key=lambda file: [*map(int, re.findall(r"\d+", file.name))])
        counting = [" ".join(file.read_text().split()) for file in found if not file.name.startswith(".")]
        yield "committed: " + (" | ".join(filter(None, counting)) or "nothing")
        for file in found:
            if file.name.endswith(".pending") and file.stat().st_size:
                yield f"pending: {' '.join(file.read_text().split())} in {tidy(file.name)}"

    def state(self) -> Lines:
        for task in self.simulation.snapshot().tasks if not self.simulation.is_closed else ():
            line = f"{task.name}: {task.progress.value}; {task.num_records_in} in, {task.num_records_out} out"
            if task.alignment is not None and task.alignment.checkpoint_id >= 0:
                what = "copies up to" if task.alignment.is_unaligned else "waits for"
                line += f"; {what} barrier {task.alignment.checkpoint_id}"
            yield line

    def close(self) -> None:
        self.simulation.__exit__()
        self.folder.cleanup()


def tidy(text: str) -> str:
    """Without what a run is called, and without the long number of an attempt: its generation is enough."""
    return re.sub(
        r"\b(\d+)-(\d{5,})\b", lambda found: f"{found[1]}#{int(found[2]) >> 16}.{int(found[2]) & 0xFFFF}", text
    )
