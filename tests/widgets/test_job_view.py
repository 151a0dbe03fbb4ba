"""The graph of a job: before it runs at three stages, and while it runs."""

from __future__ import annotations

import re

import networkx as nx
import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.task import Operator
from widgets import JobView, graph_of


@pytest.fixture
def written():
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=40), 2)
    stream = environment.from_collection(range(9)).rebalance().map(str)
    stream.filter(bool).sink(bool)
    stream.key_by(len).transform("late", Operator).set_parallelism(3)
    return environment


def view_of(source, **options):
    view = JobView(source, **options)
    try:
        return view, repr(view), view.svg(), view.model()
    finally:
        view.close()


def test_a_written_job_has_three_stages(written):
    texts = [view_of(written, at=stage)[1] for stage in range(3)]
    assert "as you wrote it" in texts[0]
    assert "map × 2, filter × 2, sink × 2" in texts[0]
    assert "chained" not in texts[0].replace("after chaining", "")
    assert "map → filter → sink × 2, chained" in texts[1]
    assert "not chained: the edge is hash, not forward; parallelism 2 is not 3" in texts[1]
    assert "channel" not in texts[1]
    assert "→ late: hash · 6 channels" in texts[2]
    assert "late-2" in texts[2]


def test_the_stages_agree_with_what_the_engine_explains_and_builds(written):
    model = view_of(written, at=2)[3]
    explained = written.explain()
    assert f"{len(model['vertices'])} tasks:" in explained
    for vertex in model["vertices"]:
        assert f"  {vertex['name']}  × {len(vertex['subtasks'])}" in explained
    with Simulation(written) as simulation:
        running = view_of(simulation)[3]
    assert [v["name"] for v in running["vertices"]] == [v["name"] for v in model["vertices"]]
    assert [len(v["subtasks"]) for v in running["vertices"]] == [len(v["subtasks"]) for v in model["vertices"]]

    def connections(found):
        return {(c["from_subtask"], c["to_subtask"], found["edges"][c["edge"]]["to_vertex"]) for c in found["channels"]}

    assert connections(running) == connections(model)


def test_a_branch_in_a_chain_comes_from_the_operator_before_it(written):
    model = view_of(written)[3]
    chain = next(vertex for vertex in model["vertices"] if vertex["name"].startswith("map"))
    names = [operator["name"] for operator in chain["operators"]]
    assert {names[o["after"]]: o["name"] for o in chain["operators"] if o["after"] >= 0} == {
        "map": "filter", "filter": "sink",
    }  # fmt: skip


def test_the_model_is_a_networkx_graph(written):
    graph = graph_of(view_of(written)[3])
    assert nx.is_directed_acyclic_graph(graph)
    assert graph.number_of_nodes() == 3
    assert [graph.nodes[n]["column"] for n in nx.topological_sort(graph)] == [0, 1, 2]


def test_who_is_held_up_is_said_in_words_colour_and_hatch(job):
    with Simulation(job(400), seed=1) as simulation:
        while any("source" in str(action) for action in simulation.enabled()):
            simulation.step(next(action for action in simulation.enabled() if "source" in str(action)))
        _, text, still, model = view_of(simulation)
    assert text.count("▲ backpressured: source") == 2
    assert sum(edge["num_stuck_channels"] for edge in model["edges"]) == len(
        re.findall(r'data-states="absent quiet queued stuck ended" data-state="stuck"', still)
    )
    assert "backpressured: source → timestamps-0, source → timestamps-1" in JobView.status_of(model)


def test_many_subtasks_are_one_line_and_a_number():
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=4_000), 20)
    environment.from_collection(range(9)).rebalance().map(str).rebalance().sink(bool)
    _, text, still, model = view_of(environment, at=2)
    assert "400 channels" in text
    assert "… and 12 more subtasks" in still
    assert len(model["channels"]) == 420
    assert len(still) < 200_000


def test_what_is_said_of_each_exchange_stands_by_itself():
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=64), 2)
    first = environment.from_collection(range(9), "a")
    for sink in "pqr":
        first.rebalance().sink(bool, sink)
    first.rebalance().union(first.broadcast()).sink(bool, "both")
    _, _, svg, model = view_of(environment, at=2)
    spots = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>(?:rebalance|broadcast) · \d+ channels?<', svg)
    assert len(spots) == len(model["edges"]) == 5
    assert len(set(spots)) == 5, spots


def test_a_job_without_operators_is_refused():
    with pytest.raises(LocalUsageError, match="no operators"):
        JobView(StreamEnvironment(Config()))
