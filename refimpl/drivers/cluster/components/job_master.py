"""A JobMaster with real attempts: it has the job for those who run it, and brings their data together.

Between the moment in which the scheduler sends out the attempts of a region, and that in which they run, come:

    gather     each TaskManager asks for the job, if it has not got it, and makes its attempts of the region
    connect    all have made theirs, and hear of each other
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.heartbeat import FLINKS_HEARTBEAT, HeartbeatTimes
from refimpl.cluster.job_master import JobMaster
from refimpl.cluster.job_plan import JobPlan
from refimpl.cluster.job_status import JobState
from refimpl.cluster.messages import JobWord
from refimpl.cluster.restart import RestartStrategy
from refimpl.drivers.cluster.components.component_loop import ComponentLoop
from refimpl.drivers.cluster.components.savepoints_asked import SavepointAnswer, SavepointsAsked
from refimpl.drivers.cluster.components.store_thread import StoreThread
from refimpl.drivers.cluster.high_availability.leaders import RESOURCE_MANAGER, Leadership
from refimpl.drivers.cluster.rpc.address import rpc_address
from refimpl.drivers.cluster.tasks.words import Connect, DataAddress, JobCopy, Listening, NeedJob, Word, read_word, word
from refimpl.drivers.cluster_checkpoints import ClusterCheckpoints
from refimpl.drivers.processes.messages import unpack
from refimpl.drivers.store_calls import StoreWork
from refimpl.errors import LocalUsageError, SluiceError
from refimpl.job.environment import StreamEnvironment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import Place
from refimpl.job.regions import regions
from refimpl.state.store import SnapshotStore

__all__ = ["LeadingJobMaster", "LedJob"]


@dataclass(frozen=True, slots=True)
class LedJob:
    """A job that somebody is about to lead, under `epoch`: the store has been told, which takes a while."""

    job_id: str
    data: bytes
    graph: ExecutionGraph
    checkpoints: ClusterCheckpoints
    epoch: int

    @classmethod
    def claim(cls, job_id: str, data: bytes, store: SnapshotStore) -> LedJob:
        """Take the lead over the job pickled in `data`; its checkpoints are kept in `store` under its id.

        Raises:
            SluiceError: the job cannot be made again here, is none, or cannot be led.
        """
        environment = unpack(data)
        if not isinstance(environment, StreamEnvironment):
            raise LocalUsageError(f"a job is a StreamEnvironment, got {type(environment).__name__}")
        graph = environment.execution_graph(1)
        checkpoints = ClusterCheckpoints(store, job_id, graph.job, trust_pickle=True)
        return cls(job_id, data, graph, checkpoints, checkpoints.lead())


class _DataAddresses:
    """Where the data of regions is to be had while they run, and `of_results` what TaskManagers keep of them later."""

    def __init__(self) -> None:
        self.of_results: dict[str, DataAddress] = {}  # by TaskManager
        self._of_regions: dict[tuple[int, Place], dict[str, DataAddress]] = {}  # by generation and region

    def add(self, task_manager: str, generation: int, made: Listening) -> dict[str, DataAddress]:
        """A TaskManager has made its attempts of a region; where those of all that have are to be reached."""
        self.of_results[task_manager] = made.results
        found = self._of_regions.setdefault((generation, made.region), {})
        found[task_manager] = made.address
        return found

    def forget_all_but(self, generations: Collection[int]) -> None:
        """Attempts of others have ended."""
        self._of_regions = {key: found for key, found in self._of_regions.items() if key[0] in generations}


class LeadingJobMaster:
    """The JobMaster that leads one job, in the process of `loop`.

    `on_over` hears once how it has ended, and why; what is kept for the job stays until somebody says `forget`. After
    that, and when no call of the store is under way, comes `on_gone`.

    Flink:   JobMaster, JobManagerRunner (runtime.jobmaster), 1.11.4
    """

    def __init__(
        self,
        job: LedJob,
        strategy: RestartStrategy,
        loop: ComponentLoop,
        on_over: Callable[[JobState, str], None],
        on_gone: Callable[[], None],
        heartbeat: HeartbeatTimes = FLINKS_HEARTBEAT,
    ) -> None:
        self.job_id = job.job_id
        token = FencingToken(job.epoch, secrets.token_bytes(16))
        address = rpc_address(f"job-master-{job.job_id}", loop.place)
        plan = JobPlan.of(job.job_id, job.graph)
        now_ms = loop.clock.now_ms
        self.endpoint = JobMaster(address, token, plan, strategy, now_ms, job.checkpoints, heartbeat)
        self._job = job
        self._loop = loop
        self._on_over, self._on_gone = on_over, on_gone
        self._regions = {min(each): each for each in regions(list(plan.slot_of), plan.exchanges)}
        self._data = _DataAddresses()
        self._savepoints = SavepointsAsked()
        self._is_calling = self._is_over = False
        self._store = StoreThread(f"store of {job.job_id}", self._called)
        self.endpoint.start(now_ms)

    @property
    def state(self) -> JobState:
        """How the job is."""
        return self.endpoint.scheduler.status.state

    @property
    def num_checkpoints(self) -> int:
        """How many have completed under this lead."""
        run = self._job.checkpoints.run
        return 0 if run is None else run.stats.snapshot().counts.num_completed

    @property
    def task_managers(self) -> list[str]:
        """The addresses of those on which its tasks are; a slot that is idle has none."""
        return sorted({each.slot.task_manager for each in self.endpoint.pool.slots if each.wish is not None})

    # -- what users want ---------------------------------------------------------------------------------

    def cancel(self, now_ms: float) -> None:
        """End the job."""
        self.endpoint.cancel(now_ms)

    def savepoint(self, name: str, answer: SavepointAnswer, now_ms: float) -> None:
        """Take a savepoint, then say why there is none, or nothing when it is there."""
        if self.endpoint.is_over:
            answer(f"the job is {self.state.value}")
            return
        try:
            self._savepoints.add(self._job.checkpoints.savepoint(name, now_ms), answer)
        except SluiceError as refusal:
            answer(str(refusal))

    def forget(self, end: JobState) -> None:
        """How the job has ended is known to whoever would lead it next: what was kept for a restart goes."""
        self._job.checkpoints.dispose(end)

    def end(self) -> None:
        """Make no call of the store any more; that which is being made is left to end."""
        self._store.end()

    # -- what the loop calls -----------------------------------------------------------------------------

    def leaders_are(self, leaders: Mapping[str, Leadership], now_ms: float) -> None:
        if RESOURCE_MANAGER in leaders and not self.endpoint.is_over:
            self.endpoint.resource_manager_is(*leaders[RESOURCE_MANAGER], now_ms)

    def peer_is_gone(self, address: str, why: str, now_ms: float) -> None:
        if not self.endpoint.is_over:
            self.endpoint.peer_is_gone(address, why, now_ms)

    def step(self, now_ms: float) -> None:
        """Take what is said, call the store, and see whether the job is over."""
        words, self.endpoint.words = self.endpoint.words, []
        for task_manager, message in words:
            self._hear(task_manager, message)
        checkpoints = self._job.checkpoints
        self.endpoint.checkpoints_went_on(now_ms)
        if checkpoints.run is not None:
            self._savepoints.look(checkpoints.run.history)
        if self.endpoint.is_over and not self._is_over:
            self._is_over = True
            self._savepoints.give_up(f"the job is {self.state.value}")
            self._on_over(self.state, self.endpoint.scheduler.failure or "")
        if self._is_calling:
            return
        call = None if self.state is JobState.SUSPENDED else checkpoints.next_call()
        if call is not None:
            self._is_calling = True
            self._store.make(call)
        elif self._is_over:
            self._store.end()
            self._on_gone()

    # -- what TaskManagers say -----------------------------------------------------------------------------

    def _hear(self, task_manager: str, message: JobWord) -> None:
        if message.epoch != self._job.epoch:
            return  # of attempts that are to end
        match read_word(message):
            case NeedJob():
                self._tell(task_manager, message.generation, JobCopy(self._job.data))
            case Listening() as made:
                self._connect_if_all(task_manager, message.generation, made)

    def _connect_if_all(self, task_manager: str, generation: int, made: Listening) -> None:
        """A TaskManager has made its attempts of a region; when all have, they hear of each other."""
        region = made.region
        scheduler = self.endpoint.scheduler
        present = {each.id.generation for each in scheduler.executions.values()}
        if region not in self._regions or scheduler.executions[region].id.generation != generation:
            return  # these are to end
        self._data.forget_all_but(present)
        found = self._data.add(task_manager, generation, made)
        at = {each.wish: each.slot.task_manager for each in self.endpoint.pool.slots}
        here = {at.get(scheduler.plan.slot_of[place], "") for place in self._regions[region]}
        if found.keys() >= here:
            for each in here:
                self._tell(each, generation, Connect(region, self._data.of_results | found))

    def _tell(self, task_manager: str, generation: int, content: Word) -> None:
        self.endpoint.tell(task_manager, word(self.job_id, self._job.epoch, generation, content))

    # -- the store, on its thread ------------------------------------------------------------------------

    def _called(self, call: StoreWork, error: BaseException | None) -> None:
        self._loop.post(partial(self._take_answer, call, error))

    def _take_answer(self, call: StoreWork, error: BaseException | None, now_ms: float) -> None:
        self._is_calling = False
        self._job.checkpoints.called(call, error, now_ms)
