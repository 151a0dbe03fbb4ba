"""A job that runs region by region in the processes of its TaskManagers: the parent's side.

A region is deployed where its tasks are, and where the blocking results are that it reads. What a process has written
is lost with it: then whoever has produced that begins again, and else nobody but who has failed.
"""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from refimpl.cluster.region_scheduling import RegionToStart
from refimpl.cluster.restart import RestartStrategy
from refimpl.drivers.blocking_files import result_folder
from refimpl.drivers.codecs import codec_of
from refimpl.drivers.processes.attempts import RemoteAttempts
from refimpl.drivers.processes.child_process import ChildProcess
from refimpl.drivers.processes.cluster import WhereItRuns
from refimpl.drivers.processes.group import SECONDS_TO_SETTLE, ProcessGroup
from refimpl.drivers.processes.messages import Drop, JobOrder, Outgoing, RegionOrder, Settle, Start, pack
from refimpl.drivers.processes.sinks import SinkFunctions
from refimpl.drivers.region_master import RegionMaster
from refimpl.drivers.regions import JobRegions
from refimpl.exchange.messages import ResultPartitionId
from refimpl.job.commands import Pause
from refimpl.job.environment import StreamEnvironment
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.job.job_graph import Place
from refimpl.laws.records import RecordCounts

__all__ = ["RegionProcesses"]

_SECONDS_TO_STOP = 15.0


