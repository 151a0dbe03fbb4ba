"""The tasks of all jobs on all TaskManagers of a simulated cluster, and the connections between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.task_units import UnitId, addresses_of
from refimpl.drivers.cluster_simulation.actions import ClusterAction
from refimpl.drivers.cluster_simulation.task_manager import RunningUnit, SimulatedTaskManager
from refimpl.drivers.simulation.actions import Action, AskAgain, Deliver, Flush, ReadOn, Send, StepTask, Timeout
from refimpl.drivers.simulation.data_moves import DataMoves
from refimpl.drivers.simulation.policy import Delays
from refimpl.drivers.simulation.wire import Link
from refimpl.drivers.simulation.work import Work
from refimpl.errors import SluiceError
from refimpl.job.deployment import Deployment
from refimpl.job.shuffle_environment import ConnectionId

__all__ = ["DataPlane"]


@dataclass(frozen=True, slots=True)
class _Ends:
    """A connection: who reads, and who is read."""

    unit: UnitId
    consumer: str
    producer: str


class DataPlane(DataMoves):
    """What really runs, by TaskManager. `on_failure` hears of an attempt that has failed, by its TaskManager.

    Two units of one region are connected as soon as both are there. When one of them ends, the other finds its
    connection cut. `at` gives the TaskManager at an address: blocking results are read through it, whether or not it
    runs anything of the region.
    """

    def __init__(
        self,
        work: Work,
        delays: Delays,
        epoch_ms: float,
        on_failure: Callable[[str, ExecutionId, SluiceError], None],
        at: Callable[[str], SimulatedTaskManager],
    ) -> None:
        super().__init__(work, delays, epoch_ms)
        self._at = at
        self._servers: dict[Link, tuple[SimulatedTaskManager, Deployment]] = {}
        self._on_failure = on_failure
        self._units: dict[tuple[UnitId, str], RunningUnit] = {}
        self._ends: dict[str, _Ends] = {}
        self._owners: dict[str, tuple[str, ExecutionId]] = {}  # of tasks and partitions

    def running(self) -> dict[str, list[ExecutionId]]:
        """The attempts that really run, by the address of their TaskManager."""
        found: dict[str, list[ExecutionId]] = {}
        for (_, address), each in self._units.items():
            found.setdefault(address, []).extend(each.tasks)
        return found

    def made(self, address: str, running: RunningUnit) -> None:
        """A unit has been made: its tasks go on from now."""
        unit_id = running.unit.id
        self._units[unit_id, address] = running
        for execution, task in running.tasks.items():
            name = f"{task.task.name} of {execution.job_id} #{execution.epoch}.{execution.attempt} at {address}"
            self._tasks[name] = task.task
            self._owners[name] = address, execution
            for writer in task.task.writers:
                output = f"{writer.partition.name} of {name}"
                self._partitions[output] = writer.partition
                self._owners[output] = address, execution
        addresses = addresses_of(running.unit.task)
        for (other_id, other), each in list(self._units.items()):
            if other_id == unit_id and other != address:
                self._connect(unit_id, addresses, (address, running), (other, each))
                self._connect(unit_id, addresses, (other, each), (address, running))
        self._connect_to_results(address, running)

    def closed(self, address: str, running: RunningUnit) -> None:
        """A unit is about to be no more: those that are connected to it find that out."""
        self.forget(address, running)
        for link in self.cut(address, running.unit.id):
            if not link.is_closed:
                link.lose()
            self.stop_serving(link)

    def forget(self, address: str, running: RunningUnit) -> None:
        """A unit is no more, without a word."""
        self._units.pop((running.unit.id, address), None)
        own = set(running.unit.tasks)
        for name in [name for name, owner in self._owners.items() if owner[0] == address and owner[1] in own]:
            self._tasks.pop(name, None)
            self._partitions.pop(name, None)
            del self._owners[name]

    def cut(self, address: str, unit_id: UnitId | None = None) -> list[Link]:
        """The connections of a unit that was here, or of all, on which nothing comes or goes any more."""
        units = {ends.unit for ends in self._ends.values()} if unit_id is None else {unit_id}
        cut = [name for name, ends in self._ends.items() if ends.unit in units and address in _both(ends)]
        for name in cut:
            del self._ends[name]
        return [self.links.pop(name) for name in cut]

    def is_over(self, address: str, running: RunningUnit) -> bool:
        """Whether a unit has ended well, and nobody reads of it any more."""
        unit_id = running.unit.id
        links = [self.links[name] for name, ends in self._ends.items() if _is(ends, unit_id, address)]
        return running.is_read and all(link.is_closed for link in links)

    def possible(self, paused: set[str]) -> tuple[list[ClusterAction], list[tuple[float, ClusterAction]]]:
        """What tasks, outputs and connections can do now, and what they will do and when; none of those paused."""
        on_wires, waiting = self._on_wires()
        actions: list[ClusterAction] = [each for each in (*self._steps(), *on_wires) if not self._is_at(each, paused)]
        return actions, [(at_ms, each) for at_ms, each in waiting if not self._is_at(each, paused)]

    def due_timers(self, paused: set[str]) -> list[ClusterAction]:
        """The timers of tasks whose time has come; time does not pass for one of them alone."""
        return [each for at_ms, each in self._timeouts() if at_ms <= self.time_ms and not self._is_at(each, paused)]

    def _is_at(self, action: Action, addresses: set[str]) -> bool:
        """Whether an action is one of these TaskManagers'."""
        match action:
            case StepTask(name) | Flush(name) | Timeout(name):
                return self._owners[name][0] in addresses
            case Send(link) | Deliver(link) | ReadOn(link) | AskAgain(link):
                return not addresses.isdisjoint(_both(self._ends[link]))
        return False

    def do_with_data(self, action: ClusterAction) -> bool:
        """Do what concerns a task, an output or a connection; what fails with it is told. Whether it did."""
        try:
            return self._do_with_data(action)
        except SluiceError as error:
            match action:
                case StepTask(name) | Flush(name) | Timeout(name):
                    address, execution = self._owners[name]
                case Send(link) | Deliver(link) | ReadOn(link) | AskAgain(link):
                    ends = self._ends[link]
                    address = ends.consumer
                    execution = self._units[ends.unit, address].unit.task.execution
                case _:
                    raise
            self._on_failure(address, execution, error)
            return True

    def _connect_to_results(self, address: str, running: RunningUnit) -> None:
        """Whoever keeps what a unit reads afterwards, and has no unit of its region, serves it all the same."""
        graph, task = running.deployment.graph, running.unit.task
        addresses, region = addresses_of(task), {each.place for each in task.together}
        beside = {each.task_manager for each in graph.vertices if (each.vertex.id, each.subtask) in region}
        for connection_id in list(running.deployment.shuffle.remote_reads):
            number = connection_id.task_manager
            if number in beside:
                continue
            keeper = self._at(addresses[number])
            server = keeper.serve(graph, number, running.unit.id.job_id)
            link = Link(running.deployment, server, connection_id)
            name = self._name_of(running.unit.id, address, connection_id, addresses[number])
            self.links[name] = link
            self._ends[name] = _Ends(running.unit.id, address, addresses[number])
            self._servers[link] = keeper, server

    def stop_serving(self, link: Link) -> None:
        """If results were read through a connection, they are no more."""
        keeper, server = self._servers.pop(link, (None, None))
        if keeper is not None and server is not None:
            keeper.stop_serving(server)

    def _connect(
        self,
        unit_id: UnitId,
        addresses: list[str],
        consumer: tuple[str, RunningUnit],
        producer: tuple[str, RunningUnit],
    ) -> None:
        number = addresses.index(producer[0])
        for connection_id in list(consumer[1].deployment.shuffle.remote_reads):
            if connection_id.task_manager != number:
                continue
            link = Link(consumer[1].deployment, producer[1].deployment, connection_id)
            name = self._name_of(unit_id, consumer[0], connection_id, producer[0])
            self.links[name], self._ends[name] = link, _Ends(unit_id, consumer[0], producer[0])

    @staticmethod
    def _name_of(unit_id: UnitId, consumer: str, connection_id: ConnectionId, producer: str) -> str:
        name = f"{consumer} reads {connection_id} ({producer}), {unit_id.job_id} #{unit_id.epoch}"
        return f"{name}.{unit_id.generation} {unit_id.first}"


def _both(ends: _Ends) -> tuple[str, str]:
    return ends.consumer, ends.producer


def _is(ends: _Ends, unit_id: UnitId, address: str) -> bool:
    return ends.unit == unit_id and address in _both(ends)
