"""Exercise 7.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.common import without_error
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.exercises.e07_1_subpartition import driver
from course.grading.rules import Finding
from refimpl.producer.subpartition import PipelinedSubpartition

__all__ = ["CHECK"]


_CAPACITY = 16
_TEXTS = ("Ab", "cde", "F", "ghij", "kLm", "nopqr", "s")


def _say(key: str, **values: object) -> str:
    return phrase(key, "7.1", **values)


def _ops(text: str) -> list[list[Any]]:
    """Operations written short: `open:ab poll flush`."""
    return [word.split(":") if ":" in word else [word] for word in text.split()]


def _cases(*texts: str) -> list[list[Any]]:
    return [_ops(text) for text in texts]


_LOOKS_AT = {
    "A": ("answer",),
    "B": ("piece", "queued"),
    "C": ("piece", "queued"),
    "D": ("answer", "piece", "queued"),
    "E": ("told", "ready"),
    "F": ("told", "mark", "ready"),
    "G": ("mark", "told", "more"),
    "H": ("backlog", "sent"),
    "I": ("answer", "piece", "told", "queued", "mark", "ready"),
    "J": ("refs", "queued"),
}
_RULES: dict[str, list[list[Any]]] = {
    "A": _cases(
        "open:ab open:cd poll", "event poll poll", "poll", "open:ab poll flush",
    ),
    "B": _cases(
        "open:ab poll", "open:ab poll write:cde poll poll", "open:ab close poll", "open:ab poll close poll",
        "open:ab poll write:cde close poll poll",
    ),
    "C": _cases(
        "open:ab open:cde poll", "open:ab open:cde open:f poll poll poll poll", "open:ab event open:cde poll poll poll",
        "open:ab poll write:cde open:f poll poll poll", "open:ab open:cde poll poll write:f poll close poll",
    ),
    "D": _cases(
        "open poll", "open open:ab poll", "open open open:ab poll poll", "open close poll poll",
        "open:ab poll open:cd poll poll", "open open event poll poll", " ".join(["open"] * 12 + ["open:ab", "poll"]),
        " ".join(["open"] * 300 + ["open:ab", "poll"]),
    ),
    "E": _cases(
        "open", "open:ab write:cde", "open:ab open:cde", "open:ab open:cde open:f open:ghij", "event",
        "event poll event",
        "open:ab event", "open:ab open:cde poll open:f", "open:ab open:cde poll poll open:f", "open:ab poll open:cde",
    ),
    "F": _cases(
        "flush", "open:ab flush", "open flush", "open:ab poll flush", "open:ab poll write:cde flush",
        "open:ab open:cde flush", "open:ab flush flush", "open:ab flush open:cde", "open:ab flush open:cde open:f",
        "open:ab open:cde flush flush", "open flush write:ab flush", "open:ab poll flush write:cde flush",
        "open:ab poll close flush",
    ),
    "G": _cases(
        "open:ab flush poll", "open:ab open:cde flush poll", "open:ab open:cde flush poll poll",
        "open:ab flush poll write:cde flush", "open:ab flush poll open:cde", "open:ab flush poll open:cde open:f",
        "open:ab flush open:cde poll poll write:f flush", "open:ab open:cde open:f flush poll poll",
        "open:ab open flush poll poll", "open:ab flush poll poll write:cde open:f",
    ),
    "H": _cases(
        "open:ab", "open:ab open:cde", "event", "event event", "open:ab open:cde open:f", "open:ab event open:cde",
        "event open:ab event open", "open:ab flush", "open:ab open:cde flush", "open:ab end",
        "open:ab open:cde end poll",
        "open:ab open:cde flush poll poll", "open:ab event flush poll poll", "open open:ab poll", "open:ab poll",
        "event flush", "event open:ab flush poll", "open:ab open:cde poll", "open:ab open:cde open:f poll poll",
        "open:ab close poll", "open:ab open:cde end poll poll poll", "event open:ab open:cde poll poll",
        " ".join(["open:ab"] * 20 + ["flush"]), " ".join(["open:ab"] * 300 + ["flush"]),
    ),
    "I": _cases(
        "barrier open:ab poll poll", "barrier open:ab open:cde poll poll resume poll", "barrier poll open:ab open:cde",
        "barrier poll open:ab flush", "barrier poll open:ab open:cde flush resume poll", "barrier poll event",
        "barrier poll open:ab flush resume flush poll", "end open:ab", "release open:ab", "end poll event poll",
        "open:ab release poll open:cde poll flush",
    ),
    "J": _cases(
        "open:ab open:cde poll", "open:ab close poll", "open open:ab poll", "open:ab poll", "open:ab poll poll",
        "open:ab poll close poll poll", "open poll poll", "end open:ab close", "release open close",
    ),
}  # fmt: skip


def _seeded(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 7.1 {seed}")
    for _ in range(120):
        ops: list[list[Any]] = []
        used = _CAPACITY
        for _ in range(generator.randint(3, 24)):
            name = generator.choices(
                ["open", "write", "close", "event", "barrier", "flush", "poll", "resume"], [5, 5, 1, 1, 0.6, 4, 8, 2]
            )[0]
            text = generator.choice(_TEXTS) if name in ("open", "write") and generator.random() < 0.85 else ""
            if name == "open":
                used = 0
            elif name in ("close", "event", "barrier"):
                used = _CAPACITY
            if name == "write" and (not text or used + len(text) > _CAPACITY):
                continue
            used += len(text)
            ops.append([name, text] if text else [name])
        yield [*ops, *[["end"]] * (generator.random() < 0.5), *[["poll"]] * generator.randint(0, 4)]


def _is_valid(ops: list[Any]) -> bool:
    """Whether a writer could do that: it writes into a buffer it has, and no more than fits."""
    used = _CAPACITY
    for name, *text in ops:
        used = 0 if name == "open" else _CAPACITY if name in ("close", "event", "barrier", "end") else used
        used += len(text[0]) if text else 0
        if name == "write" and used > _CAPACITY:
            return False
    return bool(ops)


def _simpler(op: list[Any]) -> Iterator[list[Any]]:
    if len(op) > 1 and len(op[1]) > 1:
        yield [op[0], op[1][:1]]


# -- the belief behind a difference ----------------------------------------------------------------


def _belief(found: Difference) -> Belief:
    about = {
        "answer": _about_answer,
        "piece": _about_piece,
        "queued": _about_queue,
        "told": _about_telling,
        "mark": _about_mark,
        "backlog": _about_backlog,
        "refs": _about_references,
        "ready": _about_ready,
        "more": _about_deliver,
        "sent": _about_deliver,
    }[found.field]
    values = {"got": _named(found.values[0]), "place": str(found.want["queued"])}
    return about(found), values


def _about_answer(found: Difference) -> str:
    name, (got, want) = found.op[0], found.values
    if name == "poll":
        if str(got).startswith("?"):
            return "poll_without_deliver"
        if _is_blocked(found):
            return "reads_while_blocked"
        if found.got["queued"] == 0 and found.want["queued"]:
            return "not_queued"
        if want == "nothing":
            return "empty_piece_delivered" if found.got.get("piece") == "" else "gives_too_much"
        return "stops_at_empty" if _empties(found) else "gives_nothing"
    if name == "flush":
        return "flush_answers"
    if got is None:
        return "add_returns_nothing"
    if want is False:
        return "adds_after_the_end"
    return "add_answers_wrong"


def _about_piece(found: Difference) -> str:
    got, want = found.values
    if _is_blocked(found):
        return "reads_while_blocked"
    if want is None:
        return "empty_piece_delivered" if got == "" else "gives_too_much"
    if got is None:
        return "stops_at_empty" if _empties(found) else "gives_nothing"
    if got == "":
        return "empty_piece_delivered"
    later = "".join(op[1] for op in found.before if len(op) > 1)
    if got != "event" and got not in later:
        return "wrong_piece"
    return "newest_first" if found.got["queued"] > found.want["queued"] else "buffer_skipped"


def _about_queue(found: Difference) -> str:
    got, want = found.values
    if found.op[0] != "poll":
        return "queue_differs"
    if got < want:
        return "open_taken_away"
    return "finished_stays" if found.got.get("piece") == found.want.get("piece") else "queue_differs"


def _about_telling(found: Difference) -> str:
    name, (got, want) = found.op[0], found.values
    past = found.was or {"queued": 0, "mark": False}
    if got is None or want is None:
        return "queue_differs"
    if _is_blocked(found) and got > want:
        return "tells_while_blocked"
    if name == "poll":
        return "poll_tells"
    if name == "flush":
        if got < want:
            return "flush_tells_nobody"
        if past["mark"]:
            return "tells_again_after_flush"
        return "flush_tells_without_bytes" if past["queued"] == 1 else "flush_tells_of_nothing_new"
    if name not in ("open", "event", "barrier"):
        return "different"
    if got < want:
        return "event_not_told" if name != "open" and not past["queued"] else "add_tells_nobody"
    if past["mark"]:
        return "add_tells_after_flush"
    return "tells_of_an_open_buffer" if not past["queued"] else "tells_every_add"


def _about_ready(found: Difference) -> str:
    """The reader was told as often as it should be, but too early: it would have found nothing."""
    if found.op[0] == "flush":
        return "told_before_the_mark"
    return "told_before_it_joined" if found.op[0] in ("open", "event", "barrier") else "different"


def _about_deliver(found: Difference) -> str:
    """What `deliver` says of the rest: it looks when it is called."""
    got, want = found.values
    if type(got) is not type(want) or got < want:
        return "other_words_with_the_piece"
    past = found.was or {"mark": False}
    if past["mark"] and not found.want["mark"] and found.want["queued"] == 1:
        return "mark_after_deliver"
    return "removed_after_deliver" if int(got) == int(want) + 1 else "other_words_with_the_piece"


def _about_mark(found: Difference) -> str:
    past = found.was or {"queued": 0, "mark": False}
    if found.op[0] == "poll":
        return "mark_stays" if found.got["mark"] else "mark_down_too_early"
    if found.op[0] == "flush":
        if not found.got["mark"]:
            return "flush_takes_it_down" if past["mark"] else "no_mark"
        if _is_blocked(found):
            return "mark_while_blocked"
        return "mark_without_bytes" if past["queued"] else "mark_on_nothing"
    return "mark_differs"


def _about_backlog(found: Difference) -> str:
    got, want = found.values
    if isinstance(got, bool) or not isinstance(got, int):
        return "backlog_no_number"
    if got < 0:
        return "backlog_below_zero"
    has_ended = any(op[0] == "end" for op in [*found.before, found.op])
    num_queued = found.want["queued"]
    if got > want:
        events = any(op[0] in ("event", "barrier", "end") for op in [*found.before, found.op])
        return "events_counted" if events and got in (num_queued, num_queued - 1) else "tail_counted"
    if found.want["mark"]:
        return "flushed_tail_not_counted"
    return "ended_tail_not_counted" if has_ended else "backlog_too_small"


def _about_references(found: Difference) -> str:
    got, want = found.values
    if found.op[0] in ("open", "close"):
        return "refused_not_closed"
    if got < want:
        return "recycled_too_early"
    return "empty_not_recycled" if _empties(found) else "finished_not_closed"


def _ending(found: Finding, _op: Sequence[Any]) -> Finding:
    is_recycled = "was recycled before" in found.values["text"]
    return without_error(found, "recycled_too_early") if is_recycled else found


def _is_blocked(found: Difference) -> bool:
    """Whether a blocking event was taken and nobody resumed since."""
    is_blocked = False
    barriers = [op[0] == "barrier" for op in found.before if op[0] in ("barrier", "event", "open")]
    for op, event in zip(found.before, found.expected, strict=False):
        if op[0] == "resume":
            is_blocked = False
        if op[0] == "poll" and event[1].get("piece") == "event" and any(barriers):
            is_blocked = True
    return is_blocked


def _empties(found: Difference) -> bool:
    """Whether a buffer without a byte was opened before."""
    return any(op[0] == "open" and len(op) == 1 for op in found.before)


# -- in words --------------------------------------------------------------------------------------


def _tell_op(op: Sequence[Any]) -> str:
    name, text = op[0], op[1] if len(op) > 1 else ""
    if name == "open":
        return _say("op_open", text=text) if text else _say("op_open_empty")
    return _say(f"op_{name}", text=text)


def _tell_field(name: str, value: Any) -> str:
    if name == "piece":
        if value is None:
            return _say("field_no_piece")
        return _say("field_event") if value == "event" else _say("field_piece", text=value)
    if name == "answer":
        words = {"nothing": _say("no_piece"), "taken": _say("a_piece")}
        return words.get(str(value), _say("field_answer", value=_named(value)))
    if name in ("mark", "more", "event_next") or (name == "ready" and value is not None):
        return _say(f"field_{name}", value=_say("yes" if value is True else "no") if type(value) is bool else value)
    return "" if value is None else _say(f"field_{name}", value=_named(value))


def _is_shown(name: str, value: Any) -> bool:
    """The short form leaves out what other fields say as well."""
    is_said = name in ("number", "event_next", "ready", "sent")
    return not is_said and not (name == "answer" and value in ("taken", "nothing", None))


def _named(value: Any) -> str:
    """A plain value as it is; of anything else the type."""
    text = str(value)
    return _say("an_object", kind=text[1:]) if text.startswith("?") else text


CHECK = TranscriptCheck(
    "7.1", PipelinedSubpartition, driver, _RULES, _belief, Seeded("K", _seeded, _simpler, _is_valid), _LOOKS_AT,
    FieldWords("7.1", _tell_op, _tell_field, _is_shown), _ending,
)  # fmt: skip
