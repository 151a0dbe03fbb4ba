"""Exercise 6.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from course.checks import drive_chains
from course.checks.chains import tell_graph
from course.checks.common import without_error
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.grading.rules import Finding
from refimpl.job.chaining import build_chains

__all__ = ["CHECK"]


def _graph(nodes: Sequence[int], edges: str, chained: str) -> list[list[Any]]:
    """A case written short: nodes, then `1-2 2-3`, all edges and those that may be chained."""
    pairs = [[[int(end) for end in pair.split("-")] for pair in text.split()] for text in (edges, chained)]
    return [["build", {"nodes": list(nodes), "edges": pairs[0], "chained": pairs[1]}]]


_LINE = " ".join(f"{each}-{each + 1}" for each in range(1, 16))
_BUILD_RULES: dict[str, list[list[Any]]] = {
    "A": [_graph([1], "", ""), _graph([1, 2], "1-2", "")],
    "B": [_graph([1, 2], "1-2", "1-2"), _graph([1, 2, 3], "1-2 2-3", "1-2 2-3"),
          _graph([1, 2, 3, 4, 5], "1-2 2-3 3-4 4-5", "1-2 2-3 3-4 4-5"),
          _graph([7001, 7002, 7003], "7001-7002 7002-7003", "7001-7002 7002-7003"),
          _graph(range(1, 17), _LINE, _LINE)],
    "C": [_graph([1, 2, 3], "1-2 2-3", "1-2"), _graph([1, 2, 3], "1-2 2-3", "2-3"),
          _graph([1, 2, 3, 4, 5, 6], "1-2 2-3 3-4 4-5 5-6", "1-2 3-4 4-5")],
    "D": [_graph([1, 2, 3], "1-2 1-3", "1-2 1-3"), _graph([1, 2, 3], "1-2 1-3", "1-2"),
          [*_graph([1, 2, 3], "1-2 2-3", "1-2"), *_graph([4, 5], "4-5", "4-5")],
          _graph([1, 2, 3, 4, 5], "1-2 1-3 2-4 3-5", "1-2 1-3 2-4 3-5"),
          _graph([1, 2, 3, 4, 5], "1-2 1-3 2-4 3-5", "1-3 2-4 3-5")],
    "E": [_graph([1, 2, 3], "1-3 2-3", ""), _graph([1, 2, 3, 4], "1-2 3-4", "1-2 3-4"),
          _graph([1, 2, 3, 4, 5], "1-2 3-4 2-5 4-5", "1-2 3-4"),
          _graph([1, 2, 3, 4, 5, 6], "1-3 2-3 3-4 4-5 5-6", "3-4 4-5 5-6")],
    "F": [_graph([2, 1], "2-1", "2-1"), _graph([7, 3, 5], "7-3 3-5", "7-3 3-5"),
          _graph([4, 3, 2, 1], "4-3 3-2 2-1", "4-3 2-1"),
          _graph([9, 1, 8, 2], "9-1 9-8 8-2", "9-1 9-8 8-2"), _graph([2, 1], "1-2", "1-2"),
          _graph([2, 1], "1-2", ""), _graph([3, 1, 2], "1-2 2-3", "1-2 2-3"),
          _graph([0, 1, 2], "0-1 1-2", "0-1 1-2"), _graph([0, 1, 2], "0-1 1-2", "1-2"),
          _graph([1, 0], "1-0", "1-0"),
          _graph([5, 4, 1, 3, 2], "1-2 2-3 2-4 3-5", "1-2 2-4 3-5")],
}  # fmt: skip


def _built_at_random(seed: int) -> Iterator[list[Any]]:
    generator, order = random.Random(f"sluice 6.2 {seed}"), random.Random(f"sluice 6.2 order {seed}")
    for _ in range(50):
        nodes = generator.sample(range(1, 30), generator.randint(1, 9))
        edges, chained = [], []
        for place, target in enumerate(nodes[1:], 1):
            sources = generator.sample(nodes[:place], min(place, generator.choice([0, 1, 1, 1, 1, 2])))
            edges += [[source, target] for source in sources]
            if len(sources) == 1 and generator.random() < 0.7:
                chained.append([sources[0], target])
        if order.random() < 0.4:  # the ones behind may be added first
            order.shuffle(nodes)
        yield [["build", {"nodes": nodes, "edges": edges, "chained": chained}]]


def _simpler_built(op: list[Any]) -> Iterator[list[Any]]:
    spec = op[1]
    for gone in spec["nodes"]:
        edges, chained = ([edge for edge in spec[key] if gone not in edge] for key in ("edges", "chained"))
        yield ["build", {"nodes": [each for each in spec["nodes"] if each != gone], "edges": edges, "chained": chained}]
    for gone in spec["edges"]:
        edges, chained = ([edge for edge in spec[key] if edge != gone] for key in ("edges", "chained"))
        yield ["build", {**spec, "edges": edges, "chained": chained}]


def _about_built(found: Difference) -> str:
    (got, want), spec = found.values, found.op[1]
    if found.field == "earlier":
        return "overwrites_earlier"
    if found.field == "graph":
        return "changes_graph"
    if isinstance(got, str):
        return "heads_only" if " to " in got else "no_chains"
    members = [member for _, each, _ in got for member in each]
    if len(members) != len(set(members)):
        return "twice_in_chains"
    if set(members) != set(spec["nodes"]):
        return "operators_missing" if set(members) < set(spec["nodes"]) else "operators_unknown"
    if any(not in_order for _, _, in_order in got):
        if [head for head, _, _ in got] == [head for head, _, _ in want]:
            return "out_of_order"
        return "wrong_head" if sorted(map(sorted, _sets(got))) == sorted(map(sorted, _sets(want))) else "pairs_only"
    if len(got) < len(want):
        return "joins_unchained"
    if found.rule == "F" and 0 in spec["nodes"]:
        return "zero_is_nothing"
    longest = max(len(each) for _, each, _ in got)
    if longest > 1 and _splits_branches(got, spec):
        return "splits_branches"
    return "splits_chains"


def _ending_built(found: Finding, op: Sequence[Any]) -> Finding:
    """A look for an operator that comes later, where the graph holds one before the one it reads from."""
    spec = op[1]
    is_of_order = not _is_in_order(spec) and found.values["text"] in map(str, spec["nodes"])
    return without_error(found, "goes_as_added") if is_of_order else found


def _is_in_order(spec: Mapping[str, Any]) -> bool:
    """Whether each operator was added behind those it reads from."""
    return all(spec["nodes"].index(source) < spec["nodes"].index(target) for source, target in spec["edges"])


def _sets(chains: Sequence[Any]) -> list[list[int]]:
    return [list(each) for _, each, _ in chains]


def _splits_branches(got: Sequence[Any], spec: Mapping[str, Any]) -> bool:
    """Whether all that is apart and should not be hangs on an operator with several chained outputs."""
    chain_of = {member: head for head, each, _ in got for member in each}
    apart = [edge for edge in spec["chained"] if chain_of[edge[0]] != chain_of[edge[1]]]
    branching = {edge[0] for edge in spec["chained"] if sum(edge[0] == other[0] for other in spec["chained"]) > 1}
    return bool(apart) and all(edge[0] in branching for edge in apart)


def _tell_built(op: Sequence[Any]) -> str:
    spec = op[1]
    if not spec["edges"]:
        return phrase("alone", "6.2", nodes=", ".join(map(str, spec["nodes"])))
    pairs = [
        f"{source}→{target}" if [source, target] in spec["chained"] else f"{source}⇢{target}"
        for source, target in spec["edges"]
    ]
    lonely = [str(each) for each in spec["nodes"] if not any(each in edge for edge in spec["edges"])]
    told = phrase("edges", "6.2", pairs=" ".join([*pairs, *lonely]))
    return told if _is_in_order(spec) else told + phrase("added", "6.2", nodes=", ".join(map(str, spec["nodes"])))


def _tell_chains(name: str, value: Any) -> str:
    if name == "graph":
        return tell_graph(value)
    if name == "earlier":
        return "" if value is None else phrase("earlier", "6.2")
    if isinstance(value, str):
        return phrase("of_type", "6.2", kind=value[1:])
    return "  ".join(f"{head}: [{', '.join(map(str, each))}]" for head, each, _ in value) or phrase("no_chain", "6.2")


CHECK = TranscriptCheck(
    "6.2", build_chains, drive_chains, _BUILD_RULES, _about_built, Seeded("G", _built_at_random, _simpler_built),
    words=FieldWords("6.2", _tell_built, _tell_chains), ending=_ending_built,
)  # fmt: skip
