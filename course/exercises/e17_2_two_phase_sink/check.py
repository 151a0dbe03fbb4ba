"""Exercise 17.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.exercises.e17_2_two_phase_sink import driver
from refimpl.task.two_phase_sink import TwoPhaseCommitSink

__all__ = ["CHECK"]

_FAR = 2**40


def _script(words: str) -> list[Any]:
    """`restore a9:3=a1,4=a2 / 5 / snapshot 1`: operations, of which a number alone is a record."""
    return [_operation(each.split()) for each in words.split("/")]


def _operation(words: Sequence[str]) -> list[Any]:
    name, *rest = words
    if name == "restore":
        return [name, *map(_written_state, rest)]
    if name == "fails":
        return [name, *rest]
    return [name, *map(int, rest)] if not name.isdigit() else ["record", int(name)]


def _written_state(text: str) -> list[Any]:
    opened, _, pending = text.partition(":")
    pairs = [each.split("=") for each in pending.split(",") if each]
    return [opened.strip("-"), [[int(number), name] for number, name in pairs]]


_CASES = {
    "A": ["restore / 5", "restore / 5 / 7 / 5"],
    "B": ["restore / 5 / snapshot 1", "restore / 5 / snapshot 1 / 7", "restore / snapshot 4 / 6 / snapshot 5 / 8"],
    "C": [
        "restore / 5 / snapshot 1 / complete 1", "restore / 5 / snapshot 3 / 7 / complete 3 / 9 / snapshot 4",
        "restore / 5 / snapshot 1 / complete 1 / 6 / snapshot 2 / complete 2 / snapshot 3", "restore / 5 / complete 1",
    ],
    "D": [
        "restore / 5 / snapshot 1 / 6 / snapshot 2 / complete 1",
        "restore / 5 / snapshot 1 / 6 / snapshot 2 / complete 2",
        "restore / 5 / snapshot 1 / 6 / snapshot 2 / 7 / snapshot 3 / complete 2 / snapshot 4 / complete 4",
        "restore / 5 / snapshot 2 / 6 / snapshot 9 / 7 / snapshot 10 / 8 / snapshot 11 / complete 10 / complete 9",
        (
            f"restore / 5 / snapshot {_FAR} / 6 / snapshot {_FAR + 300} / complete {_FAR} / complete {_FAR + 300} / "
            f"snapshot {_FAR + 301}"
        ),
    ],
    "E": [
        "restore / 5 / snapshot 1 / 6 / complete 1",
        "restore / 5 / snapshot 1 / 6 / snapshot 2 / complete 1 / 7 / complete 2",
        "restore / 5 / snapshot 1 / 6 / snapshot 2 / 7 / snapshot 3 / 8 / complete 3 / close",
    ],
    "F": [
        "restore a9:3=a1 / 5", "restore a9: / 5 / snapshot 6", "restore -:7=a1 / 5", "restore -: / 5",
        "restore a9:3=a1,4=a2 b9:3=b1 / 5 / snapshot 5", "restore a3:9=a2,10=a1 b9:2=b8 -:11=c0 / 5",
        "restore / 5 / snapshot 1 / 6 / crash 1 / 6 / snapshot 2 / complete 2",
        "restore / 5 / snapshot 1 / complete 1 / 6 / crash 1 / 6 / snapshot 2 / complete 2",
        "restore / 5 / snapshot 1 / 6 / snapshot 2 / 7 / crash 2 / 7 / snapshot 3 / crash 3",
        "restore / 5 / crash 0 / 5",
    ],
    "G": [
        "restore / 5 / snapshot 1 / fails t0 / complete 1 / 6 / snapshot 2",
        "restore / 5 / snapshot 1 / fails t0 / complete 1 / works / complete 1",
        "restore / 5 / snapshot 1 / 6 / fails t0 / complete 1 / snapshot 2 / works / complete 2 / snapshot 3",
    ],
    "H": [
        "restore / 5 / close",
        "restore / 5 / snapshot 1 / 6 / close",
        "restore / 5 / snapshot 1 / complete 1 / close / close",
    ],
}  # fmt: skip


def _seeded(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 17.2 {seed}")
    for _ in range(40):
        ops: list[Any] = [["restore"]]
        number, taken, complete = generator.choice((0, 6, 300)), [], 0
        for _ in range(generator.randint(3, 18)):
            kind = generator.random()
            if kind < 0.35:
                ops.append(["record", generator.randint(1, 99)])
            elif kind < 0.65:
                number += generator.choice((1, 1, 2))
                taken.append(number)
                ops.append(["snapshot", number])
            elif kind < 0.88 and [each for each in taken if each > complete]:
                complete = generator.choice([each for each in taken if each > complete])
                ops.append(["complete", complete])
            elif kind > 0.93:
                taken = [each for each in taken if each <= complete]
                ops.append(["crash", complete])
        yield ops


def _belief(found: Difference) -> Belief:
    got, want = found.values
    values = {
        "got": _field(found.field, got) or phrase("nothing"),
        "want": _field(found.field, want) or phrase("nothing"),
    }
    if found.field == "kept":
        return "state_changes", values
    if found.field == "state":
        return _of_state(found, got, want), values
    if found.field == "error":
        return "hides_the_error", values
    more = [each for each in got if each not in want]
    less = [each for each in want if each not in got]
    kind = {"crash": "restore"}.get(found.op[0], found.op[0])
    return f"{kind}_{_OF_DONE[kind](found, more, less)}", values


def _of_record(found: Difference, _more: list[str], _less: list[str]) -> str:
    return {"wrote": "not_written", "out": "commits"}.get(found.field, "does_more")


def _of_snapshot(found: Difference, more: list[str], _less: list[str]) -> str:
    if more:
        return "commits" if found.field == "out" else "does_more"
    if found.field == "ready":
        return "not_ready" if found.got["begun"] else "skips_it"
    return "begins_later" if found.got["state"][0] == "" else "begins_none"


def _of_complete(found: Difference, more: list[str], less: list[str]) -> str:
    if found.field != "out":
        return "does_more"
    if more:
        return "commits_newer"
    if not less:
        return "in_another_order"
    return "leaves_older" if len(found.want["out"]) > 1 else "commits_none"


def _of_restore(found: Difference, more: list[str], less: list[str]) -> str:
    if found.field == "out":
        if more:
            return "commits_open"
        if not less:
            return "in_another_order"
        return (
            "leaves_other_states" if found.got["out"] else "aborts_pending" if found.got["gone"] else "leaves_pending"
        )
    if found.field == "gone":
        if more:
            return "aborts_none" if more[0].startswith("?") else "aborts_pending"
        return "leaves_open" if found.got["begun"] else "goes_on_with_the_old"
    return "begins_none" if less else "does_more"


def _of_close(found: Difference, more: list[str], _less: list[str]) -> str:
    if found.field == "gone":
        return "aborts_more" if more else "leaves_open"
    return "commits" if found.field == "out" else "does_more"


_OF_DONE = {
    "record": _of_record, "snapshot": _of_snapshot, "complete": _of_complete, "restore": _of_restore,
    "close": _of_close,
}  # fmt: skip


def _of_state(found: Difference, got: Any, want: Any) -> str:
    if len(got) != 2:
        return "no_state"
    names, wanted = [name for _, name in got[1]], [name for _, name in want[1]]
    if any(each not in names for each in wanted):
        if found.want["ready"][0] not in names:
            return "state_without_the_new"
        return "state_without_the_failed" if any(op[0] == "fails" for op in found.before) else "state_without_older"
    if any(each not in wanted for each in names):
        return "state_has_committed"
    return "state_has_other_open" if got[0] != want[0] else "state_has_other_numbers"


# -- words -------------------------------------------------------------------------------------------------


def _op(op: Sequence[Any]) -> str:
    name, *given = op
    if name == "restore" and given:
        return phrase("op_restore_states", "17.2", a=", ".join(_told_state(each) for each in given))
    if name == "crash" and not given[0]:
        return phrase("op_crash_anew", "17.2")
    return phrase(f"op_{name}", "17.2", a=given[0] if given else "")


def _told_state(state: Any) -> str:
    if len(state) != 2:
        return str(state[0]).removeprefix("? ")
    opened, pending = state
    waiting = ", ".join(f"{number}: {name}" for number, name in pending)
    return f"({opened or 'None'}; {waiting})" if waiting else f"({opened or 'None'})"


def _field(name: str, value: Any) -> str:
    if not value:
        return ""
    told = _told_state(value) if name in ("state", "kept") else value if name == "error" else ", ".join(value)
    return phrase(f"told_{name}", "17.2", a=told)


CHECK = TranscriptCheck(
    "17.2", TwoPhaseCommitSink, driver, {rule: [_script(each) for each in every] for rule, every in _CASES.items()},
    _belief, Seeded("I", _seeded, setup="restore"),
    looks_at=dict.fromkeys("ABCD", ("out", "gone", "wrote", "ready", "begun", "state", "error")),
    words=FieldWords("17.2", _op, _field),
)  # fmt: skip
