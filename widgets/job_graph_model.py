"""A job as a graph: what was written, what is chained into tasks, and the subtasks that run with their channels.

A vertex is a chain of operators, an edge an exchange. The same model says how a job stands that runs, which is
all that a snapshot knows, and what a job will become that has only been written; that one has three stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refimpl.errors import LocalUsageError
from refimpl.job import JobGraph, JobSnapshot, StreamEnvironment, channels_of, reasons_not_to_chain
from widgets.view_models import Model, moment_of, pipeline_model, put_in_places, topology

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["STAGES", "Plan", "graph_of", "known_of_plan", "known_of_run", "plan_model", "plans_of", "run_model"]

STAGES = ("as you wrote it", "after chaining", "as it will run")


@dataclass(frozen=True)
class Plan:
    """A job that does not run, at one of its `STAGES`."""

    environment: StreamEnvironment
    stage: int


def plans_of(environment: StreamEnvironment) -> list[Plan]:
    """A written job at all stages."""
    return [Plan(environment, stage) for stage in range(len(STAGES))]


def graph_of(model: Model) -> nx.MultiDiGraph:
    """The vertices and edges of a model, for whoever wants to search or draw them otherwise.

    Between two tasks there may be several exchanges, each an edge of its own: `graph.edges[source, target, 0]`.
    """
    # Here, because it takes as long to load as all our views, and only who asks for such a graph needs it.
    import networkx as nx

    graph = nx.MultiDiGraph()
    for number, vertex in enumerate(model["vertices"]):
        graph.add_node(number, **vertex)
    for edge in model["edges"]:
        graph.add_edge(edge["from_vertex"], edge["to_vertex"], **edge)
    return graph


# -- a job that runs ---------------------------------------------------------------------------------


def known_of_run(snapshot: JobSnapshot) -> Model:
    """What never changes while a job runs: which tasks are subtasks of one vertex, and who is connected."""
    known = topology(snapshot)
    names = [task["name"].rpartition("-")[0] for task in known["tasks"]]
    order = list(dict.fromkeys(names))
    members = {name: [number for number, other in enumerate(names) if other == name] for name in order}
    vertices: list[Model] = [
        {"name": name, "operators": _line(known["tasks"][members[name][0]]["operators"]), "tasks": members[name]}
        for name in order
    ]
    place = {number: (v, s) for v, vertex in enumerate(vertices) for s, number in enumerate(vertex["tasks"])}
    # A task has one output for each exchange; its subtasks have theirs in the same order.
    makers = [output["task"] for output in known["outputs"]]
    ways = [makers[:number].count(maker) for number, maker in enumerate(makers)]
    edges: dict[tuple[int, int, int], Model] = {}
    channels: list[Model | None] = []
    for channel in known["channels"]:
        if channel["to_task"] < 0:
            channels.append(None)
            continue
        (source, subtask), (target, reader) = place[channel["from_task"]], place[channel["to_task"]]
        exchange = (source, target, ways[channel["output"]])
        edge = edges.setdefault(exchange, _edge(source, target, ""))
        number = list(edges).index(exchange)
        edge["num_channels"] += 1
        channels.append({"edge": number, "from_subtask": subtask, "to_subtask": reader})
    found = list(edges.values())
    return {**known, "vertices": _placed(vertices, found), "edges": found, "places": channels}


def run_model(snapshot: JobSnapshot, known: Model, action: str = "") -> Model:
    """A running job at one moment."""
    moment = pipeline_model(snapshot, known, action)
    edges = [dict(edge) for edge in known["edges"]]
    channels = []
    for place, channel in zip(known["places"], moment["channels"], strict=True):
        if place is None:
            continue
        state = _channel_state(channel, moment["outputs"][channel["output"]])
        channels.append({**place, "name": channel["name"], "state": state, "queued_buffers": _num_queued(channel)})
        edge = edges[place["edge"]]
        edge["queued_buffers"] += channels[-1]["queued_buffers"]
        edge["num_stuck_channels"] += state == "stuck"
    keys = ("name", "progress", "num_records_in", "num_records_out", "rest_ms")
    return {
        **moment_of("job", snapshot, action),
        "stage": "",
        "vertices": [
            {
                **{key: vertex[key] for key in ("name", "operators", "column", "row")},
                "subtasks": [{key: moment["tasks"][number][key] for key in keys} for number in vertex["tasks"]],
            }
            for vertex in known["vertices"]
        ],
        "edges": edges,
        "channels": channels,
    }


def _channel_state(channel: Model, output: Model) -> str:
    """`stuck`: data waits and the producer has no buffer left; `queued`: data waits; `quiet`; `ended`."""
    if not channel["queue"]:
        return "ended" if channel["is_finished"] else "quiet"
    return "queued" if output["is_available"] or channel["is_finished"] else "stuck"


def _num_queued(channel: Model) -> int:
    return sum(not entry["is_event"] for entry in channel["queue"])


# -- a job that is written ---------------------------------------------------------------------------


def known_of_plan(plan: Plan) -> Model:
    """The graph of a written job; every stage shows some of it.

    Raises:
        LocalUsageError: it has no operators.
    """
    environment = plan.environment
    if not environment.graph.nodes:
        raise LocalUsageError("the job has no operators; start with a source")
    job = JobGraph(environment.graph, environment.config)
    stream, numbers = job.stream_graph, {id_: number for number, id_ in enumerate(job.vertices)}
    chains = list(enumerate(job.vertices.values()))
    home = {node.id: (number, place) for number, vertex in chains for place, node in enumerate(vertex.nodes)}
    vertices: list[Model] = [
        {
            "name": vertex.name,
            "operators": [{"name": node.name, "after": -1} for node in vertex.nodes],
            "subtasks": [_not_running(f"{vertex.name}-{subtask}") for subtask in range(vertex.parallelism)],
        }
        for vertex in job.vertices.values()
    ]
    for written in stream.edges:
        (number, place), (target, position) = home[written.source], home[written.target]
        if number == target and not reasons_not_to_chain(stream, written, environment.config):
            vertices[number]["operators"][position]["after"] = place
    edges, channels = [], []
    for edge in job.edges:
        producer, consumer = job.vertices[edge.source], job.vertices[edge.target]
        reasons = "; ".join(reasons_not_to_chain(stream, edge.edge, environment.config))
        edges.append(_edge(numbers[edge.source], numbers[edge.target], edge.partitioner.name, reasons))
        matrix = channels_of(producer.parallelism, consumer.parallelism, edge.partitioner.is_pointwise)
        for subtask, readers in enumerate(matrix):
            for reader in readers:
                name = f"{producer.name}-{subtask} → {consumer.name}-{reader}"
                way = {"edge": len(edges) - 1, "from_subtask": subtask, "to_subtask": reader}
                channels.append({**way, "name": name, "state": "quiet", "queued_buffers": 0})
                edges[-1]["num_channels"] += 1
    return {"vertices": _placed(vertices, edges), "edges": edges, "channels": channels}


def plan_model(plan: Plan, known: Model) -> Model:
    """A written job at one stage."""
    return {
        "kind": "job",
        "action": "",
        "time_ms": 0.0,
        "num_steps": plan.stage,
        "stage": STAGES[plan.stage],
        "vertices": known["vertices"],
        "edges": known["edges"],
        "channels": known["channels"],
    }


def _not_running(name: str) -> Model:
    return {"name": name, "progress": "", "num_records_in": 0, "num_records_out": 0, "rest_ms": 0}


# -- both --------------------------------------------------------------------------------------------


def _line(names: Sequence[str]) -> list[Model]:
    """A chain as far as a running task tells: one operator after the other."""
    return [{"name": name, "after": place - 1} for place, name in enumerate(names)]


def _edge(source: int, target: int, way: str, reasons: str = "") -> Model:
    return {
        "from_vertex": source,
        "to_vertex": target,
        "way": way,
        "reasons": reasons,
        "num_channels": 0,
        "queued_buffers": 0,
        "num_stuck_channels": 0,
    }


def _placed(vertices: list[Model], edges: Sequence[Model]) -> list[Model]:
    """The vertices, each with its place; its column counts exchanges."""
    put_in_places(vertices, ((edge["from_vertex"], edge["to_vertex"]) for edge in edges))
    return vertices
