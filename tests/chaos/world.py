"""One run of the job under a plan: its leaders one after the other, one store, one folder, and what must be true.

the leader       takes its steps; what of the plan has come due strikes between two of them
one that was killed is not heard of any more, and the next takes over at once
one that was paused goes on later, beside the next, with its tasks: it does not know that it is no leader
a leader that gives up for want of the store, or of its lead, is followed by another, as a supervisor would do it
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from random import Random

from refimpl.checkpoint import CheckpointAborted, CheckpointCompleted, CheckpointFailureReason
from refimpl.cluster import FixedDelayRestart
from refimpl.config import CheckpointingMode, Config
from refimpl.drivers import Simulation
from refimpl.drivers.file_transactions import FileSink
from refimpl.drivers.simulation import Action, CallStore, Coordinate, Costs, MissTaskManager, Restart, Revive, Tell, Way
from refimpl.errors import LeadershipLostError, LocalUsageError, RestoreRefusedError, SluiceError, StoreError
from refimpl.exchange import BufferResponse, Message
from refimpl.job import StreamEnvironment
from refimpl.laws import LivenessLaw, StoreLaw, TransactionsLaw
from refimpl.records import CheckpointBarrier
from refimpl.records.event_serializer import event_from_bytes
from refimpl.state import Fault, MemoryStore
from refimpl.state import FaultKind as StoreFaultKind
from refimpl.state.manifest import CheckpointKind
from refimpl.task.sink_operators import TransactionalSink
from tests.chaos.job import results, write_flights
from tests.chaos.plan import CONTROL, FaultKind, Plan, PlannedFault

__all__ = ["Outcome", "World", "lines_in", "play"]

STEP_MS = 0.05
MAX_STEPS = 20_000
MAX_LEADERS = 40
ENDS_WITHIN_MS = 3_000.0
"""Of virtual time, without a fault: some checkpoints that time out, and as many restarts."""

RECORDS_WITHIN_TIMEOUT = 12
"""So many records of a slow sink take as long as a checkpoint may. With full queues an aligned one waits for more."""

STORE_FAULTS = {
    FaultKind.PUT_FAILS: (StoreFaultKind.FAIL, "put"),
    FaultKind.PUT_FULL: (StoreFaultKind.NO_SPACE, "put"),
    FaultKind.PUT_UNANSWERED: (StoreFaultKind.LOSE_ANSWER, "put"),
    FaultKind.PUT_SLOW: (StoreFaultKind.SLOW, "put"),
    FaultKind.GET_FAILS: (StoreFaultKind.FAIL, "get"),
    FaultKind.LIST_FAILS: (StoreFaultKind.FAIL, "list"),
    FaultKind.DELETE_FAILS: (StoreFaultKind.FAIL, "delete"),
}


@dataclass(slots=True)
class Outcome:
    """How a run has ended: what is committed, which faults struck, and why the job failed for ever, if it did."""

    lines: list[str] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    failure: SluiceError | None = None
    went_behind_what_was_told: bool = False
    num_steps: int = 0
    num_completed: int = 0
    num_expired: int = 0


class World:
    """A plan at work in `folder`."""

    def __init__(self, plan: Plan, folder: Path, check_every: int = 1) -> None:
        self.plan = plan
        self._check_every = check_every
        self.outcome = Outcome()
        self.out = folder / "out"
        self.store = MemoryStore(wait=self._wait)
        self._source = folder / "flights"
        self._random = Random(f"world {plan.seed}")
        self._left = list(plan.faults)
        self._seen: dict[str, int] = {}
        self._time_before_ms = 0.0
        self._num_leaders = 0
        self._told = 0
        self._last_outcome: object = None
        self.leader: Simulation | None = None
        self.zombies: list[tuple[Simulation, int]] = []  # with the step at which it goes on
        self._may_go_back = any(each.kind is FaultKind.CORRUPT for each in plan.faults)
        self._stored = StoreLaw(self.store, "job")
        self._transactions = TransactionsLaw()
        self._liveness = LivenessLaw(ENDS_WITHIN_MS * (1 + plan.sink_ms))
        write_flights(self._source, plan.num_records)

    # -- the run -----------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Let it all happen.

        Raises:
            AssertionError: a law is broken, or the job does not come to its end.
        """
        while self.outcome.failure is None:
            if self.leader is None and not self._elect():
                continue
            if self._step():
                self._check_end()
                break
        self._let_zombies_end()
        self.outcome.lines = lines_in(self.out)
        return self.outcome

    def _elect(self) -> bool:
        """Begin another leader; whether it has begun."""
        self._num_leaders += 1
        assert self._num_leaders <= MAX_LEADERS, f"{MAX_LEADERS} leaders were not enough"
        plan = self.plan
        mode = CheckpointingMode.EXACTLY_ONCE if plan.is_exact else CheckpointingMode.AT_LEAST_ONCE
        config = Config(
            segment_size_bytes=96,
            num_buffers=120,
            source_batch=1,
            floating_buffers_per_gate=2,
            buffer_timeout_ms=1,
            checkpoint_interval_ms=20 if plan.sink_ms else 1,
            checkpoint_timeout_ms=RECORDS_WITHIN_TIMEOUT * int(plan.sink_ms) or 150,
            checkpoints_retained=2,
            max_concurrent_checkpoints=1 if plan.is_unaligned else 1 + plan.seed % 2,
            tolerable_failed_checkpoints=999 if plan.sink_ms else plan.seed % 3,
            checkpointing_mode=mode,
            unaligned=plan.is_unaligned,
            seed=plan.seed + self._num_leaders,
        )
        job = StreamEnvironment(config, max(2, plan.num_task_managers))
        files: TransactionalSink = FileSink(self.out)
        sink = files if self._may_go_back else self._transactions.sink(files)
        results(job, self._source, plan.num_records).sink_to(sink, name="files")
        try:
            self.leader = Simulation(
                job,
                seed=plan.seed + self._num_leaders,
                check_every=self._check_every,
                step_ms=STEP_MS,
                num_task_managers=plan.num_task_managers,
                store=self.store,
                restart=FixedDelayRestart(99, 1.0),
                max_delay_ms=plan.delay_ms,
                max_control_delay_ms=plan.control_delay_ms,
                policy="timed" if plan.sink_ms else "random",
                costs=Costs({"files": plan.sink_ms, "flights": 1.0, "weather": 1.0}) if plan.sink_ms else None,
            )
        except SluiceError as error:
            self._give_up(error)
            return False
        self._note_restore(self.leader)
        return True

    def _step(self) -> bool:
        """Let the leader take a step, and what is due happen; whether the job is done."""
        run = self.leader
        assert run is not None, "there is a leader"
        try:
            action = run.step()
        except SluiceError as error:
            self._time_before_ms += run.time_ms
            self.leader = None
            self._give_up(error)
            return False
        self.outcome.num_steps += 1
        assert self.outcome.num_steps < MAX_STEPS, f"not done after {MAX_STEPS} steps"
        if self._check_every:
            self._check()
        if action is None:
            return True
        self._note(run, action)
        for fault in [each for each in self._left if self._is_due(each, action)]:
            if self.leader is run and self._strike(fault, run):
                self._left.remove(fault)
                self._liveness.struck(self._now_ms)
        self._step_zombies()
        return False

    def _give_up(self, error: SluiceError) -> None:
        """A leader has failed for ever: is there to be another?"""
        self.outcome.struck.append(f"({type(error).__name__}: {error})"[:160])
        if isinstance(error, RestoreRefusedError) or not isinstance(error, StoreError | LeadershipLostError):
            self.outcome.failure = error

    def _step_zombies(self) -> None:
        for each in list(self.zombies):
            zombie, from_step = each
            if self.outcome.num_steps >= from_step and self._random.random() < 0.5:
                self._step_zombie(each, zombie)

    def _step_zombie(self, each: tuple[Simulation, int], zombie: Simulation) -> None:
        try:
            action = zombie.step()
        except SluiceError:
            action = None
        if action is None:
            self.zombies.remove(each)

    def _let_zombies_end(self) -> None:
        """Whoever still believes to be a leader learns that it is none."""
        for each in list(self.zombies):
            for _ in range(MAX_STEPS):
                if each not in self.zombies:
                    break
                self._step_zombie(each, each[0])
            assert each not in self.zombies, "a paused leader never came to its end"

    # -- what is looked at -------------------------------------------------------------------------

    def _wait(self, ms: int) -> None:
        if self.leader is not None:
            self.leader.time_ms += ms

    def _note(self, run: Simulation, action: Action) -> None:
        words = str(action)
        self._count(run)
        for mark in {each.mark for each in self._left if each.mark}:
            self._seen[mark] = self._seen.get(mark, 0) + (mark in words or (mark == CONTROL and _is_control(action)))
        if words.startswith("restart"):
            self._note_restore(run)
        if isinstance(action, Tell) and action.what.startswith("NotifyComplete"):
            assert run.recovery is not None
            latest = run.recovery.checkpoints.coordinator.completed.latest
            self._told = max(self._told, 0 if latest is None else latest.checkpoint_id)

    def _count(self, run: Simulation) -> None:
        """What has become of checkpoints since this was asked last, but of the one at the end, which is not aligned."""
        assert run.recovery is not None
        history = run.recovery.checkpoints.history
        for outcome in takewhile(lambda each: each is not self._last_outcome, reversed(history)):
            match outcome:
                case CheckpointCompleted(checkpoint) if checkpoint.kind is CheckpointKind.CHECKPOINT:
                    self.outcome.num_completed += 1
                case CheckpointAborted(reason=CheckpointFailureReason.EXPIRED):
                    self.outcome.num_expired += 1
        self._last_outcome = history[-1] if history else None

    def _note_restore(self, run: Simulation) -> None:
        """To go back behind a checkpoint whose results are committed is to commit them again: nobody can help that.

        A restart for which the store did not answer has gone back to nothing.
        """
        assert run.recovery is not None
        recovered = run.recovery.checkpoints.recovered
        if recovered is not None and run.recovery.is_at_work:
            from_id = 0 if recovered.manifest is None else recovered.manifest.checkpoint_id
            self.outcome.went_behind_what_was_told |= from_id < self._told

    def _is_due(self, fault: PlannedFault, action: Action) -> bool:
        if fault.mark:
            return self._seen.get(fault.mark, 0) >= fault.number
        return self._now_ms >= fault.at_ms

    @property
    def _now_ms(self) -> float:
        return self._time_before_ms + (0.0 if self.leader is None else self.leader.time_ms)

    # -- laws --------------------------------------------------------------------------------------

    def _check(self) -> None:
        """What is true of all leaders together, after each step; each looks after its own laws."""
        self._stored.check()
        self._transactions.check(self._stored)
        if not self.zombies and not self.store.faults:
            self._liveness.look(self._now_ms)

    def _check_end(self) -> None:
        if self._check_every and not self.zombies:
            self._transactions.check_end(self._stored)

    # -- faults ------------------------------------------------------------------------------------

    def _strike(self, fault: PlannedFault, run: Simulation) -> bool:
        """Let a fault happen; whether there was something for it to happen to."""
        if run.is_done or run.is_closed:
            return True
        match fault.kind:
            case FaultKind.KILL_TASKMANAGER:
                number = fault.subject % self.plan.num_task_managers
                with suppress(LocalUsageError):  # it is gone already
                    run.kill(number, float(fault.amount), noticed_after_ms=2.0)
            case FaultKind.CRASH:
                run.crash()
            case FaultKind.KILL_LEADER | FaultKind.PAUSE_LEADER:
                self._depose(fault, run)
            case FaultKind.CUT | FaultKind.DELAY_BARRIER:
                if not _strike_link(fault, run):
                    return False
            case FaultKind.LOSE_MESSAGE | FaultKind.DELAY_MESSAGE | FaultKind.REPEAT_MESSAGE:
                if not _strike_message(fault, run):
                    return False
            case FaultKind.CORRUPT:
                if not self._corrupt(fault):
                    return False
            case _:
                kind, call = STORE_FAULTS[fault.kind]
                within = ("", "chk-", "_metadata", ".state", "leader-", "restored", "claim", "")[fault.subject]
                self.store.faults.append(Fault(kind, call, within, 1, fault.amount + len(self.store.faults)))
        self.outcome.struck.append(str(fault))
        return True

    def _depose(self, fault: PlannedFault, run: Simulation) -> None:
        self.leader = None
        self._time_before_ms += run.time_ms
        if fault.kind is FaultKind.PAUSE_LEADER:
            self.zombies.append((run, self.outcome.num_steps + fault.amount))

    def _corrupt(self, fault: PlannedFault) -> bool:
        """Write a byte of the newest checkpoint wrong, if there is an older one."""
        manifests = sorted(
            (key for key in self.store.files if key.endswith("/_metadata")),
            key=lambda key: int(key.split("-")[1].split("/")[0]),
        )
        if len(manifests) < 2:
            return False
        folder = manifests[-1].removesuffix("_metadata")
        keys = sorted(key for key in self.store.files if key.startswith(folder))
        key = keys[fault.subject % len(keys)]
        raw = bytearray(self.store.files[key])
        raw[fault.amount % len(raw)] ^= 1
        self.store.files[key] = bytes(raw)
        return True


