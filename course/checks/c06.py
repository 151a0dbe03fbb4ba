"""Exercises of lesson 6: when two operators share a task, the chains that follow, and an output that copies."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
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

_WAYS = ("rebalance", "rescale", "shuffle", "global", "broadcast", "hash")


def _asked(*specs: Mapping[str, Any]) -> list[list[Any]]:
    return [[["ask", dict(spec)]] for spec in specs]


_ASK_RULES: dict[str, tuple[Sequence[str], list[list[Any]]]] = {
    "A": (("answer",), _asked({}, {"parallelism": [1, 1]}, {"parallelism": [8, 8]})),
    "B": (("answer",), _asked({"way": "hash"}, *({"way": way} for way in _WAYS),
                              *({"way": way, "parallelism": [1, 1]} for way in _WAYS))),
    "C": (("answer",), _asked({"parallelism": [1, 2]}, {"parallelism": [4, 2]})),
    "D": (("answer",), _asked({"inputs": 2}, {"inputs": 3}, {"outputs": 2}, {"outputs": 3})),
    "E": (("answer",), _asked({"down": "NEVER"}, {"up": "NEVER"}, {"down": "HEAD"}, {"up": "HEAD"},
                              {"up": "HEAD", "down": "HEAD"}, {"up": "NEVER", "down": "NEVER"})),
    "F": (("answer",), _asked({"groups": ["default", "gpu"]}, {"groups": ["gpu", "default"]},
                              {"groups": ["gpu", "gpu"]})),
    "G": (("answer",), _asked({"chaining": False}, {"chaining": False, "parallelism": [1, 1]})),
    "H": (("answer",), _asked({"tag": "late"}, {"tag": "late", "way": "hash"}, {"tag": "late", "outputs": 2})),
}  # fmt: skip


def _asked_at_random(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 6.1 {seed}")
    usual = {"chaining": [True], "inputs": [1], "outputs": [1, 2], "groups": [["default", "default"], ["a", "a"]],
             "up": ["ALWAYS", "HEAD"], "down": ["ALWAYS"], "way": ["forward"], "parallelism": [[1, 1], [3, 3]],
             "tag": ["", "late"]}  # fmt: skip
    other = {"chaining": [False], "inputs": [2, 3], "groups": [["a", "b"]], "up": ["NEVER"], "down": ["HEAD", "NEVER"],
             "way": list(_WAYS), "parallelism": [[1, 3], [3, 1]]}  # fmt: skip
    for _ in range(80):
        spec = {key: generator.choice(values) for key, values in usual.items()}
        for key in generator.sample(sorted(other), generator.choice([0, 0, 1, 1, 2])):
            spec[key] = generator.choice(other[key])
        yield [["ask", spec]]


def _simpler_asked(op: list[Any]) -> Iterator[list[Any]]:
    for key in op[1]:
        yield ["ask", {name: value for name, value in op[1].items() if name != key}]


_BROKEN = {
    "chaining": lambda spec: not spec.get("chaining", True),
    "inputs": lambda spec: spec.get("inputs", 1) > 1,
    "groups": lambda spec: len(set(spec.get("groups", ["", ""]))) > 1,
    "downstream": lambda spec: spec.get("down", "ALWAYS") != "ALWAYS",
    "upstream": lambda spec: spec.get("up") == "NEVER",
    "way": lambda spec: spec.get("way", "forward") != "forward",
    "parallelism": lambda spec: len(set(spec.get("parallelism", [2, 2]))) > 1,
}


def _about_asked(found: Difference) -> str:
    spec = found.op[1]
    if str(found.got).startswith("?"):
        return "no_answer"
    if not found.want:
        broken = [name for name, is_broken in _BROKEN.items() if is_broken(spec)]
        if broken == ["downstream"]:
            return "ignores_downstream_head" if spec["down"] == "HEAD" else "ignores_downstream_never"
        if broken == ["way"] and len(set(spec.get("parallelism", [2, 2]))) == 1:
            return "ignores_way_of_one" if spec.get("parallelism") == [1, 1] else "ignores_way"
        return f"ignores_{broken[0]}" if len(broken) == 1 else "different"
    if spec.get("outputs", 1) > 1:
        return "forbids_outputs"
    if spec.get("up") == "HEAD":
        return "forbids_upstream_head"
    if spec.get("tag"):
        return "forbids_tag"
    if spec.get("groups", ["default"])[0] != "default":
        return "forbids_groups"
    return "forbids_one" if spec.get("parallelism") == [1, 1] else "forbids_all"


def _tell_asked(op: Sequence[Any]) -> str:
    spec = op[1]
    ups, downs = spec.get("parallelism", [2, 2])
    parts = [_say("6.1", "edge", way=spec.get("way", "forward"), ups=ups, downs=downs)]
    parts += [_say("6.1", key, number=spec[key]) for key in ("inputs", "outputs") if spec.get(key, 1) > 1]
    parts += [_say("6.1", key, strategy=spec[key]) for key in ("up", "down") if spec.get(key, "ALWAYS") != "ALWAYS"]
    if spec.get("groups", ["default", "default"]) != ["default", "default"]:
        parts.append(_say("6.1", "groups", one=spec["groups"][0], other=spec["groups"][1]))
    if spec.get("tag"):
        parts.append(_say("6.1", "tag"))
    if not spec.get("chaining", True):
        parts.append(_say("6.1", "chaining"))
    return ", ".join(parts)


def _tell_answer(_name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _say("6.1", "yes" if value else "no")
    return _say("6.1", "of_type", kind=str(value)[1:])


# -- 6.2: build_chains -----------------------------------------------------------------------------


def _graph(nodes: Sequence[int], edges: str, chained: str) -> list[list[Any]]:
    """A case written short: nodes, then `1-2 2-3`, all edges and those that may be chained."""
    pairs = [[[int(end) for end in pair.split("-")] for pair in text.split()] for text in (edges, chained)]
    return [["build", {"nodes": list(nodes), "edges": pairs[0], "chained": pairs[1]}]]


_BUILD_RULES: dict[str, tuple[Sequence[str], list[list[Any]]]] = {
    "A": (("chains",), [_graph([1], "", ""), _graph([1, 2], "1-2", "")]),
    "B": (("chains",), [_graph([1, 2], "1-2", "1-2"), _graph([1, 2, 3], "1-2 2-3", "1-2 2-3"),
                        _graph([1, 2, 3, 4, 5], "1-2 2-3 3-4 4-5", "1-2 2-3 3-4 4-5")]),
    "C": (("chains",), [_graph([1, 2, 3], "1-2 2-3", "1-2"), _graph([1, 2, 3], "1-2 2-3", "2-3"),
                        _graph([1, 2, 3, 4, 5, 6], "1-2 2-3 3-4 4-5 5-6", "1-2 3-4 4-5")]),
    "D": (("chains",), [_graph([1, 2, 3], "1-2 1-3", "1-2 1-3"), _graph([1, 2, 3], "1-2 1-3", "1-2"),
                        _graph([1, 2, 3, 4, 5], "1-2 1-3 2-4 3-5", "1-2 1-3 2-4 3-5"),
                        _graph([1, 2, 3, 4, 5], "1-2 1-3 2-4 3-5", "1-3 2-4 3-5")]),
    "E": (("chains",), [_graph([1, 2, 3], "1-3 2-3", ""), _graph([1, 2, 3, 4], "1-2 3-4", "1-2 3-4"),
                        _graph([1, 2, 3, 4, 5], "1-2 3-4 2-5 4-5", "1-2 3-4"),
                        _graph([1, 2, 3, 4, 5, 6], "1-3 2-3 3-4 4-5 5-6", "3-4 4-5 5-6")]),
    "F": (("chains",), [_graph([2, 1], "2-1", "2-1"), _graph([7, 3, 5], "7-3 3-5", "7-3 3-5"),
                        _graph([4, 3, 2, 1], "4-3 3-2 2-1", "4-3 2-1"),
                        _graph([9, 1, 8, 2], "9-1 9-8 8-2", "9-1 9-8 8-2")]),
}  # fmt: skip


def _built_at_random(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 6.2 {seed}")
    for _ in range(50):
        nodes = generator.sample(range(1, 30), generator.randint(1, 9))
        edges, chained = [], []
        for place, target in enumerate(nodes[1:], 1):
            sources = generator.sample(nodes[:place], min(place, generator.choice([0, 1, 1, 1, 1, 2])))
            edges += [[source, target] for source in sources]
            if len(sources) == 1 and generator.random() < 0.7:
                chained.append([sources[0], target])
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
    longest = max(len(each) for _, each, _ in got)
    if longest > 1 and _splits_branches(got, spec):
        return "splits_branches"
    return "splits_chains"


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
    pairs = [f"{source}→{target}" if [source, target] in spec["chained"] else f"{source}⇢{target}"
             for source, target in spec["edges"]]  # fmt: skip
    lonely = [str(each) for each in spec["nodes"] if not any(each in edge for edge in spec["edges"])]
    return _say("6.2", "edges", pairs=" ".join([*pairs, *lonely]))


def _tell_chains(_name: str, value: Any) -> str:
    if isinstance(value, str):
        return _say("6.2", "of_type", kind=value[1:])
    return "  ".join(f"{head}: [{', '.join(map(str, each))}]" for head, each, _ in value) or _say("6.2", "no_chain")


# -- 6.3: a copying output -------------------------------------------------------------------------

_FLIGHT = {"origin": "JFK", "delays": [4, -2]}


def _sent(*ops: list[Any], tag: str = "") -> list[list[Any]]:
    return [["new", {"tag": tag} if tag else {}], *ops]


_SEND_RULES: dict[str, tuple[Sequence[str], list[list[Any]]]] = {
    "A": (("given", "answer"), [_sent(["collect", 5, None]), _sent(["collect", {"a": 1}, 7], ["collect", [2], 8])]),
    "B": (("kept", "first"), [_sent(["collect", {"a": 1}, 7], ["change"]), _sent(["collect", _FLIGHT, 7], ["change"]),
                      _sent(["collect", [[1], [2]], None], ["change"]),
                      _sent(["collect", 5, 1], ["collect", 6, 2])]),
    "C": (("time",), [_sent(["collect", 5, 1000]), _sent(["collect", 5, None]), _sent(["collect", 5, 0]),
                      _sent(["collect", 5, 1], ["collect", 6, None], ["collect", 7, 3])]),
    "D": (("given", "kept", "answer"), [
        _sent(["side", "late", 5, 1]), _sent(["collect", 5, 1], tag="late"),
        _sent(["side", "late", [5], 1], tag="late"),
        _sent(["side", "early", 5, 1], tag="late"), _sent(["side", "late", _FLIGHT, 1], ["change"], tag="late"),
        _sent(["side", "late", [1], 1], ["side", "early", [2], 2], ["side", "late", [3], 3], tag="late")]),
    "E": (("time",), [_sent(["side", "late", 5, 44], tag="late"), _sent(["side", "late", 5, 0], tag="late"),
                      _sent(["side", "late", 5, None], tag="late")]),
    "F": (("copies",), [_sent(["collect", [1], 1]), _sent(["collect", 1, 1], ["collect", "a", 1]),
                        _sent(["side", "late", [1], 1], tag="late"), _sent(["side", "early", [1], 1], tag="late"),
                        _sent(["collect", [1], 1], tag="late"), _sent(["side", "late", [1], 1])]),
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
            ops.append({"collect": ["collect", *given], "side": ["side", generator.choice(["late", "early"]), *given],
                        "change": ["change"]}[name])  # fmt: skip
        yield _sent(*ops, tag=generator.choice(["", "late"]))


def _about_sent(found: Difference) -> str:
    got, want, name = found.got, found.want, found.op[0]
    if found.field == "answer":
        return "collect_answers"
    if found.field == "given":
        return _about_given(found)
    if found.field == "first":
        return "record_used_again"
    if found.field == "time":
        if name == "side":
            return "side_time_lost"
        zero = any(each == 0 for each in want)
        return "zero_time_lost" if zero and None in got else "time_lost"
    if found.field == "copies":
        if got < want:
            return "copies_itself"
        return "copies_twice" if want else "copies_in_vain"
    return _about_kept(found)


def _about_given(found: Difference) -> str:
    got, want, is_side = found.got, found.want, found.op[0] == "side"
    if not want:
        if not is_side:
            return "main_into_side"
        return "side_into_main" if not found.before[0][1].get("tag") else "other_side_delivered"
    if not got:
        return "side_dropped" if is_side else "nothing_given"
    if len(got) > len(want):
        return "given_twice"
    return "value_without_record" if str(got[0]).startswith("?") else "value_differs"


def _about_kept(found: Difference) -> str:
    """The sender's own record has changed: at the hand-over, or when the one behind changed what it was given."""
    if found.op[0] != "change":
        return "changes_what_was_sent"
    got, want = found.got, found.want
    if got[1] != want[1]:
        return "record_shared"
    side = "side_" if found.before[-1][0] == "side" else ""
    is_outermost = str(got[0]).endswith(("'changed': True}", "'changed']"))
    return f"{side}value_shared" if is_outermost else f"{side}copy_too_shallow"


