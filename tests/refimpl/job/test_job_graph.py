"""What the user wrote becomes tasks: the default partitioner, each condition of chaining, and what `explain` says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refimpl.config import Config
from refimpl.errors import LocalUsageError
from refimpl.job import (
    FORWARD,
    MAX_CHAINED_IN_A_ROW,
    REBALANCE,
    DataStream,
    JobGraph,
    StreamEnvironment,
    is_chainable,
    reasons_not_to_chain,
)


def graph_of(environment: StreamEnvironment) -> JobGraph:
    return JobGraph(environment.graph, environment.config)


def names_of(environment: StreamEnvironment) -> list[str]:
    return [vertex.name for vertex in graph_of(environment).vertices.values()]


def source_and_map(config: Config | None = None) -> tuple[StreamEnvironment, DataStream, DataStream]:
    environment = StreamEnvironment(config)
    source = environment.from_collection([1, 2])
    return environment, source, source.map(abs)


# -- the edge nobody chose -------------------------------------------------------------------------


@pytest.mark.parametrize(("parallelism", "partitioner"), [(1, FORWARD), (2, REBALANCE)])
def test_an_edge_nobody_chose_is_forward_between_equals_and_rebalance_otherwise(
    parallelism: int, partitioner: object
) -> None:
    environment, _, mapped = source_and_map()
    mapped.set_parallelism(parallelism)
    resolved = graph_of(environment).stream_graph
    assert [edge.partitioner for edge in resolved.edges] == [partitioner]


def test_forward_between_different_parallelisms_is_refused_with_what_would_do() -> None:
    environment = StreamEnvironment()
    environment.from_collection([1]).forward().map(abs).set_parallelism(3)
    with pytest.raises(LocalUsageError, match="source has 1, map has 3; use rebalance or rescale"):
        graph_of(environment)


def test_two_operators_cannot_have_one_name() -> None:
    environment, source, _ = source_and_map()
    with pytest.raises(LocalUsageError, match="two operators are called 'map'; give one another name"):
        source.map(abs)
    assert len(environment.graph.nodes) == 2


def test_operators_come_in_an_order_in_which_each_stands_behind_its_inputs() -> None:
    environment = StreamEnvironment()
    one, two = environment.from_collection([1], "one"), environment.from_collection([2], "two")
    one.map(abs, "left").union(two.map(abs, "right")).map(abs, "both").sink(print)
    order = [node.name for node in environment.graph.in_order()]
    assert sorted(order) == sorted(node.name for node in environment.graph.nodes.values())
    for edge in environment.graph.edges:
        names = [environment.graph.nodes[number].name for number in (edge.source, edge.target)]
        assert order.index(names[0]) < order.index(names[1]), names


def test_the_graph_can_be_searched_as_a_networkx_graph() -> None:
    environment, source, mapped = source_and_map()
    source.union(source).map(abs, "twice")
    found = environment.graph.to_networkx()
    assert found.nodes[mapped.node.id]["node"] is mapped.node
    assert found.number_of_edges(source.node.id, 2) == 2
    assert [data["edge"] for _, _, data in found.edges(data=True)] == environment.graph.edges


# -- the conditions of chaining --------------------------------------------------------------------


def nothing(_source: DataStream, _mapped: DataStream) -> None: ...


def another_parallelism(_source: DataStream, mapped: DataStream) -> None:
    mapped.set_parallelism(2)


# (what is done to source and map, the reasons not to chain them)
CONDITIONS: list[tuple[Callable[[DataStream, DataStream], object], list[str]]] = [
    (nothing, []),
    (lambda source, mapped: source.start_new_chain(), []),
    (lambda source, mapped: mapped.slot_sharing_group("gpu"),
     ["slot-sharing groups differ: 'default' and 'gpu'"]),
    (lambda source, mapped: (source.slot_sharing_group("gpu"), mapped.slot_sharing_group("gpu")), []),
    (lambda source, mapped: mapped.start_new_chain(), ["map may be chained only with the one after"]),
    (lambda source, mapped: mapped.disable_chaining(), ["map may be chained with neither"]),
    (lambda source, mapped: source.disable_chaining(), ["source may be chained with neither"]),
    (another_parallelism, ["the edge is rebalance, not forward", "parallelism 1 is not 2"]),
]  # fmt: skip


@pytest.mark.parametrize(("change", "reasons"), CONDITIONS)
def test_two_operators_are_chained_unless_a_condition_says_why_not(
    change: Callable[[DataStream, DataStream], object], reasons: list[str]
) -> None:
    """Flink: `StreamingJobGraphGeneratorTest`."""
    environment, source, mapped = source_and_map()
    change(source, mapped)
    graph = graph_of(environment)
    edge = graph.stream_graph.edges[0]
    assert reasons_not_to_chain(graph.stream_graph, edge, environment.config) == reasons
    assert is_chainable(graph.stream_graph, edge, environment.config) is not bool(reasons)
    assert len(graph.vertices) == (2 if reasons else 1)
    assert len(graph.edges) == (1 if reasons else 0)


def test_chaining_can_be_turned_off_for_the_whole_job() -> None:
    environment, _, _ = source_and_map(Config(chaining=False))
    assert names_of(environment) == ["source", "map"]
    edge = environment.graph.edges[0]
    assert reasons_not_to_chain(environment.graph, edge, environment.config) == ["chaining is turned off"]


@pytest.mark.parametrize("route", ["rebalance", "rescale", "shuffle", "broadcast", "to_first"])
def test_only_a_forward_edge_is_chained_also_between_one_subtask_and_one(route: str) -> None:
    environment = StreamEnvironment()
    getattr(environment.from_collection([1]), route)().map(abs)
    name = {"to_first": "global"}.get(route, route)
    graph = graph_of(environment)
    assert reasons_not_to_chain(graph.stream_graph, graph.stream_graph.edges[0], environment.config) == [
        f"the edge is {name}, not forward"
    ]
    assert [edge.partitioner.name for edge in graph.edges] == [name]


def test_a_keyed_edge_is_not_chained() -> None:
    environment = StreamEnvironment()
    environment.from_collection([1]).key_by(abs).sink(print)
    assert [edge.partitioner.name for edge in graph_of(environment).edges] == ["hash"]


def test_an_explicit_forward_edge_is_chained() -> None:
    environment = StreamEnvironment()
    environment.from_collection([1]).forward().map(abs)
    assert names_of(environment) == ["source → map"]


def test_an_operator_with_two_inputs_is_chained_to_neither() -> None:
    environment = StreamEnvironment()
    one, two = environment.from_collection([1], "one"), environment.from_collection([2], "two")
    one.union(two).map(abs)
    assert names_of(environment) == ["one", "two", "map"]
    graph = graph_of(environment)
    assert reasons_not_to_chain(graph.stream_graph, graph.stream_graph.edges[0], environment.config) == [
        "map has 2 input edges"
    ]


def test_all_reasons_are_given_not_only_the_first() -> None:
    environment, source, mapped = source_and_map(Config(chaining=False))
    source.disable_chaining()
    mapped.start_new_chain().set_parallelism(2).slot_sharing_group("gpu")
    graph = graph_of(environment)
    assert reasons_not_to_chain(graph.stream_graph, graph.stream_graph.edges[0], environment.config) == [
        "chaining is turned off",
        "slot-sharing groups differ: 'default' and 'gpu'",
        "map may be chained only with the one after",
        "source may be chained with neither",
        "the edge is rebalance, not forward",
        "parallelism 1 is not 2",
    ]


# -- the tasks that come out -----------------------------------------------------------------------


def test_a_chain_goes_on_through_every_edge_that_may_be_chained() -> None:
    environment = StreamEnvironment(parallelism=2)
    source = environment.from_collection([1])
    mapped = source.map(abs)
    kept = mapped.filter(abs)
    kept.sink(print, "left")
    kept.rebalance().sink(print, "right")
    mapped.map(abs, "aside").start_new_chain().sink(print, "third")
    graph = graph_of(environment)
    assert names_of(environment) == ["source", "map → filter → left", "right", "aside → third"]
    ends = [(graph.vertices[edge.source].name, graph.vertices[edge.target].name) for edge in graph.edges]
    assert ends == [
        ("source", "map → filter → left"),
        ("map → filter → left", "right"),
        ("map → filter → left", "aside → third"),
    ]
    assert [vertex.parallelism for vertex in graph.vertices.values()] == [1, 2, 2, 2]


def test_edges_of_a_vertex_are_those_that_cross_the_network() -> None:
    environment, _, mapped = source_and_map()
    mapped.rebalance().sink(print)
    graph = graph_of(environment)
    first, second = graph.vertices
    assert (len(graph.out_edges(first)), graph.in_edges(first)) == (1, [])
    assert graph.in_edges(second) == graph.out_edges(first)
    assert [edge.edge.source for edge in graph.in_edges(second)] == [mapped.node.id]


def test_explain_shows_the_tasks_and_a_verdict_for_every_edge() -> None:
    environment = StreamEnvironment()
    source = environment.from_collection([1])
    source.map(abs).filter(abs).set_parallelism(4).sink(print).disable_chaining().set_parallelism(4)
    assert environment.explain().splitlines() == [
        "3 tasks:",
        "  source → map  × 1",
        "  filter  × 4",
        "  sink  × 4",
        "edges:",
        "  source → map  chained",
        "  map → filter  not chained: the edge is rebalance, not forward; parallelism 1 is not 4",
        "  filter → sink  not chained: sink may be chained with neither",
        "exchanges:",
        "  map → filter  pipelined: a stream is read while it is written",
        "  filter → sink  pipelined: a stream is read while it is written",
        "slots: 4",
    ]


def test_explain_says_so_where_only_a_rule_of_the_job_kept_two_operators_apart() -> None:
    environment, _, _ = source_and_map()
    environment.use(is_chainable=lambda _graph, _edge, _config: False)
    assert "source → map  not chained: by the rule of this job" in environment.explain()


def test_a_row_of_operators_longer_than_calls_can_nest_is_cut_and_explain_says_why() -> None:
    environment = StreamEnvironment()
    stream = environment.from_collection([1])
    for number in range(2 * MAX_CHAINED_IN_A_ROW):
        stream = stream.map(abs, f"map {number}")
    stream.map(abs, "other branch of the same row")
    stream.sink(print)
    graph = graph_of(environment)
    assert [len(vertex.nodes) for vertex in graph.vertices.values()] == [MAX_CHAINED_IN_A_ROW, MAX_CHAINED_IN_A_ROW, 3]
    assert graph.explain().count("not chained: 64 operators in a row are enough for Python's calls") == 2


def test_explaining_a_job_does_not_change_it() -> None:
    environment, _, mapped = source_and_map()
    before = list(environment.graph.edges)
    environment.explain()
    assert environment.graph.edges == before
    mapped.set_parallelism(2)
    assert "the edge is rebalance" in environment.explain()
