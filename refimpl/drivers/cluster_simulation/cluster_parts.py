"""What a simulated cluster is made of, and what follows from each step: orders, messages, leaders and ends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

from refimpl.cluster.dispatcher import CancelJob, Dispatcher, DispatcherDecision, ForgetJob, JobRecordState, LeadJob
from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.job_master import JobMaster
from refimpl.cluster.job_status import JobState
from refimpl.cluster.resource_manager import ResourceManager
from refimpl.cluster.snapshot import MemberKind
from refimpl.cluster.task_executor import TaskExecutor
from refimpl.config import Config
from refimpl.drivers.cluster_checkpoints import ClusterCheckpoints
from refimpl.drivers.cluster_simulation.data_plane import DataPlane
from refimpl.drivers.cluster_simulation.jobs import ClusterJobs
from refimpl.drivers.cluster_simulation.members import DISPATCHER, RESOURCE_MANAGER, Member, Members, job_master_of
from refimpl.drivers.cluster_simulation.task_manager import SimulatedTaskManager
from refimpl.drivers.simulation.control_wire import ControlWire
from refimpl.drivers.simulation.policy import Delays
from refimpl.drivers.simulation.wire import Link
from refimpl.drivers.simulation.work import Work
from refimpl.errors import LocalUsageError, SluiceError
from refimpl.job.shuffle_environment import pool_of
from refimpl.state.store import SnapshotStore
from refimpl.trace import Trace

__all__ = ["ClusterParts", "kind_of"]

_CONNECTION_TIMEOUT_MS = 50_000.0
"""When a connection ends whose other end has gone without a word."""

_KINDS = {DISPATCHER: MemberKind.DISPATCHER, RESOURCE_MANAGER: MemberKind.RESOURCE_MANAGER}


def kind_of(address: str) -> MemberKind:
    """What a member is, by its address."""
    if address.startswith(job_master_of("")):
        return MemberKind.JOB_MASTER
    return _KINDS.get(address, MemberKind.TASK_MANAGER)


class ClusterParts:
    """The members, the wires between them, the jobs, and what really runs.

    `config` is that of the TaskManagers: their memory.
    """

    def __init__(
        self,
        num_task_managers: int,
        num_slots: int,
        config: Config,
        store: SnapshotStore,
        work: Work,
        delays: Delays,
        control_delays: Delays,
        seed: int,
        trace: Trace | None,
    ) -> None:
        self.config, self.store = config, store
        self.jobs = ClusterJobs()
        self._num_slots, self._trace = num_slots, trace
        self.data = DataPlane(work, delays, config.epoch_ms or 0, self._task_failed, self._task_manager)
        self.wire = ControlWire(control_delays.next_ms, lambda: self.time_ms)
        self.members = Members(self.wire, lambda: self.time_ms, self._make, Random(f"members of seed {seed}"))
        for address in (DISPATCHER, RESOURCE_MANAGER):
            self.members.contend(address)
        for number in range(num_task_managers):
            self.members.begin(f"tm-{number}")
        self._settle()

    @property
    def time_ms(self) -> float:
        return self.data.time_ms

    def job_master(self, job_id: str) -> JobMaster | None:
        """Whoever leads a job now."""
        member = self.members.alive.get(job_master_of(job_id))
        return member.endpoint if member is not None and isinstance(member.endpoint, JobMaster) else None

    def end_of(self, job_id: str) -> JobState | None:
        """How a job has ended, as the registry has it; `None` if it has not."""
        return self.jobs.registry.all()[job_id].end

    @property
    def is_at_rest(self) -> bool:
        """Whether every job is over, and nothing of it is left with any member."""
        if any(each.state is not JobRecordState.DONE for each in self.jobs.registry.all().values()):
            return False
        if any(each.kind is MemberKind.JOB_MASTER for each in self.members.alive.values()) or self.wire.messages:
            return False
        if any(each.next_call() for each in self.members):
            return False
        task_managers = [each.task_manager for each in self.members if each.task_manager is not None]
        used = [s.allocation for each in task_managers for s in each.executor.slots.report() if s.allocation]
        return not used and not any(each.running for each in task_managers)

    @property
    def _dispatcher(self) -> Dispatcher:
        member = self.members.alive.get(DISPATCHER)
        if member is None or member.dispatcher is None or member.is_paused:
            raise LocalUsageError("nobody leads the Dispatcher now; step until somebody does")
        return member.dispatcher

    @property
    def _executors(self) -> list[TaskExecutor]:
        return [each.task_manager.executor for each in self.members if each.task_manager is not None]

    @property
    def _job_masters(self) -> list[JobMaster]:
        return [each.endpoint for each in self.members.alive.values() if isinstance(each.endpoint, JobMaster)]

    def _call_store(self, member: Member) -> None:
        call, member.call = member.next_call(), None
        assert call is not None, f"{member.name} has no call to make"
        error = call.call()
        if member.checkpoints is not None:
            member.checkpoints.called(call, error, self.time_ms)
        else:
            call.then(error, self.time_ms)
        if isinstance(member.endpoint, JobMaster):
            member.endpoint.checkpoints_went_on(self.time_ms)

    def _make(self, address: str, token: FencingToken) -> Member:
        """A member of this address, which has begun."""
        now, kind = self.time_ms, kind_of(address)
        member = Member(address, kind, token)
        match kind:
            case MemberKind.DISPATCHER:
                member.dispatcher = Dispatcher(self.jobs.registry)
            case MemberKind.RESOURCE_MANAGER:
                member.endpoint = ResourceManager(address, token)
            case MemberKind.TASK_MANAGER:
                executor = member.endpoint = TaskExecutor(address, token, self._num_slots, now)
                pool, jobs = pool_of(self.config, self._trace), self.jobs
                on_made, on_closed = partial(self.data.made, address), partial(self.data.closed, address)
                member.task_manager = SimulatedTaskManager(
                    executor, pool, self.store, jobs.graphs, jobs.plans, on_made, on_closed, self._reaches, self._trace
                )
            case MemberKind.JOB_MASTER:
                member.job_id = job_id = address.removeprefix(job_master_of(""))
                job = self.jobs.add(self.jobs.registry.all()[job_id])
                epoch_ms = job.graph.config.epoch_ms or 0
                checkpoints = ClusterCheckpoints(self.store, job_id, job.graph, epoch_ms, trust_pickle=True)
                member.checkpoints = checkpoints
                plan = self.jobs.plans[job_id]
                member.endpoint = JobMaster(address, token, plan, job.restart(), now, checkpoints)
        return member

    def _elected(self, member: Member) -> None:
        """Somebody leads from now on."""
        if member.dispatcher is not None:
            self._carry_out(member.dispatcher.recover())
        if isinstance(member.endpoint, JobMaster):
            member.endpoint.start(self.time_ms)
            if member.job_id in self.jobs.to_cancel:
                member.endpoint.cancel(self.time_ms)

    def _carry_out(self, decisions: Sequence[DispatcherDecision]) -> None:
        for decision in decisions:
            match decision:
                case LeadJob(record):
                    self.jobs.add(record)
                    address = job_master_of(record.job_id)
                    if address not in self.members.alive:
                        self.members.contend(address)
                case CancelJob(job_id):
                    self.jobs.to_cancel.add(job_id)
                    if (job_master := self.job_master(job_id)) is not None:
                        job_master.cancel(self.time_ms)
                case ForgetJob(job_id, end):
                    member = self.members.alive.get(job_master_of(job_id))
                    if member is not None and member.checkpoints is not None:
                        member.checkpoints.dispose(end)

    # -- what follows ----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Let each member that is not paused do with its tasks what there is to do, and say what it has to say."""
        for member in list(self.members):
            if member.is_paused:
                continue
            if (task_manager := member.task_manager) is not None:
                task_manager.obey(self.time_ms)
                task_manager.collect(self.time_ms)
                for running in list(task_manager.running.values()):
                    if self.data.is_over(member.address, running):
                        task_manager.close(running.unit.id)
            elif isinstance(member.endpoint, JobMaster):
                member.endpoint.checkpoints_went_on(self.time_ms)
            self.members.post(member)
        self._see_ends()

    def _see_ends(self) -> None:
        """Store how jobs have ended, and let those go who led them."""
        for member in list(self.members):
            job_master = member.endpoint
            if not isinstance(job_master, JobMaster) or not job_master.is_over or member.is_paused:
                continue
            job_id = job_master.scheduler.plan.job_id
            if member in self.members.zombies or job_master.scheduler.status.state is JobState.SUSPENDED:
                self._lose(member)
            elif self.jobs.registry.all()[job_id].state is not JobRecordState.DONE:
                leads = self.members.alive.get(DISPATCHER)
                if leads is not None and leads.dispatcher is not None and not leads.is_paused:
                    status, why = job_master.scheduler.status, job_master.scheduler.failure
                    self._carry_out(leads.dispatcher.ended(job_id, status.state, why or ""))
            elif member.next_call() is None:
                self.members.leave(member)

    def _lose(self, member: Member) -> None:
        """A leader has found out that it is none; if nobody else leads the job, somebody will."""
        if member in self.members.zombies:
            self.members.zombies.remove(member)
            return
        self.members.leave(member)
        self.members.contend(member.address)

    def _task_failed(self, address: str, execution: ExecutionId, error: SluiceError) -> None:
        self._task_manager(address).fail(execution, error, self.time_ms)

    def _task_manager(self, address: str) -> SimulatedTaskManager:
        task_manager = self.members.present(address).task_manager
        assert task_manager is not None, f"{address} runs no tasks"
        return task_manager

    def _reaches(self, address: str) -> bool:
        """Whether whoever would connect to an address finds somebody."""
        return address in self.members.alive

    def _leave_without_a_word(self, address: str, task_manager: SimulatedTaskManager, *, is_noticed: bool) -> None:
        """What ran and was kept at a TaskManager is no more; who is connected to it finds out when that ends."""
        for running in list(task_manager.running.values()):
            self.data.forget(address, running)
        task_manager.running.clear()
        for link in self.data.cut(address):
            self.data.stop_serving(link)
            line = f"{address} from its connections"
            self.wire.send(line, f"the end of {link.name}", partial(_end, link), may_be_lost=False)
            if not is_noticed:
                self.wire.delay(self.wire.messages[-1].number, _CONNECTION_TIMEOUT_MS)
        task_manager.results.close()


def _end(link: Link) -> None:
    """Both ends of a connection find out that it is no more."""
    if not link.is_closed:
        link.lose()