def _tell_sent(op: Sequence[Any]) -> str:
    name = op[0]
    if name == "new":
        return _say("6.3", "side_output", tag=op[1]["tag"]) if op[1].get("tag") else ""
    if name == "change":
        return _say("6.3", "change")
    if name == "side":
        return _say("6.3", "side", tag=op[1], value=repr(op[2]), time=op[3])
    return _say("6.3", "collect", value=repr(op[1]), time=op[2])


def _tell_given(name: str, value: Any) -> str:
    if name == "answer":
        return "" if value is None else _say("6.3", "answer", kind=str(value)[1:])
    if name == "kept" and value is not None:
        return _say("6.3", "kept", value=value[0], time=value[1])
    if isinstance(value, list):
        parts = [_say("6.3", "of_type", kind=each[1:]) if str(each).startswith("?") else str(each) for each in value]
        value = ", ".join(parts) or _say("6.3", "no_value")
    return _say("6.3", name, value=value)


CHECKS = {
    "6.1": ScenesCheck(
        "6.1", is_chainable, drive_c06, _ASK_RULES, _about_asked, _tell_asked, _tell_answer,
        Seeded("I", _asked_at_random, _simpler_asked), call=lambda _name: "is_chainable",
    ),
    "6.2": ScenesCheck(
        "6.2", build_chains, drive_c06, _BUILD_RULES, _about_built, _tell_built, _tell_chains,
        Seeded("G", _built_at_random, _simpler_built), call=lambda _name: "build_chains",
    ),
    "6.3": ScenesCheck(
        "6.3", CopyingChainingOutput, drive_c06, _SEND_RULES, _about_sent, _tell_sent, _tell_given,
        Seeded("G", _sent_at_random, is_valid=lambda ops: bool(ops) and ops[0][0] == "new"),
        call=lambda name: {"new": "__init__", "side": "collect_side"}.get(name, name),
    ),
}  # fmt: skip
