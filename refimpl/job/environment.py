"""The few words a job is written in: a small DataStream API.

    env = StreamEnvironment(Config())
    results = []
    (
        env.from_collection(range(10))
        .map(lambda n: n * n, name="square")
        .filter(lambda n: n % 2 == 0, name="even")
        .sink(results.append)
    )
    Simulation(env).run()

Every word adds an operator and returns the stream of its results; nothing runs until a driver does.
`type` names how values cross the network; without one, they say themselves what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from refimpl.config import Config
from refimpl.errors import LocalUsageError
from refimpl.job.data_stream import DataStream
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import JobGraph
from refimpl.job.parts import Parts
from refimpl.job.placement import Placement
from refimpl.job.scheduling_modes import Boundedness
from refimpl.job.stream_graph import ChainingStrategy, StreamGraph, StreamNode, checked_parallelism
from refimpl.records.any_type import ANY
from refimpl.records.types import TypeSerializer
from refimpl.task.operators import Operator
from refimpl.task.source import IterableReader, ReaderFactory

__all__ = ["StreamEnvironment"]


class StreamEnvironment:
    """A job being written: its options, its parts and its graph.

    Flink:   StreamExecutionEnvironment (streaming.api.environment), 1.11.4
    """

    def __init__(self, config: Config | None = None, parallelism: int = 1) -> None:
        if config is not None and not isinstance(config, Config):
            raise LocalUsageError(f"StreamEnvironment takes a Config and a parallelism, got {type(config).__name__}")
        self.config = config or Config()
        self.parallelism = checked_parallelism(parallelism)
        self.parts = Parts()
        self.graph = StreamGraph()

    def use(self, **parts: object) -> StreamEnvironment:
        """Build the job with other parts: `use(SpanningRecordSerializer=Mine)`."""
        self.parts = self.parts.using(**parts)
        return self

    def source(
        self,
        make_reader: ReaderFactory,
        name: str = "source",
        type: TypeSerializer = ANY,
        parallelism: int | None = None,
        boundedness: Boundedness = Boundedness.BOUNDED,
    ) -> DataStream:
        """A stream read by `make_reader(subtask, parallelism)` in every subtask; one without an end says so."""
        node = StreamNode(
            self.graph.next_id,
            name,
            checked_parallelism(self.parallelism if parallelism is None else parallelism),
            Operator,
            type,
            ChainingStrategy.HEAD,
            make_reader=make_reader,
            is_unbounded=boundedness is Boundedness.UNBOUNDED,
        )
        self.graph.add_node(node)
        return DataStream(self, node)

    def from_collection(self, values: Iterable[object], name: str = "source", type: TypeSerializer = ANY) -> DataStream:
        """A stream of these values, read by one subtask."""
        kept: Sequence[object] = list(values)
        return self.source(lambda *_: IterableReader(kept), name, type, parallelism=1)

    def execution_graph(self, num_task_managers: int = 1, run_id: bytes = bytes(8)) -> ExecutionGraph:
        """The job drawn out for its first attempt on so many TaskManagers.

        Raises:
            LocalUsageError: the job has no operators, or too few slots for so many TaskManagers.
        """
        if not self.graph.nodes:
            raise LocalUsageError("the job has no operators; start with a source")
        job = JobGraph(self.graph, self.config, self.parts)
        return ExecutionGraph(job, Placement(job, num_task_managers), run_id=run_id)

    def explain(self) -> str:
        """The tasks this job becomes, why each edge was or was not chained, pipelined or blocking, and the slots."""
        return JobGraph(self.graph, self.config, self.parts).explain()
