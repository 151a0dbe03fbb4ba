"""Exercise 8.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.exercises.e08_1_blocking import driver
from refimpl.producer.bounded_blocking import BoundedBlockingSubpartition

__all__ = ["CHECK"]

_CAPACITY = 16
_TEXTS = ("Ab", "cde", "F", "ghij", "kLm", "nopqr", "s")


def _say(key: str, **values: object) -> str:
    return phrase(key, "8.1", **values)


def _ops(text: str) -> list[list[Any]]:
    """Operations written short: `open:ab poll:1 flush`."""
    found: list[list[Any]] = []
    for word in text.split():
        name, _, given = word.partition(":")
        found.append([name, *([int(given) if given.isdecimal() else given] if given else [])])
    return found


def _cases(*texts: str) -> list[list[Any]]:
    return [_ops(text) for text in texts]


_LOOKS_AT = {
    "A": ("answer", "kept"),
    "B": ("kept", "sealed"),
    "C": ("view", "piece"),
    "D": ("piece", "view", "left"),
    "E": ("refs", "kept"),
    "F": ("kept",),
    "G": ("kept",),
    "H": ("answer", "kept", "refs", "view", "gone"),
    "I": ("answer", "refs"),
}
_RULES: dict[str, list[list[Any]]] = {
    "A": _cases(
        "open:ab", "event open:ab", "open:ab open:cde close flush", "open:ab open:cde open:f", "open:ab event open:cde",
        "open:ab write:cde open:f",
    ),
    "B": _cases(
        "open:ab end", "end", "open:ab open:cde end", "open:ab close end", "open:ab event end", "event event end",
        "open:ab flush end", "open:ab write:cde end",
    ),
    "C": _cases(
        "view", "open:ab view", "open:ab open:cde view end view poll:2 poll:2 poll:2", "open:ab close flush view",
        "open:ab end view poll:1 poll:1 poll:1", "end view poll:1",
    ),
    "D": _cases(
        "open:ab open:cde end view view poll:1 poll:2", "open:ab open:cde end view poll:1 poll:1 view poll:2 poll:2",
        "open:ab end view poll:1 poll:1 poll:1 view poll:2 poll:2 poll:2",
        "open:ab open:cde open:f end view view view poll:1 poll:2 poll:1 poll:3 poll:2 poll:1",
    ),
    "E": _cases(
        "open:ab open:cde", "open:ab end", "open:ab close flush", "open:ab flush", "open:ab open:cde open:f end",
        "open:ab flush write:cde flush close flush", "open end", "open open:ab",
    ),
    "F": _cases(
        "open end", "open open:ab end", "open:ab flush flush end", "flush", "open flush write:ab flush end",
        "open:ab flush close flush end",
    ),
    "G": _cases(
        "open:ab flush", "open:ab close flush", "open:ab flush write:cde flush", "open:ab flush write:cde open:f end",
        "open:ab flush write:cde end", "event flush", "open:ab open:cde flush write:f flush end",
        "open:ab flush write:cde event end",
    ),
    "H": _cases(
        "end open:ab", "open:ab end open:cde close", "release open:ab", "release open:ab close", "open:ab end event",
        "end release view", "open:ab release view", "open:ab end view release poll:1 poll:1 view",
        "open:ab end view release leave:1", "open:ab end view view leave:1 release poll:2 leave:2", "end release",
    ),
    "I": _cases("open:ab close full flush", "open:ab full flush", "open:ab open:cde close full flush"),
}  # fmt: skip


def _seeded(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 8.1 {seed}")
    for _ in range(100):
        ops: list[list[Any]] = []
        used = _CAPACITY
        for _ in range(generator.randint(2, 16)):
            name = generator.choices(["open", "write", "close", "event", "flush"], [6, 4, 1, 1, 3])[0]
            text = generator.choice(_TEXTS) if name in ("open", "write") and generator.random() < 0.85 else ""
            if name == "open":
                used = 0
            elif name in ("close", "event"):
                used = _CAPACITY
            if name == "write" and (not text or used + len(text) > _CAPACITY):
                continue
            used += len(text)
            ops.append([name, text] if text else [name])
        if generator.random() < 0.3:
            ops.append(["view"])
        num_refused = int(ops[-1:] == [["view"]])
        ops.append(["end"])
        num_views = generator.randint(1, 3)
        ops += [["view"]] * num_views
        ops += [["poll", num_refused + generator.randint(1, num_views)] for _ in range(generator.randint(3, 16))]
        yield ops


def _is_valid(ops: list[Any]) -> bool:
    """Whether a writer could do that, and nobody reads who is not there."""
    used, num_views = _CAPACITY, 0
    for name, *given in ops:
        used = 0 if name == "open" else _CAPACITY if name in ("close", "event", "end") else used
        used += len(given[0]) if name in ("open", "write") and given else 0
        num_views += name == "view"
        if (name == "write" and used > _CAPACITY) or (name == "poll" and given[0] > num_views):
            return False
    return bool(ops)


def _simpler(op: list[Any]) -> Iterator[list[Any]]:
    if op[0] in ("open", "write") and len(op) > 1 and len(op[1]) > 1:
        yield [op[0], op[1][:1]]


# -- the belief behind a difference ----------------------------------------------------------------


def _belief(found: Difference) -> Belief:
    about = {
        "answer": _about_answer, "kept": _about_what_is_kept, "sealed": _about_the_end, "view": _about_views,
        "piece": _about_pieces, "left": _about_pieces, "refs": _about_references, "gone": _about_the_file,
    }[found.field]  # fmt: skip
    got, want = found.values
    return about(found), {"got": _named(got), "want": _named(want)}


def _about_answer(found: Difference) -> str:
    got, want = found.values
    if "full" in (got, want):
        return "hides_the_error"
    if got is None:
        return "add_returns_nothing"
    return "adds_after_the_end" if want is False and got is True else "add_answers_wrong"


def _texts(kept: object) -> list[str]:
    return [str(each) for each in kept] if isinstance(kept, list) else []


def _about_what_is_kept(found: Difference) -> str:
    name = found.op[0]
    got, want = _texts(found.got.get("kept")), _texts(found.want["kept"])
    if "" in got:
        return "empty_written"
    if any("\ufffd" in each for each in got):
        return "written_after_recycling"
    if name in ("open", "event") and (got[:-1] == want or len(got) > len(want)):
        return "adds_after_the_end" if _has_ended(found) else "writes_too_early"
    if name == "open":
        return _about_the_one_before(found) if len(got) < len(want) else "different_pieces"
    if name == "flush":
        if len(got) > len(want):
            return "flush_writes_twice"
        return "rest_lost" if _is_flushed(found) else "flush_writes_nothing"
    if name == "end":
        return _about_the_last_pieces(got, want)
    return "different_pieces"


def _about_the_one_before(found: Difference) -> str:
    """A buffer is lost, or an event is too; and if not, whether a closed one is written at least."""
    if found.before[-1:] == [["event"]]:
        return "previous_lost"
    if found.every_op[-1] != ["flush"] or len(found.events) < len(found.every_op):
        return "previous_lost"
    return "writes_when_it_joins" if _texts(found.events[-1][1].get("kept")) else "waits_for_closed"


def _about_the_last_pieces(got: list[str], want: list[str]) -> str:
    if got == want[:-1]:
        return "no_end"
    if "".join(got) == "".join(want):
        return "different_pieces"
    if got[-1:] == ["*"]:
        return (
            "tail_lost" if got[:-1] == want[: len(got) - 1] else "end_first" if "*" in got[:-1] else "different_pieces"
        )
    return "end_first" if sorted(got) == sorted(want) else "nothing_at_the_end" if len(got) < len(want) else "twice"


def _is_flushed(found: Difference) -> bool:
    """Whether the open buffer has been flushed before, and written into since."""
    names = [op[0] for op in found.before]
    last = len(names) - names[::-1].index("open") if "open" in names else len(names)
    return "write" in names[last:] and "flush" in names[last : len(names) - names[::-1].index("write")]


def _has_ended(found: Difference) -> bool:
    return any(op[0] in ("end", "release") for op in found.before)


def _about_the_end(found: Difference) -> str:
    return "sealed_too_early" if found.got.get("sealed") else "not_sealed"


def _about_views(found: Difference) -> str:
    got, want = (str(each) for each in found.values)
    if want == "refused":
        if got == "made":
            return "reads_after_release" if any(op[0] == "release" for op in found.before) else "reads_too_early"
        if got == "?NoneType":
            return "answers_with_nothing"
        return "refuses_otherwise" if got.startswith("otherwise") else "answers_instead_of_refusing"
    if got == "refused":
        return "refuses_the_second" if any(op[0] == "view" for op in found.before) else "refuses_all"
    return "no_view"


def _about_pieces(found: Difference) -> str:
    reader = found.op[1]
    others = [op[1] for op in found.before if op[0] == "poll" and op[1] != reader]
    own = [op for op in found.before if op[0] == "poll" and op[1] == reader]
    if others:
        return "shared_place" if found.field == "piece" else "shared_count"
    return "starts_in_the_middle" if not own else "piece_missing"


def _about_references(found: Difference) -> str:
    got, want = found.values
    if any(op[0] == "full" for op in found.before):
        return "kept_when_writing_fails"
    if _has_ended(found) and found.op[0] in ("open", "close"):
        return "refused_not_closed"
    if got < want:
        return "recycled_too_early"
    if found.op[0] == "flush" and found.want["kept"] == found.was.get("kept"):
        return "empty_not_recycled"
    return "empty_not_recycled" if ["open"] in [*found.before, found.op] else "never_recycled"


def _about_the_file(found: Difference) -> str:
    return "deleted_under_a_reader" if found.got.get("gone") else "never_deleted"


# -- in words --------------------------------------------------------------------------------------


def _tell_op(op: Sequence[Any]) -> str:
    if op[0] == "open" and len(op) == 1:
        return _say("op_open_empty")
    return _say(f"op_{op[0]}", given=op[1] if len(op) > 1 else "")


def _tell_field(name: str, value: Any) -> str:
    if name == "kept":
        return _say("field_kept", value=_named(value)) if value is not None else ""
    if name == "piece":
        return {"": _say("field_no_piece"), "*": _say("field_event")}.get(value) or _say("field_piece", value=value)
    if name in ("sealed", "gone"):
        return _say(f"field_{name}", value=_say("yes" if value else "no"))
    return "" if value is None and name != "answer" else _say(f"field_{name}", value=_named(value))


def _is_shown(name: str, value: Any) -> bool:
    """What is as always is left out."""
    return not (name in ("sealed", "gone") and value is False) and not (name == "answer" and value is True)


def _named(value: Any) -> str:
    """A plain value as text; of anything else the type."""
    if isinstance(value, list):
        return " ".join(_say("an_event") if each == "*" else f"'{each}'" for each in value) or _say("nothing_kept")
    text = str(value)
    if value is None:
        return _say("no_value")
    if text.startswith("?"):
        return _say("an_object", kind=text[1:])
    views = {"made": "a_view", "refused": "a_refusal", "full": "a_full_disk"}
    return _say(views[text]) if text in views else text.removeprefix("otherwise ")


CHECK = TranscriptCheck(
    "8.1", BoundedBlockingSubpartition, driver, _RULES, _belief, Seeded("J", _seeded, _simpler, _is_valid), _LOOKS_AT,
    FieldWords("8.1", _tell_op, _tell_field, _is_shown),
)  # fmt: skip