class RegionProcesses:
    """A process for each TaskManager of a job, as `ProcessCluster`; `attempts` are those of its regions.

    Raises:
        SluiceError: the job cannot be sent, or needs a library that is not there.
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        where: WhereItRuns,
        on_change: Callable[[], None],
        num_slots: int | None,
        restart: RestartStrategy | None,
    ) -> None:
        graph = environment.execution_graph(len(where.cores), secrets.token_bytes(8))
        codec_of(graph.job.config.compression)
        self.job = JobRegions(graph, num_slots, restart)
        self.sinks = SinkFunctions(environment.graph.nodes)
        self._host = _ProcessHost(self.job, JobOrder.of(environment), where, self.sinks, self._note_news)
        self.attempts = RegionMaster(self.job, self._host, on_change)
        self._on_change = on_change

    @property
    def group(self) -> ProcessGroup:
        """The processes."""
        return self._host.group

    @property
    def is_paused(self) -> bool:
        """Whether what is deployed next is to stand still at first."""
        return self._host.is_paused

    @is_paused.setter
    def is_paused(self, is_paused: bool) -> None:
        self._host.is_paused = is_paused

    def spawn_all(self) -> None:
        """Start a process for each TaskManager.

        Raises:
            OSError: the system has no more.
        """
        self._host.spawn_all()

    def deploy(self) -> None:
        """Make the attempts of the first regions.

        Raises:
            SluiceError: one could not be made.
        """
        self.attempts.deploy_first()

    def start_first(self) -> None:
        """Let them run, and see to all that follows."""
        self.attempts.start()

    def settle_last(self) -> None:
        """After the last task: remember how it all was; each region was checked at its end."""
        self.group.look()

    def close(self) -> None:
        """End every process, and remove all results. Safe to repeat."""
        self.attempts.cancel()
        self.group.close()
        self.attempts.close(_SECONDS_TO_STOP)
        self._host.folder.close()

    def _note_news(self) -> None:
        self.attempts.note_news()
        self._on_change()


class _ProcessHost:
    """Where the regions run."""

    def __init__(
        self,
        job: JobRegions,
        order: JobOrder,
        where: WhereItRuns,
        sinks: SinkFunctions,
        on_news: Callable[[], None],
    ) -> None:
        pack(order)  # what cannot be sent is refused before a process is there
        self.group = ProcessGroup()
        self.is_paused = False
        self.folder = result_folder(job.schedule.graph.job.config)
        self._order = order
        self._where = where
        self._sinks = sinks
        self._on_news = on_news
        self._deployed: dict[int, RemoteAttempts] = {}
        self._num_deployments = 0
        self._holders: dict[Place, ChildProcess] = {}  # of what finished attempts have written

    # -- regions ---------------------------------------------------------------------------------------

    def deploy(self, region: RegionToStart) -> RemoteAttempts:
        self.group.replace_lost(self._spawn)
        self._remove_folders_of_the_lost()
        children = {number: self.group.children[number] for number in _concerned(region)}
        self._num_deployments += 1
        number = self._num_deployments
        attempts = RemoteAttempts(number, region.executions, children, self._sinks, self._on_news)
        self._deployed[number] = attempts
        try:
            orders = {child: self._pack_order(child, region, number) for child in children.values()}
            found = dict(zip(children, self.group.ask(orders, threading.TIMEOUT_MAX), strict=True))
        except BaseException:
            self.stop(attempts)
            raise
        attempts.addresses = [found.get(each) for each in range(len(self._where.cores))]
        return attempts

    def start(self, attempts: RemoteAttempts) -> None:
        request = pack(Start(attempts.addresses, attempts.deployment))
        self.group.ask(dict.fromkeys(attempts.children.values(), request), threading.TIMEOUT_MAX)
        if self.is_paused:
            self.group.ask_all(Pause())

    def end(self, attempts: RemoteAttempts) -> list[RecordCounts]:
        request = pack(Settle(attempts.deployment))
        parts = self.group.ask(dict.fromkeys(attempts.children.values(), request), SECONDS_TO_SETTLE)
        self.group.remember({child: seen for child, (_, seen) in zip(attempts.children, parts, strict=True)})
        self.stop(attempts)
        for each in attempts.executions:
            self._holders[each.vertex.id, each.subtask] = attempts.children[each.task_manager]
        return [counts for counts, _ in parts]

    def stop(self, attempts: RemoteAttempts, _error: BaseException | None = None) -> None:
        attempts.stop()
        self.group.stop(attempts.deployment)
        self._deployed.pop(attempts.deployment, None)

    def cancel(self, attempts: RemoteAttempts) -> None:
        attempts.stop()

    def is_available(self, producer: ExecutionVertex) -> bool:
        holder = self._holders.get((producer.vertex.id, producer.subtask))
        return holder is not None and not holder.is_lost and holder.process.poll() is None

    def drop(self, results: Collection[ResultPartitionId]) -> None:
        for child in self.group.children:
            if not child.is_lost:
                child.ask(pack(Drop(tuple(results))))

    # -- processes -------------------------------------------------------------------------------------

    def spawn_all(self) -> None:
        for number in range(len(self._where.cores)):
            self.group.children.append(self._spawn(number))

    def _spawn(self, number: int) -> ChildProcess:
        return ChildProcess(number, self._hear, self._lose, self._where.cores[number])

    def _folder_of(self, child: ChildProcess) -> Path:
        return self.folder.path / f"tm-{child.number}-{child.process.pid}"

    def _remove_folders_of_the_lost(self) -> None:
        present = {self._folder_of(child) for child in self.group.children}
        for folder in self.folder.path.glob("tm-*"):
            if folder not in present:
                shutil.rmtree(folder, ignore_errors=True)

    def _pack_order(self, child: ChildProcess, region: RegionToStart, deployment: int) -> bytes:
        own = RegionOrder(region.places, self._folder_of(child))
        return pack(self._where.order(self._order, child.number, region.graph, deployment, region=own))

    def _hear(self, child: ChildProcess, message: Outgoing) -> None:
        if (attempts := self._deployed.get(message.generation)) is not None:
            attempts.hear(child, message)

    def _lose(self, child: ChildProcess) -> None:
        for attempts in list(self._deployed.values()):
            if self.group.is_closed:  # then they lose each other's connections, one after the other
                attempts.stop()
            attempts.lose(child)
        self._on_news()


def _concerned(region: RegionToStart) -> list[int]:
    """The TaskManagers that have tasks of a region, or blocking results that it reads."""
    graph: ExecutionGraph = region.graph
    own = {each.task_manager for each in region.executions}
    read = {plan.producer.task_manager for each in region.executions for gate in graph.inputs(each) for plan in gate}
    return sorted(own | read)
