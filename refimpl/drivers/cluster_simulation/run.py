"""A whole cluster in one thread, one step at a time: its members speak over wires, and its tasks are real.

Time is virtual. What is said between two members takes up to `max_control_delay_ms`, in order; what tasks send one
another takes up to `max_delay_ms`. The same jobs, seed and faults take the same steps on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refimpl.cluster.job_status import JobState
from refimpl.cluster.resource_manager import ResourceManager
from refimpl.cluster.restart import RestartStrategy
from refimpl.cluster.snapshot import (
    ClusterSnapshot,
    JobInCluster,
    MemberKind,
    MemberSnapshot,
    MemberState,
    SlotSnapshot,
)
from refimpl.config import Config
from refimpl.drivers.cluster_simulation.actions import (
    ClusterAction,
    CrashMember,
    Elect,
    PauseMember,
    ResumeMember,
    ReviveMember,
    Wake,
)
from refimpl.drivers.cluster_simulation.cluster_parts import ClusterParts, kind_of
from refimpl.drivers.cluster_simulation.jobs import SubmittedJob
from refimpl.drivers.cluster_simulation.members import RESOURCE_MANAGER, Member, job_master_of
from refimpl.drivers.simulation.actions import CallStore, ReadOn, Send, StepTask, Tell
from refimpl.drivers.simulation.policy import Delays, Policy
from refimpl.drivers.simulation.work import Work
from refimpl.errors import LocalUsageError
from refimpl.invariants import check_all
from refimpl.job.environment import StreamEnvironment
from refimpl.laws.attempts import check_attempts
from refimpl.laws.slots import check_slots, check_slots_at_rest
from refimpl.state.store import MemoryStore, SnapshotStore
from refimpl.trace import Trace

__all__ = ["ClusterSimulation"]


class ClusterSimulation(ClusterParts):
    """A Dispatcher, a ResourceManager, a JobMaster for each job, and TaskManagers with `num_slots` slots each.

    `config` is that of the TaskManagers: their memory. Checkpoints are kept in `store`. `check_every` n checks the laws
    after each n-th step, 0 never. A member that crashed comes back when it is revived; of a leader that is paused
    another takes the place.

    Raises (step, run):
        AssertionError: a law is broken.

    Flink:   MiniCluster (runtime.minicluster), 1.11.4
    Differs: each component is a member of its own, and can be lost alone.
    """

    def __init__(
        self,
        num_task_managers: int = 3,
        num_slots: int = 2,
        seed: int = 0,
        policy: str = "random",
        config: Config | None = None,
        store: SnapshotStore | None = None,
        check_every: int = 1,
        step_ms: float = 0.05,
        max_delay_ms: float = 0.0,
        max_control_delay_ms: float = 1.0,
        trace: Trace | None = None,
    ) -> None:
        if policy == "timed":
            raise LocalUsageError('a cluster has no policy="timed": its tasks come and go')
        self._work = Work.under(policy, step_ms, None)
        delays, control_delays = Delays(max_delay_ms, seed), Delays(max_control_delay_ms, seed + 1)
        own_store = MemoryStore() if store is None else store
        super().__init__(
            num_task_managers, num_slots, config or Config(), own_store, self._work, delays, control_delays, seed, trace
        )
        self.num_steps = 0
        self._policy = Policy(policy, seed)
        self._check_every = check_every

    # -- jobs ------------------------------------------------------------------------------------------

    def submit(
        self, job_id: str, environment: StreamEnvironment, restart: Callable[[], RestartStrategy] | None = None
    ) -> None:
        """Run a job; when this returns it is stored. `restart` makes a strategy for each of its leaders.

        Raises:
            LocalUsageError: there is, or was, a job of this id, or nobody leads the Dispatcher now.
        """
        graph = environment.execution_graph(1)
        job = SubmittedJob.of(graph.job, restart)
        self._carry_out(self._dispatcher.submit(job_id, job))

    def cancel(self, job_id: str) -> None:
        """End a job; one that is over stays as it is.

        Raises:
            LocalUsageError: there is no such job, or nobody leads the Dispatcher now.
        """
        self._carry_out(self._dispatcher.cancel(job_id))
        self._settle()

    def savepoint(self, job_id: str, name: str) -> None:
        """Ask for a savepoint.

        Raises:
            LocalUsageError: nobody leads the job now, it has one of this name, or no task runs.
        """
        checkpoints = self.members.present(job_master_of(job_id)).checkpoints
        assert checkpoints is not None, "whoever leads a job has its checkpoints"
        checkpoints.savepoint(name, self.time_ms)
        self._settle()

    # -- steps -----------------------------------------------------------------------------------------

    def enabled(self) -> Sequence[ClusterAction]:
        """All that could be next: what comes by itself, and what you can do to a member."""
        alive = self.members.alive.values()
        faults: list[ClusterAction] = [CrashMember(each.address) for each in alive]
        faults += [ResumeMember(each.address) if each.is_paused else PauseMember(each.address) for each in alive]
        faults += [ResumeMember(each.address) for each in self.members.zombies if each.is_paused]
        return [*self.moves(), *faults, *(ReviveMember(each) for each in sorted(self.members.gone))]

    def moves(self) -> Sequence[ClusterAction]:
        """What comes by itself; heartbeats do for ever."""
        now = self.time_ms
        paused = {each.address for each in self.members if each.is_paused and each.task_manager is not None}
        actions, waiting = self.data.possible(paused)
        actions += [CallStore(f"{each.name}: {call.what}") for each in self.members if (call := each.next_call())]
        tells = [Tell(each.number, str(each), each.arrival_ms) for each in self.members.first_in_line()]
        waiting += [(each.time_ms, each) for each in tells]
        waiting += [(end, Wake(each.name, end)) for each in self.members if (end := each.next_deadline) is not None]
        waiting += [(at_ms, Elect(address, at_ms)) for address, at_ms in self.members.vacant.items()]
        due = [action for at_ms, action in waiting if at_ms <= now]
        if actions or due:
            return [*actions, *due, *self.data.due_timers(paused)]
        return [action for _, action in sorted(waiting, key=lambda each: each[0])[:1]]

    def step(self, action: ClusterAction | None = None) -> ClusterAction | None:
        """Do `action`, or the one the policy picks; return it, or `None` if nothing comes by itself.

        Raises:
            LocalUsageError: the action is not enabled.
        """
        if action is None:
            if not (moves := self.moves()):
                return None
            action = self._policy.pick(moves)
        elif action not in (enabled := self.enabled()):
            raise LocalUsageError(f"{action} is not enabled; enabled: {', '.join(map(str, enabled))}")
        at_ms = None if isinstance(action, StepTask | Send | ReadOn | CallStore) else getattr(action, "time_ms", None)
        self.data.time_ms = self._work.after_action_ms(self.time_ms, at_ms)
        if not self.data.do_with_data(action):
            self._do(action)
        self._settle()
        self.num_steps += 1
        if self._check_every and self.num_steps % self._check_every == 0:
            self.check()
        return action

    def run(
        self, until: Callable[[ClusterSimulation], bool] | None = None, max_steps: int = 100_000
    ) -> ClusterSimulation:
        """Step until it is so, or without a condition until all has come to rest.

        Raises:
            LocalUsageError: it was not, after so many steps.
        """
        for _ in range(max_steps):
            if self.is_at_rest if until is None else until(self):
                return self
            if self.step() is None:
                break
        if self.is_at_rest if until is None else until(self):
            return self
        raise LocalUsageError(f"not so after {max_steps} steps, at {self.time_ms:.0f} ms: {self.snapshot().jobs}")

    # -- faults ----------------------------------------------------------------------------------------

    def crash(self, address: str, *, is_noticed: bool = True) -> None:
        """End a member. Whoever is connected to it notices soon, or when it has been silent for too long.

        Raises:
            LocalUsageError: there is none.
        """
        member = self.members.crash(address, is_noticed=is_noticed)
        if member.task_manager is not None:
            self._leave_without_a_word(address, member.task_manager, is_noticed=is_noticed)
        self.members.vacant.pop(address, None)
        self._settle()

    def revive(self, address: str) -> None:
        """Let a member begin anew that is gone.

        Raises:
            LocalUsageError: it is not.
        """
        if address not in self.members.gone:
            raise LocalUsageError(f"{address} is not gone")
        job_id = address.removeprefix(job_master_of(""))
        if kind_of(address) is MemberKind.TASK_MANAGER:
            self.members.begin(address)
        elif kind_of(address) is MemberKind.JOB_MASTER and self.end_of(job_id) is not None:
            self.members.gone.discard(address)  # its job is over
        else:
            self.members.contend(address)
        self._settle()

    # -- looking at it ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Check every law that holds between two steps."""
        executors, job_masters, running = self._executors, self._job_masters, self.data.running()
        check_slots(executors, job_masters, running)
        check_attempts(job_masters, running)
        for member in self.members:
            if (task_manager := member.task_manager) is not None:
                made = [each.deployment for each in task_manager.running.values()]
                check_all(*made, *task_manager.servers)
        for link in self.data.links.values():
            link.check()

    def check_at_rest(self) -> None:
        """Check what holds when nothing is left of any job: all is where it was at the beginning."""
        self.check()
        resource_manager = self.members.present(RESOURCE_MANAGER).endpoint
        assert isinstance(resource_manager, ResourceManager)
        check_slots_at_rest(self._executors, self._job_masters, resource_manager)
        for member in self.members:
            if (task_manager := member.task_manager) is not None:
                free, total = task_manager.pool.num_free, len(task_manager.pool.segments)
                assert free == total, f"{member.address} has {total - free} segments out"
                assert not task_manager.results.num_bytes, f"{member.address} still has results of some job"

    def snapshot(self) -> ClusterSnapshot:
        """The cluster at this moment."""
        shown = [self._member(each) for each in self.members]
        shown += [MemberSnapshot(each, kind_of(each), MemberState.GONE, 0) for each in sorted(self.members.gone)]
        jobs = tuple(self._job(each) for each in self.jobs.registry.all())
        vacant, num_messages = tuple(sorted(self.members.vacant)), len(self.wire.messages)
        return ClusterSnapshot(self.time_ms, tuple(shown), jobs, num_messages, vacant, self.num_steps)

    def _member(self, member: Member) -> MemberSnapshot:
        endpoint, task_manager = member.endpoint, member.task_manager
        refusal = None if endpoint is None else endpoint.last_refusal
        return MemberSnapshot(
            member.address,
            member.kind,
            self.members.state_of(member),
            member.token.epoch,
            () if task_manager is None else SlotSnapshot.all_of(task_manager.executor),
            member.job_id,
            self.members.alive.get(member.address) is member,
            () if endpoint is None else endpoint.links(self.time_ms),
            0 if endpoint is None else endpoint.num_refused,
            "" if refusal is None else refusal.why,
        )

    def _job(self, job_id: str) -> JobInCluster:
        record, job_master = self.jobs.registry.all()[job_id], self.job_master(job_id)
        if job_master is None or record.end is not None:
            state = record.end or JobState.SUSPENDED
            return JobInCluster(job_id, state, None, failure=record.why or None)
        checkpoints = self.members.present(job_master_of(job_id)).checkpoints
        run = None if checkpoints is None else checkpoints.run
        kept = () if run is None else run.coordinator.completed.kept
        return JobInCluster.of(job_master, tuple(each.checkpoint_id for each in kept))

    # -- what an action does ---------------------------------------------------------------------------

    def _do(self, action: ClusterAction) -> None:
        now = self.time_ms
        match action:
            case Tell(number):
                self.wire.take(number).deliver()
            case CallStore(what):
                self._call_store(self.members.named(what.partition(": ")[0]))
            case Wake(name):
                endpoint = self.members.named(name).endpoint
                assert endpoint is not None, f"{name} has no deadlines"
                endpoint.on_timeout(now)
            case Elect(address):
                self._elected(self.members.elect(address))
            case CrashMember(address):
                self.crash(address)
            case ReviveMember(address):
                self.revive(address)
            case PauseMember(address):
                self.members.pause(address)
            case ResumeMember(address):
                self.members.resume(address)
