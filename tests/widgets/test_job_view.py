"""The graph of a job: before it runs at three stages, and while it runs."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET

import networkx as nx
import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.task import Operator
from tests.support.drawings import SVG, box_of, is_over, points_of, words_in, words_on_words
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


def test_none_begins_as_if_no_stage_had_been_given(written):
    assert view_of(written, at=None)[1] == view_of(written)[1]


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
        "map": "filter",
        "filter": "sink",
    }


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


def environment_of(parallelism=2):
    return StreamEnvironment(Config(segment_size_bytes=64, num_buffers=2_000), parallelism)


def any_job(seed):
    """Up to three sources and six tasks, each of which reads from up to four others, some of them twice."""
    choice = random.Random(seed)
    environment = environment_of(choice.choice((1, 2, 4)))
    streams = [environment.from_collection(range(5), f"source {n}") for n in range(choice.randint(1, 3))]
    for number in range(choice.randint(2, 6)):
        first, *others = [
            choice.choice((stream.rebalance, stream.broadcast))()
            for stream in choice.choices(streams, k=choice.choice((1, 1, 2, 4)))
        ]
        streams.append((first.union(*others) if others else first).map(str, f"task {number}"))
    for number, stream in enumerate(streams):
        stream.rebalance().sink(bool, f"sink {number}")
    return environment


def exchanges_in(svg):
    """For each exchange of a picture the paths of its lines that are seen, and the frames of all tasks."""
    root = ET.fromstring(svg)
    frames = [box_of(rect) for rect in root.iter(f"{SVG}rect") if rect.get("class") == "frame"]
    seen = [
        [
            path
            for group in edge.iter(f"{SVG}g")
            if group.get("data-state") not in (None, "absent")
            for path in group.iter(f"{SVG}path")
            if "wire" in path.get("class")
        ]
        for edge in root.iter(f"{SVG}g")
        if edge.get("data-edge")
    ]
    return seen, frames


def lines_behind_tasks(svg):
    """The lines that run through the frame of a task, and so behind it."""
    exchanges, frames = exchanges_in(svg)
    return {
        path.get("d")
        for paths in exchanges
        for path in paths
        for x, y in points_of(path)
        for left, right, top, bottom in frames
        if left + 1 < x < right - 1 and top < y < bottom
    }


@pytest.mark.parametrize("seed", range(10))
def test_lines_and_words_of_exchanges_lie_on_nothing(seed):
    for stage in (1, 2):
        svg = view_of(any_job(seed), at=stage)[2]
        exchanges, frames = exchanges_in(svg)
        assert not words_on_words(ET.fromstring(svg))
        assert not lines_behind_tasks(svg)
        drawn = [path.get("d") for paths in exchanges for path in paths]
        assert len(set(drawn)) == len(drawn)
        edges = [edge for edge in ET.fromstring(svg).iter(f"{SVG}g") if edge.get("data-edge")]
        said = [box for edge in edges for _, box in words_in(edge)]
        assert not [(words, frame) for words in said for frame in frames if is_over(words, frame)]


def test_an_exchange_that_skips_tasks_goes_around_them_with_its_words():
    environment = environment_of()
    source = environment.from_collection(range(9))
    longer = source.rebalance().map(str, "first").rebalance().map(str, "second")
    source.broadcast().union(longer.rebalance()).sink(bool, "both")
    for stage in range(3):
        _, _, svg, model = view_of(environment, at=stage)
        assert not lines_behind_tasks(svg)
    (skipping,) = [n for n, edge in enumerate(model["edges"]) if edge["way"] == "broadcast"]
    edge = ET.fromstring(svg).find(f".//{SVG}g[@data-edge='{skipping}']")
    ((words, (left, _, _, bottom)),) = words_in(edge)
    assert words == "broadcast · 2 channels"
    lines = [points_of(path) for path in edge.iter(f"{SVG}path") if path.get("class") == "wire"]
    nearest = [min(y for x, y in line if left <= x <= left + 150) for line in lines]
    assert [0 < y - bottom < 40 for y in nearest] == [True, True]


def test_two_exchanges_of_the_same_two_tasks_are_two_in_picture_words_table_and_graph():
    environment = environment_of()
    source = environment.from_collection(range(9))
    source.rebalance().union(source.broadcast()).sink(bool, "both")
    with Simulation(environment, seed=1) as simulation:
        while any("source" in str(action) for action in simulation.enabled()):
            simulation.step(next(action for action in simulation.enabled() if "source" in str(action)))
        snapshot = simulation.snapshot()
    view = JobView(snapshot)
    model, svg = view.model(), view.svg()
    queued = [
        sum(not entry.data_type.is_event for sub in partition.subpartitions for entry in sub.queue)
        for partition in snapshot.partitions
    ]
    assert [edge["queued_buffers"] for edge in model["edges"]] == queued
    assert [edge["num_channels"] for edge in model["edges"]] == [2, 2]
    assert re.findall(r"→ both: 2 channels · (\d+) queued", repr(view)) == list(map(str, queued))
    facts = list(view.facts(model).values())
    (rows,) = [rows for caption, _, rows in view._topology["tables"] if caption == "Exchanges"]
    assert [facts[load[0]] for *_, load in rows] == [f"{number} queued" for number in queued]
    exchanges, _ = exchanges_in(svg)
    assert [len(paths) for paths in exchanges] == [2, 2]
    assert len({path.get("d") for paths in exchanges for path in paths}) == 4
    graph = graph_of(model)
    assert graph.number_of_edges(0, 1) == 2
    assert graph.edges[0, 1, 1]["queued_buffers"] == queued[1]
    assert len(view_of(environment)[3]["edges"]) == 2
    view.close()


def test_a_job_without_operators_is_refused():
    with pytest.raises(LocalUsageError, match="no operators"):
        JobView(StreamEnvironment(Config()))
