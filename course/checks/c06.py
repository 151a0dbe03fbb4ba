"""Exercises of lesson 6: when two operators share a task, the chains that follow, and an output that copies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from course.checks import drive_c06
from course.checks.scenes import Difference, ScenesCheck, Seeded
from course.messages import phrase
from refimpl.job.chaining import build_chains, is_chainable
from refimpl.task.outputs import CopyingChainingOutput

__all__ = ["CHECKS"]


def _say(exercise: str, key: str, **values: object) -> str:
    return phrase(key, exercise, **values)


# -- 6.1: is_chainable -----------------------------------------------------------------------------

_OF_ASKED = ("answer", "graph")
_WAYS = ("rebalance", "rescale", "shuffle", "global", "broadcast", "hash")


def _asked(*specs: Mapping[str, Any]) -> list[list[Any]]:
    return [[["ask", dict(spec)]] for spec in specs]


_ASK_RULES: dict[str, tuple[Sequence[str], list[list[Any]]]] = {
    "A": (_OF_ASKED, _asked({}, {"parallelism": [1, 1]}, {"parallelism": [8, 8]}, {"parallelism": [1000, 1000]},
                              {"sources": 1}, {"sources": 2}, {"sinks": 1}, {"sources": 1, "sinks": 2},
                              {"last": True}, {"ids": [42, 7], "last": True}, {"sources": 2, "last": True},
                              {"sinks": 1, "last": True}, {"ids": [0, 1]}, {"ids": [1, 0]})),
    "B": (_OF_ASKED, _asked({"way": "hash"}, *({"way": way} for way in _WAYS),
                              *({"way": way, "parallelism": [1, 1]} for way in _WAYS))),
    "C": (_OF_ASKED, _asked({"parallelism": [1, 2]}, {"parallelism": [4, 2]})),
    "D": (_OF_ASKED, _asked({"inputs": 2}, {"inputs": 3}, {"outputs": 2}, {"outputs": 3},
                              {"parallel": 2}, {"parallel": 3, "sources": 1}, {"inputs": 2, "parallel": 2},
                              {"inputs": 2, "last": True}, {"outputs": 2, "sinks": 1})),
    "E": (_OF_ASKED, _asked({"down": "NEVER"}, {"up": "NEVER"}, {"down": "HEAD"}, {"up": "HEAD"},
                              {"up": "HEAD", "down": "HEAD"}, {"up": "NEVER", "down": "NEVER"},
                              {"up": "HEAD", "last": True}, {"up": "HEAD", "sources": 1},
                              {"down": "HEAD", "last": True})),
    "F": (_OF_ASKED, _asked({"groups": ["default", "gpu"]}, {"groups": ["gpu", "default"]},
                              {"groups": ["gpu", "gpu"]})),
    "G": (_OF_ASKED, _asked({"chaining": False}, {"chaining": False, "parallelism": [1, 1]})),
    "H": (_OF_ASKED, _asked({"tag": "late"}, {"tag": "late", "way": "hash"}, {"tag": "late", "outputs": 2})),
}  # fmt: skip


def _asked_at_random(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 6.1 {seed}")
    usual: dict[str, list[Any]] = {
        "chaining": [True], "inputs": [1], "outputs": [1, 2], "groups": [["default", "default"], ["a", "a"]],
        "up": ["ALWAYS", "HEAD"], "down": ["ALWAYS"], "way": ["forward"], "parallelism": [[1, 1], [3, 3]],
        "tag": ["", "late"], "sources": [0, 0, 1, 2], "sinks": [0, 0, 1, 2], "last": [False, True],
        "ids": [[1, 2], [42, 7]],
    }  # fmt: skip
    other: dict[str, list[Any]] = {
        "chaining": [False], "inputs": [2, 3], "groups": [["a", "b"]], "up": ["NEVER"], "down": ["HEAD", "NEVER"],
        "way": list(_WAYS), "parallelism": [[1, 3], [3, 1]], "parallel": [2, 3],
    }  # fmt: skip
    for _ in range(80):
        spec = {key: generator.choice(values) for key, values in usual.items()}
        for key in generator.sample(sorted(other), generator.choice([0, 0, 1, 1, 2])):
            spec[key] = generator.choice(other[key])
        yield [["ask", spec]]


def _simpler_asked(op: list[Any]) -> Iterator[list[Any]]:
    for key in op[1]:
        yield ["ask", {name: value for name, value in op[1].items() if name != key}]


_BROKEN: dict[str, Callable[[dict[str, Any]], bool]] = {
    "chaining": lambda spec: not spec.get("chaining", True),
    "inputs": lambda spec: spec.get("inputs", 1) > 1,
    "parallel": lambda spec: spec.get("parallel", 1) > 1,
    "groups": lambda spec: len(set(spec.get("groups", ["", ""]))) > 1,
    "downstream": lambda spec: spec.get("down", "ALWAYS") != "ALWAYS",
    "upstream": lambda spec: spec.get("up") == "NEVER",
    "way": lambda spec: spec.get("way", "forward") != "forward",
    "parallelism": lambda spec: len(set(spec.get("parallelism", [2, 2]))) > 1,
}


def _about_asked(found: Difference) -> str:
    spec = found.op[1]
    if found.field == "graph":
        return "changes_graph"
    if str(found.got).startswith("?"):
        return "no_answer" if found.got == "?NoneType" else "no_truth"
    if not found.want:
        broken = [name for name, is_broken in _BROKEN.items() if is_broken(spec)]
        if broken == ["downstream"]:
            return "ignores_downstream_head" if spec["down"] == "HEAD" else "ignores_downstream_never"
        if broken == ["way"] and len(set(spec.get("parallelism", [2, 2]))) == 1:
            return "ignores_way_of_one" if spec.get("parallelism") == [1, 1] else "ignores_way"
        return f"ignores_{broken[0]}" if len(broken) == 1 else "different"
    if spec.get("last"):
        return "takes_the_first"
    if 0 in spec.get("ids", ()):
        return "zero_is_nothing"
    for key in ("sources", "sinks"):
        if spec.get(key):
            return f"forbids_{key}"
    if spec.get("outputs", 1) > 1:
        return "forbids_outputs"
    if spec.get("up") == "HEAD":
        return "forbids_upstream_head"
    if spec.get("tag"):
        return "forbids_tag"
    if spec.get("groups", ["default"])[0] != "default":
        return "forbids_groups"
    if min(spec.get("parallelism", [2])) > 256:
        return "forbids_many"
    return "forbids_one" if spec.get("parallelism") == [1, 1] else "forbids_all"


def _tell_asked(op: Sequence[Any]) -> str:
    spec = op[1]
    ups, downs = spec.get("parallelism", [2, 2])
    parts = [_say("6.1", "edge", way=spec.get("way", "forward"), ups=ups, downs=downs)]
    parts += [_say("6.1", key, number=spec[key]) for key in ("inputs", "outputs", "parallel") if spec.get(key, 1) > 1]
    parts += [_say("6.1", key, number=spec[key]) for key in ("sources", "sinks") if spec.get(key)]
    parts += [_say("6.1", key, strategy=spec[key]) for key in ("up", "down") if spec.get(key, "ALWAYS") != "ALWAYS"]
    if spec.get("groups", ["default", "default"]) != ["default", "default"]:
        parts.append(_say("6.1", "groups", one=spec["groups"][0], other=spec["groups"][1]))
    if spec.get("tag"):
        parts.append(_say("6.1", "tag"))
    if not spec.get("chaining", True):
        parts.append(_say("6.1", "chaining"))
    if list(spec.get("ids", [1, 2])) != [1, 2]:
        parts.append(_say("6.1", "ids", one=spec["ids"][0], other=spec["ids"][1]))
    if spec.get("last"):
        parts.append(_say("6.1", "last"))
    return ", ".join(parts)


def _tell_graph(value: Any) -> str:
    """What became of the graph of the one who asks, if it is not as it was."""
    return "" if value is None else phrase("graph_changed", "6.1", nodes=value[0], edges=value[1])


def _tell_answer(name: str, value: Any) -> str:
    if name == "graph":
        return _tell_graph(value)
    if isinstance(value, bool):
        return _say("6.1", "yes" if value else "no")
    return _say("6.1", "of_type", kind=str(value)[1:])


# -- 6.2: build_chains -----------------------------------------------------------------------------

_OF_BUILT = ("chains", "graph")


def _graph(nodes: Sequence[int], edges: str, chained: str) -> list[list[Any]]:
    """A case written short: nodes, then `1-2 2-3`, all edges and those that may be chained."""
    pairs = [[[int(end) for end in pair.split("-")] for pair in text.split()] for text in (edges, chained)]
    return [["build", {"nodes": list(nodes), "edges": pairs[0], "chained": pairs[1]}]]


_LINE = " ".join(f"{each}-{each + 1}" for each in range(1, 16))
_BUILD_RULES: dict[str, tuple[Sequence[str], list[list[Any]]]] = {
    "A": (_OF_BUILT, [_graph([1], "", ""), _graph([1, 2], "1-2", "")]),
    "B": (_OF_BUILT, [_graph([1, 2], "1-2", "1-2"), _graph([1, 2, 3], "1-2 2-3", "1-2 2-3"),
                        _graph([1, 2, 3, 4, 5], "1-2 2-3 3-4 4-5", "1-2 2-3 3-4 4-5"),
                        _graph([7001, 7002, 7003], "7001-7002 7002-7003", "7001-7002 7002-7003"),
                        _graph(range(1, 17), _LINE, _LINE)]),
    "C": (_OF_BUILT, [_graph([1, 2, 3], "1-2 2-3", "1-2"), _graph([1, 2, 3], "1-2 2-3", "2-3"),
                        _graph([1, 2, 3, 4, 5, 6], "1-2 2-3 3-4 4-5 5-6", "1-2 3-4 4-5")]),
    "D": (_OF_BUILT, [_graph([1, 2, 3], "1-2 1-3", "1-2 1-3"), _graph([1, 2, 3], "1-2 1-3", "1-2"),
                        _graph([1, 2, 3, 4, 5], "1-2 1-3 2-4 3-5", "1-2 1-3 2-4 3-5"),
                        _graph([1, 2, 3, 4, 5], "1-2 1-3 2-4 3-5", "1-3 2-4 3-5")]),
    "E": (_OF_BUILT, [_graph([1, 2, 3], "1-3 2-3", ""), _graph([1, 2, 3, 4], "1-2 3-4", "1-2 3-4"),
                        _graph([1, 2, 3, 4, 5], "1-2 3-4 2-5 4-5", "1-2 3-4"),
                        _graph([1, 2, 3, 4, 5, 6], "1-3 2-3 3-4 4-5 5-6", "3-4 4-5 5-6")]),
    "F": (_OF_BUILT, [_graph([2, 1], "2-1", "2-1"), _graph([7, 3, 5], "7-3 3-5", "7-3 3-5"),
                        _graph([4, 3, 2, 1], "4-3 3-2 2-1", "4-3 2-1"),
                        _graph([9, 1, 8, 2], "9-1 9-8 8-2", "9-1 9-8 8-2"), _graph([2, 1], "1-2", "1-2"),
                        _graph([2, 1], "1-2", ""), _graph([3, 1, 2], "1-2 2-3", "1-2 2-3"),
                        _graph([0, 1, 2], "0-1 1-2", "0-1 1-2"), _graph([0, 1, 2], "0-1 1-2", "1-2"),
                        _graph([1, 0], "1-0", "1-0"),
                        _graph([5, 4, 1, 3, 2], "1-2 2-3 2-4 3-5", "1-2 2-4 3-5")]),
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
    got, want, spec = found.got, found.want, found.op[1]
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


def _ending_built(op: Sequence[Any], error: str) -> str:
    """A look for an operator that comes later, where the graph holds one before the one it reads from."""
    spec = op[1]
    return "goes_as_added" if not _is_in_order(spec) and error in map(str, spec["nodes"]) else ""


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
        return _say("6.2", "alone", nodes=", ".join(map(str, spec["nodes"])))
    pairs = [
        f"{source}→{target}" if [source, target] in spec["chained"] else f"{source}⇢{target}"
        for source, target in spec["edges"]
    ]
    lonely = [str(each) for each in spec["nodes"] if not any(each in edge for edge in spec["edges"])]
    told = _say("6.2", "edges", pairs=" ".join([*pairs, *lonely]))
    return told if _is_in_order(spec) else told + _say("6.2", "added", nodes=", ".join(map(str, spec["nodes"])))


def _tell_chains(name: str, value: Any) -> str:
    if name == "graph":
        return _tell_graph(value)
    if isinstance(value, str):
        return _say("6.2", "of_type", kind=value[1:])
    return "  ".join(f"{head}: [{', '.join(map(str, each))}]" for head, each, _ in value) or _say("6.2", "no_chain")


# -- 6.3: a copying output -------------------------------------------------------------------------

_FLIGHT = {"origin": "JFK", "delays": [4, -2]}


def _sent(*ops: list[Any], tag: str = "") -> list[list[Any]]:
    return [["new", {"tag": tag} if tag else {}], *ops]


_SEND_RULES: dict[str, tuple[Sequence[str], list[list[Any]]]] = {
    "A": (("given", "answer", "passed"), [
        _sent(["collect", 5, None]), _sent(["collect", {"a": 1}, 7], ["collect", [2], 8]),
        _sent(["watermark", 7]), _sent(["idle"], ["watermark", 9], ["active"], ["watermark", 12]),
        _sent(["watermark", 7], ["idle"], tag="late"),
        _sent(["another", {}], ["collect", 5, 7], ["watermark", 8]),
        _sent(["another", {"tag": "late"}], ["collect", 5, 7])]),
    "B": (("kept", "first"), [_sent(["collect", {"a": 1}, 7], ["change"]), _sent(["collect", _FLIGHT, 7], ["change"]),
                      _sent(["collect", [[1], [2]], None], ["change"]),
                      _sent(["collect", 5, 1], ["collect", 6, 2])]),
    "C": (("time",), [_sent(["collect", 5, 1000]), _sent(["collect", 5, None]), _sent(["collect", 5, 0]),
                      _sent(["collect", 5, 1], ["collect", 6, None], ["collect", 7, 3]),
                      _sent(["collect", 5, -1])]),
    "D": (("given", "kept", "answer", "passed"), [
        _sent(["side", "late", 5, 1]), _sent(["collect", 5, 1], tag="late"),
        _sent(["own_side", 5, 1], tag="late"),
        _sent(["side", "late", [5], 1], tag="late"),
        _sent(["side", "early", 5, 1], tag="late"), _sent(["side", "later", 5, 1], tag="late"),
        _sent(["side", "late", _FLIGHT, 1], ["change"], tag="late"),
        _sent(["side", "late", [1], 1], ["side", "early", [2], 2], ["side", "late", [3], 3], tag="late"),
        _sent(["another", {"tag": "early"}], ["side", "late", 5, 1], tag="late"),
        _sent(["another", {}], ["side", "late", 5, 1], ["collect", 5, 1], tag="late")]),
    "E": (("time",), [_sent(["side", "late", 5, 44], tag="late"), _sent(["side", "late", 5, 0], tag="late"),
                      _sent(["side", "late", 5, None], tag="late"), _sent(["side", "late", 5, -1], tag="late")]),
    "F": (("copies",), [_sent(["collect", [1], 1]), _sent(["collect", 1, 1], ["collect", "a", 1]),
                        _sent(["side", "late", [1], 1], tag="late"), _sent(["side", "early", [1], 1], tag="late"),
                        _sent(["side", "later", [1], 1], tag="late"), _sent(["collect", [1], 1], tag="late"),
                        _sent(["side", "late", [1], 1]),
                       _sent(["another", {}], ["collect", [1], 1]),
                       _sent(["another", {}], ["side", "late", [1], 1], tag="late")]),
}  # fmt: skip


def _sent_at_random(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 6.3 {seed}")
    values = [5, "JFK", [1, [2]], {"a": 1}, _FLIGHT, None]
    for _ in range(40):
        ops: list[list[Any]] = []
        for _ in range(generator.randint(1, 8)):
            name = generator.choice(["collect", "collect", "side", "change"])
            time = generator.choice([None, 0, 7, 1_357_034_400_000])
            given = [generator.choice(values), time]
            made: dict[str, list[Any]] = {
                "collect": ["collect", *given],
                "side": ["side", generator.choice(["late", "early"]), *given],
                "change": ["change"],
            }
            ops.append(made[name])
        yield _sent(*ops, tag=generator.choice(["", "late"]))


_SIDES = ("side", "own_side")
_OF_THE_BASE = ("watermark", "idle", "active")


def _ending_sent(op: Sequence[Any], error: str) -> str:
    """The base class does these; where it stops, it was not made ready."""
    return "base_not_ready" if op[0] in _OF_THE_BASE and error != "6.3" else ""


def _about_sent(found: Difference) -> str:
    got, want, name = found.got, found.want, found.op[0]
    if any(op[0] == "another" for op in found.before):
        return "kept_in_the_class"
    if found.field == "answer":
        return "collect_answers"
    if found.field == "passed":
        return "passes_nothing_else_on"
    if found.field == "given":
        return _about_given(found)
    if found.field == "first":
        return "record_used_again"
    if found.field == "time":
        if name in _SIDES:
            return "side_time_lost"
        zero = any(each == 0 for each in want)
        return "zero_time_lost" if zero and None in got else "time_lost"
    if found.field == "copies":
        if got < want:
            return "copies_itself"
        return "copies_twice" if want else "copies_in_vain"
    return _about_kept(found)


def _about_given(found: Difference) -> str:
    got, want, is_side = found.got, found.want, found.op[0] in _SIDES
    if not want:
        if not is_side:
            return "main_into_side"
        return "side_into_main" if not found.before[0][1].get("tag") else "other_side_delivered"
    if not got:
        if found.op[0] == "own_side":  # with the tag it was made with it is no matter of comparing
            return "side_by_collect"
        return "side_dropped" if is_side else "nothing_given"
    if len(got) > len(want):
        return "given_twice"
    return "value_without_record" if str(got[0]).startswith("?") else "value_differs"


def _about_kept(found: Difference) -> str:
    """The sender's own record has changed: at the hand-over, or when the one behind changed what it was given."""
    got, want = found.got, found.want
    if got[:2] == want[:2]:
        return "values_exchanged"
    if found.op[0] != "change":
        return "changes_what_was_sent"
    if got[1] != want[1]:
        return "record_shared"
    side = "side_" if found.before[-1][0] in _SIDES else ""
    is_outermost = str(got[0]).endswith(("'changed': True}", "'changed']"))
    return f"{side}value_shared" if is_outermost else f"{side}copy_too_shallow"


