"""Exercise 6.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from course.checks import drive_chains
from course.checks.chains import tell_graph
from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from refimpl.job.chaining import is_chainable

__all__ = ["CHECK"]


_WAYS = ("rebalance", "rescale", "shuffle", "global", "broadcast", "hash")


def _asked(*specs: Mapping[str, Any]) -> list[list[Any]]:
    return [[["ask", dict(spec)]] for spec in specs]


_ASK_RULES: dict[str, list[list[Any]]] = {
    "A": _asked({}, {"parallelism": [1, 1]}, {"parallelism": [8, 8]}, {"parallelism": [1000, 1000]},
                {"sources": 1}, {"sources": 2}, {"sinks": 1}, {"sources": 1, "sinks": 2},
                {"last": True}, {"ids": [42, 7], "last": True}, {"sources": 2, "last": True},
                {"sinks": 1, "last": True}, {"ids": [0, 1]}, {"ids": [1, 0]}),
    "B": _asked({"way": "hash"}, *({"way": way} for way in _WAYS),
                *({"way": way, "parallelism": [1, 1]} for way in _WAYS)),
    "C": _asked({"parallelism": [1, 2]}, {"parallelism": [4, 2]}),
    "D": _asked({"inputs": 2}, {"inputs": 3}, {"outputs": 2}, {"outputs": 3},
                {"parallel": 2}, {"parallel": 3, "sources": 1}, {"inputs": 2, "parallel": 2},
                {"inputs": 2, "last": True}, {"outputs": 2, "sinks": 1}),
    "E": _asked({"down": "NEVER"}, {"up": "NEVER"}, {"down": "HEAD"}, {"up": "HEAD"},
                {"up": "HEAD", "down": "HEAD"}, {"up": "NEVER", "down": "NEVER"},
                {"up": "HEAD", "last": True}, {"up": "HEAD", "sources": 1},
                {"down": "HEAD", "last": True}),
    "F": _asked({"groups": ["default", "gpu"]}, {"groups": ["gpu", "default"]},
                {"groups": ["gpu", "gpu"]}),
    "G": _asked({"chaining": False}, {"chaining": False, "parallelism": [1, 1]}),
    "H": _asked({"tag": "late"}, {"tag": "late", "way": "hash"}, {"tag": "late", "outputs": 2}),
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
    spec, (got, want) = found.op[1], found.values
    if found.field == "graph":
        return "changes_graph"
    if str(got).startswith("?"):
        return "no_answer" if got == "?NoneType" else "no_truth"
    if not want:
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
    parts = [phrase("edge", "6.1", way=spec.get("way", "forward"), ups=ups, downs=downs)]
    parts += [phrase(key, "6.1", number=spec[key]) for key in ("inputs", "outputs", "parallel") if spec.get(key, 1) > 1]
    parts += [phrase(key, "6.1", number=spec[key]) for key in ("sources", "sinks") if spec.get(key)]
    parts += [phrase(key, "6.1", strategy=spec[key]) for key in ("up", "down") if spec.get(key, "ALWAYS") != "ALWAYS"]
    if spec.get("groups", ["default", "default"]) != ["default", "default"]:
        parts.append(phrase("groups", "6.1", one=spec["groups"][0], other=spec["groups"][1]))
    if spec.get("tag"):
        parts.append(phrase("tag", "6.1"))
    if not spec.get("chaining", True):
        parts.append(phrase("chaining", "6.1"))
    if list(spec.get("ids", [1, 2])) != [1, 2]:
        parts.append(phrase("ids", "6.1", one=spec["ids"][0], other=spec["ids"][1]))
    if spec.get("last"):
        parts.append(phrase("last", "6.1"))
    return ", ".join(parts)


def _tell_answer(name: str, value: Any) -> str:
    if name == "graph":
        return tell_graph(value)
    if isinstance(value, bool):
        return phrase("yes" if value else "no", "6.1")
    return phrase("of_type", "6.1", kind=str(value)[1:])


CHECK = TranscriptCheck(
    "6.1", is_chainable, drive_chains, _ASK_RULES, _about_asked, Seeded("I", _asked_at_random, _simpler_asked),
    words=FieldWords("6.1", _tell_asked, _tell_answer),
)  # fmt: skip
