"""A small cluster in virtual time: one ResourceManager, one JobMaster, TaskManagers, and a network that may lose.

Whatever can happen next is drawn from a seed. Tasks are names that run for a while and then end.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from refimpl.cluster import (
    Endpoint,
    Envelope,
    Exchange,
    ExecutionId,
    FencingToken,
    FixedDelayRestart,
    JobMaster,
    JobPlan,
    ManagedSlotState,
    Message,
    ResourceManager,
    StartTask,
    TaskExecutor,
    TaskState,
)
from refimpl.cluster.slot_table import SlotState

RM, JM = "resource-manager", "job-master"


def plan_of(num_vertices: int, parallelism: int, job_id: str = "job") -> JobPlan:
    """A row of vertices, each subtask of which reads all of the vertex before; slot i has the i-th of each."""
    places = [(vertex, subtask) for vertex in range(num_vertices) for subtask in range(parallelism)]
    exchanges = tuple(Exchange(a, b) for a in places for b in places if b[0] == a[0] + 1)
    return JobPlan(job_id, {place: place[1] for place in places}, exchanges)


@dataclass
class ClusterRig:
    """The cluster of one seed."""

    seed: int
    plan: JobPlan
    num_task_managers: int = 3
    num_slots: int = 2
    loss: float = 0.0
    repeat: float = 0.0
    delay: float = 0.3  # how often time passes while messages are under way
    now_ms: float = 0.0
    rng: random.Random = field(init=False)
    alive: dict[str, Endpoint] = field(default_factory=dict)
    running: dict[str, set[ExecutionId]] = field(default_factory=dict)
    stopping: dict[str, set[ExecutionId]] = field(default_factory=dict)
    task_failures: float = 0.0
    ends: list[tuple[ExecutionId, TaskState]] = field(default_factory=list)
    is_endless: bool = False  # tasks do not end by themselves
    paused: set[str] = field(default_factory=set)  # those that hear, say and do nothing for a while
    sent: list[Message] = field(default_factory=list)
    zombies: list[Endpoint] = field(default_factory=list)
    _heard: dict[tuple[str, FencingToken, str], int] = field(default_factory=dict)
    _epochs: dict[str, int] = field(default_factory=dict)
    _wires: dict[tuple[str, str], deque[Envelope[Message]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        for number in range(self.num_task_managers):
            self.revive(f"tm-{number}")
        self.revive(RM)
        self.revive(JM)

    # -- lives -------------------------------------------------------------------------------------------

    def revive(self, address: str) -> None:
        """Begin the next life, or leadership, at an address; all hear of leaders."""
        epoch = self._epochs[address] = self._epochs.get(address, 0) + 1
        token = FencingToken(epoch, address.encode().ljust(16, b".")[:16])
        if address == RM:
            self.alive[RM] = ResourceManager(RM, token)
        elif address == JM:
            job_master = JobMaster(JM, token, self.plan, FixedDelayRestart(1_000, 100), self.now_ms)
            self.alive[JM] = job_master
            job_master.start(self.now_ms)
        else:
            self.alive[address] = TaskExecutor(address, token, self.num_slots, self.now_ms)
            self.running[address], self.stopping[address] = set(), set()
        self._tell_of_leaders()
        self.collect(address)

    def crash(self, address: str) -> None:
        """End a component with all that is on its way to and from it."""
        self.alive.pop(address, None)
        self.running.pop(address, None)
        self.stopping.pop(address, None)
        for pair in [pair for pair in self._wires if address in pair]:
            del self._wires[pair]

    def depose(self, address: str) -> None:
        """Another leads, and the one before does not know: it was paused, and goes on later."""
        self.zombies.append(self.alive[address])
        self.revive(address)

    def _wake_zombies(self) -> None:
        """Those that do not lead any more do what they believe is due."""
        for zombie in self.zombies:
            if (end := zombie.next_deadline) is not None and end <= self.now_ms:
                zombie.on_timeout(self.now_ms)
            self._put_on_wires(zombie)

    def _tell_of_leaders(self) -> None:
        for component in list(self.alive.values()):
            if isinstance(component, TaskExecutor | JobMaster) and RM in self.alive:
                component.resource_manager_is(RM, self.alive[RM].token, self.now_ms)
            if isinstance(component, TaskExecutor) and JM in self.alive:
                component.job_master_is(self.plan.job_id, JM, self.alive[JM].token, self.now_ms)
            self.collect(component.address)

    @property
    def job_master(self) -> JobMaster:
        component = self.alive[JM]
        assert isinstance(component, JobMaster)
        return component

    @property
    def resource_manager(self) -> ResourceManager:
        component = self.alive[RM]
        assert isinstance(component, ResourceManager)
        return component

    @property
    def task_managers(self) -> list[TaskExecutor]:
        return [each for each in self.alive.values() if isinstance(each, TaskExecutor)]

    # -- steps -------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One message, one task's end, or the next deadline."""
        wires = [pair for pair, wire in self._wires.items() if wire and not self.paused.intersection(pair)]
        tasks = [] if self.is_endless else [(at, task) for at, each in self.running.items() for task in sorted(each)]
        stops = [(address, task) for address, each in self.stopping.items() for task in sorted(each)]
        if stops and self.rng.random() < 0.3:
            address, task = self.rng.choice(stops)
            self.end(address, task, TaskState.CANCELED)
        elif wires and self.rng.random() < 0.9:
            self._deliver(self.rng.choice(wires))
        elif tasks and self.rng.random() < 0.3:
            address, task = self.rng.choice(tasks)
            is_failed = self.rng.random() < self.task_failures
            self.end(address, task, TaskState.FAILED if is_failed else TaskState.FINISHED)
        elif not wires or self.rng.random() < self.delay:
            self._wait()
        self.check()

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self.step()

    def settle(self, for_ms: float = 900_000) -> None:
        """Go on without faults until nothing has happened for so long."""
        self.loss = self.repeat = self.delay = self.task_failures = 0.0
        for address in (RM, JM, *(f"tm-{number}" for number in range(self.num_task_managers))):
            if address not in self.alive:
                self.revive(address)
        end_ms = self.now_ms + for_ms
        while self.now_ms < end_ms:
            self.step()
            if not any(each.next_deadline is not None for each in self.alive.values()) and not self._is_busy:
                return

    @property
    def _is_busy(self) -> bool:
        return any(self._wires.values()) or any(self.running.values()) or any(self.stopping.values())

    def _deliver(self, pair: tuple[str, str]) -> None:
        envelope = self._wires[pair][0] if self.rng.random() < self.repeat else self._wires[pair].popleft()
        receiver = self.alive.get(pair[1])
        if receiver is None or self.rng.random() < self.loss:
            return
        if receiver.receive(envelope, self.now_ms) is None:
            key = receiver.address, receiver.token, envelope.sender
            assert envelope.receiver_token == receiver.token, (
                f"seed {self.seed}: {envelope} was not for {receiver.token}"
            )
            assert self._heard.get(key, 0) <= envelope.sender_token.epoch, (
                f"seed {self.seed}: {envelope} is of a zombie"
            )
            self._heard[key] = envelope.sender_token.epoch
        self.collect(pair[1])

    def _wait(self) -> None:
        """Let time pass up to the next deadline, and a little more by chance."""
        ends = [each.next_deadline for address, each in self.alive.items() if address not in self.paused]
        due = [end for end in ends if end is not None]
        if not due:
            return
        self.now_ms = max(self.now_ms, min(due)) + self.rng.choice([0, 0, 1, 700])
        self._wake_zombies()
        for address, component in self.alive.items():
            if address not in self.paused and (end := component.next_deadline) is not None and end <= self.now_ms:
                component.on_timeout(self.now_ms)
                self.collect(address)

    def end(self, address: str, task: ExecutionId, state: TaskState) -> None:
        """A task has ended, and its TaskManager says so."""
        self.running[address].discard(task)
        self.stopping[address].discard(task)
        self.ends.append((task, state))
        component = self.alive[address]
        assert isinstance(component, TaskExecutor)
        component.task_is(task, state, "by chance" if state is TaskState.FAILED else "", self.now_ms)
        self.collect(address)

    def collect(self, address: str) -> None:
        """Put what a component has to say on its wires, and begin and stop tasks as it wants."""
        component = self.alive[address]
        self._put_on_wires(component)
        if isinstance(component, TaskExecutor):
            orders, component.task_orders = component.task_orders, []
            for order in orders:
                if isinstance(order, StartTask):
                    self.running[address].add(order.task.execution)
                    component.task_is(order.task.execution, TaskState.RUNNING, "", self.now_ms)
                elif order.execution in self.running[address]:
                    self.running[address].remove(order.execution)
                    self.stopping[address].add(order.execution)
            self._put_on_wires(component)

    def _put_on_wires(self, component: Endpoint) -> None:
        for envelope in component.messages_to_send():
            self.sent.append(envelope.message)
            self._wires.setdefault((component.address, envelope.receiver), deque()).append(envelope)

    # -- laws --------------------------------------------------------------------------------------------

    def check(self) -> None:
        """What holds after every step."""
        active = [
            status.allocation
            for each in self.task_managers
            for status in each.slots.report()
            if each.slots.state_of(status.slot.index) is SlotState.ACTIVE
        ]
        assert len(active) == len(set(active)), f"seed {self.seed}: one allocation has two slots: {sorted(active)}"
        if JM in self.alive:
            slots = [each.slot for each in self.job_master.pool.slots]
            assert len(slots) == len(set(slots)), f"seed {self.seed}: one slot has two allocations: {slots}"

    def check_end(self) -> None:
        """What holds when the job is over and all has settled."""
        where = f"seed {self.seed}, at {self.now_ms:.0f} ms"
        assert self.job_master.scheduler.status.state.is_globally_terminal, (
            f"{where}: {self.job_master.scheduler.status.history}"
        )
        assert self.job_master.pool.slots == (), where
        assert self.job_master.pool.waiting == {}, where
        for each in self.task_managers:
            assert [s.allocation for s in each.slots.report()] == [None] * self.num_slots, f"{where}: {each.address}"
            assert each.executions == (), where
        managed = self.resource_manager.slots.slots()
        assert len(managed) == self.num_slots * self.num_task_managers, where
        assert {state for _, state in managed} == {ManagedSlotState.FREE}, where
        assert self.resource_manager.slots.waiting == (), where