def _tell_sent(op: Sequence[Any]) -> str:
    name = op[0]
    if name == "new":
        return _say("6.3", "side_output", tag=op[1]["tag"]) if op[1].get("tag") else ""
    if name in ("change", "idle", "active"):
        return _say("6.3", name)
    if name == "watermark":
        return _say("6.3", "watermark", time=op[1])
    if name == "another":
        return _say("6.3", "another_side", tag=op[1]["tag"]) if op[1].get("tag") else _say("6.3", "another")
    if name == "own_side":
        return _say("6.3", "own_side", value=repr(op[1]), time=op[2])
    if name == "side":
        return _say("6.3", "side", tag=op[1], value=repr(op[2]), time=op[3])
    return _say("6.3", "collect", value=repr(op[1]), time=op[2])


def _tell_given(name: str, value: Any) -> str:
    if name == "answer":
        return "" if value is None else _say("6.3", "answer", kind=str(value)[1:])
    if name == "kept":
        told = "" if value is None else _say("6.3", "kept", value=value[0], time=value[1])
        return told + _say("6.3", "exchanged") if value is not None and len(value) > 2 else told
    if name == "passed":
        return _say("6.3", "passed", value=", ".join(map(str, value))) if value else ""
    if isinstance(value, list):
        parts = [_say("6.3", "of_type", kind=each[1:]) if str(each).startswith("?") else str(each) for each in value]
        value = ", ".join(parts) or _say("6.3", "no_value")
    return _say("6.3", name, value=value)


_CALLED = {
    "new": "__init__", "another": "__init__", "side": "collect_side", "own_side": "collect_side",
    "watermark": "emit_watermark", "idle": "emit_status", "active": "emit_status",
}  # fmt: skip


CHECKS = {
    "6.1": ScenesCheck(
        "6.1", is_chainable, drive_c06, _ASK_RULES, _about_asked, _tell_asked, _tell_answer,
        Seeded("I", _asked_at_random, _simpler_asked), call=lambda _name: "is_chainable",
    ),
    "6.2": ScenesCheck(
        "6.2", build_chains, drive_c06, _BUILD_RULES, _about_built, _tell_built, _tell_chains,
        Seeded("G", _built_at_random, _simpler_built), ending=_ending_built, call=lambda _name: "build_chains",
    ),
    "6.3": ScenesCheck(
        "6.3", CopyingChainingOutput, drive_c06, _SEND_RULES, _about_sent, _tell_sent, _tell_given,
        Seeded("G", _sent_at_random, is_valid=lambda ops: bool(ops) and ops[0][0] == "new"),
        ending=_ending_sent, call=lambda name: _CALLED.get(name, name),
    ),
}  # fmt: skip
