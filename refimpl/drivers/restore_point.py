"""What the tasks of a deployment go on from, as data: it may be read where the tasks are, in another process too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from refimpl.errors import LocalUsageError
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.job.task_factory import Snapshots
from refimpl.state.assignment import OperatorPlan, Share, assign, read_share
from refimpl.state.layout import JobStore
from refimpl.state.manifest import Manifest
from refimpl.state.store import SnapshotStore
from refimpl.state.subtask_state import RestoredStates
from refimpl.task.checkpoint_reports import StatePlace

__all__ = ["RestorePoint", "check_uids"]


@dataclass(frozen=True, slots=True)
class RestorePoint:
    """A checkpoint of the job called `job`, or none, for attempts that have the number `attempt` in common.

    No other attempts of the job have had that number: it is in the names of their state files. What is pickled in the
    checkpoint is read with `trust_pickle` only.

    Flink:   JobManagerTaskRestore (runtime.checkpoint), 1.11.4
    Differs: one for the whole job; each task finds its share of it.
    """

    job: str
    attempt: int
    manifest: Manifest | None
    trust_pickle: bool = False

    def check(self, graph: ExecutionGraph) -> None:
        """Refuse a job that cannot go on from it; no state is read.

        Raises:
            RestoreRefusedError: as `assign`.
        """
        self._shares(graph)

    def place_of(self, execution: ExecutionVertex) -> StatePlace:
        """What the state files of a task are called."""
        return StatePlace(execution.vertex.nodes[0].uid, execution.subtask, self.attempt)

    def snapshots(
        self, store: SnapshotStore, graph: ExecutionGraph, executions: Iterable[ExecutionVertex] | None = None
    ) -> Snapshots:
        """What checkpoints are to these tasks of `graph`, or to all; their states are read from `store`.

        Raises:
            RestoreRefusedError: the job cannot go on from it.
            CorruptFileError, StoreError: a file is damaged, or the store did not answer.
        """
        own = JobStore(store, self.job)
        shares = self._shares(graph)
        states: dict[str, dict[str, RestoredStates]] = {}
        for execution in graph.vertices if executions is None else executions:
            for node in execution.vertex.nodes:
                if node.uid in shares:
                    share = shares[node.uid][execution.subtask]
                    read = read_share(own, node.uid, share, trust_pickle=self.trust_pickle)
                    states.setdefault(execution.name, {})[node.uid] = read
        return Snapshots(self.place_of, states)

    def _shares(self, graph: ExecutionGraph) -> Mapping[str, Sequence[Share]]:
        if self.manifest is None:
            return {}
        plans = [
            OperatorPlan(node.uid, graph.max_parallelism(vertex), vertex.parallelism)
            for vertex in graph.job.vertices.values()
            for node in vertex.nodes
        ]
        return assign(self.manifest.operators, plans)


def check_uids(graph: ExecutionGraph) -> None:
    """Refuse operators that a checkpoint could not tell apart.

    Raises:
        LocalUsageError: two have one uid.
    """
    uids = [node.uid for vertex in graph.job.vertices.values() for node in vertex.nodes]
    if twice := sorted({uid for uid in uids if uids.count(uid) > 1}):
        raise LocalUsageError(
            f"several operators are called {twice[0]!r}, so a checkpoint could not tell their states apart; "
            f"give each a name, or a uid: stream.map(f).uid('prices')"
        )