def _is_control(action: Action) -> bool:
    """Whether it concerns the job, and not the data of one of its parts."""
    return isinstance(action, Tell | CallStore | Coordinate | Restart | Revive | MissTaskManager)


def _is_barrier(message: Message) -> bool:
    is_event = isinstance(message, BufferResponse) and message.data_type.is_event
    return is_event and isinstance(event_from_bytes(message.payload), CheckpointBarrier)


def _strike_link(fault: PlannedFault, run: Simulation) -> bool:
    links = list(run.links.values())
    if fault.kind is FaultKind.CUT:
        if not links:
            return True
        run.lose(links[fault.subject % len(links)].name)
        return True
    with_barrier = [each for each in links if any(map(_is_barrier, each.messages(Way.RESPONSES)))]
    if with_barrier:
        with_barrier[fault.subject % len(with_barrier)].delay(Way.RESPONSES, float(fault.amount))
    return bool(with_barrier) or not links


def _strike_message(fault: PlannedFault, run: Simulation) -> bool:
    assert run.control is not None, "messages have a wire"
    letters = [each for each in run.control.messages if each.may_be_lost]
    if not letters:
        return False
    number = letters[fault.subject % len(letters)].number
    match fault.kind:
        case FaultKind.LOSE_MESSAGE:
            run.control.lose(number)
        case FaultKind.DELAY_MESSAGE:
            run.control.delay(number, float(fault.amount))
        case _:
            run.control.repeat(number)
    return True


def lines_in(folder: Path) -> list[str]:
    """What is committed there, sorted."""
    files = [each for each in folder.iterdir() if not each.name.startswith(".")] if folder.is_dir() else []
    return sorted(line for each in files for line in each.read_text().splitlines())


def play(plan: Plan, folder: Path, check_every: int = 1) -> Outcome:
    return World(plan, folder, check_every).run()
