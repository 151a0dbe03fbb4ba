"""Lesson 11, credit: the rules and cases of both ends, and the belief behind each difference."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_c11
from course.checks.scripts import Difference, ScriptCheck
from refimpl.consumer.buffer_manager import BufferManager
from refimpl.exchange.producer_credit import SubpartitionReader

__all__ = ["CHECKS"]

_Found = tuple[str, dict[str, str]]


def _script(words: str) -> list[Any]:
    """A case in short: `1 2 8 / backlog 0 3 / data 0`."""
    ops = []
    for each in words.split("/"):
        name, *rest = each.split()
        ops.append([name, *map(int, rest)])
    return ops


def _cases(first: str, rules: dict[str, list[str]]) -> dict[str, list[list[Any]]]:
    return {rule: [_script(f"{first} {words}") for words in every] for rule, every in rules.items()}


# -- 11.1: the receiver --------------------------------------------------------------------------------

_RECEIVER = {
    "A": [
        "1 2 8 / backlog 0 3", "1 2 8 / backlog 0 1", "1 1 6 / backlog 0 4", "1 3 9 / backlog 0 5",
        "1 2 60 / backlog 0 50",
    ],
    "B": [
        "1 2 8 / backlog 0 3 / backlog 0 3", "1 2 8 / backlog 0 2 / backlog 0 5", "1 2 8 / data 0 / backlog 0 1",
        "1 2 9 / data 0 / data 0 / backlog 0 3", "1 2 9 / backlog 0 2 / announce 0 / data 0 / data 0 / backlog 0 2",
        "1 3 9 / backlog 0 0 / data 0 / backlog 0 4",
    ],
    "C": [
        "1 2 8 / backlog 0 2 / announce 0 / backlog 0 4", "1 2 9 / backlog 0 2 / backlog 0 5 / announce 0",
        "1 2 8 / backlog 0 3 / announce 0 / backlog 0 3 / backlog 0 4 / announce 0",
    ],
    "D": [
        "1 2 8 / backlog 0 5 / backlog 0 1", "1 2 8 / backlog 0 4 / announce 0 / backlog 0 0 / backlog 0 3",
        "1 2 8 / backlog 0 3 / backlog 0 0 / backlog 0 5",
    ],
    "E": [
        "1 2 2 / backlog 0 5", "1 2 0 / backlog 0 1", "1 2 1 / backlog 0 1", "1 2 3 / data 0 / backlog 0 4",
        "1 2 4 / backlog 0 3 / announce 0 / backlog 0 7",
    ],
    "F": [
        "1 2 1 / backlog 0 4 / backlog 0 6", "1 2 1 / backlog 0 4 / backlog 0 0 / backlog 0 5",
        "1 1 1 / backlog 0 3 / announce 0 / data 0 / read 0 0 / backlog 0 4",
        "1 1 1 / backlog 0 3 / announce 0 / data 0 / read 0 0 / backlog 0 0 / data 0 / read 0 0 / backlog 0 3",
        "2 2 2 / backlog 0 2 / backlog 1 3 / announce 0 / data 0 / read 0 0 / backlog 1 4",
    ],
    "G": [
        "1 2 0 / backlog 0 0 / data 0 / read 0 0", "1 2 4 / data 0 / backlog 0 1 / announce 0 / data 0 / read 0 0",
        "1 2 4 / data 0 / read 0 0", "1 2 4 / data 0 / data 0 / read 0 1 / read 0 0",
        "1 2 2 / data 0 / backlog 0 5 / read 0 0", "1 2 1 / data 0 / data 0 / backlog 0 1 / read 0 0 / read 0 0",
        "1 3 0 / data 0 / read 0 0 / announce 0 / data 0 / read 0 0",
    ],
    "H": [
        "1 2 4 / data 0 / backlog 0 1 / read 0 0", "1 2 4 / data 0 / backlog 0 1 / announce 0 / read 0 0",
        "1 2 6 / data 0 / data 0 / backlog 0 3 / backlog 0 0 / read 0 0 / read 0 0",
        "1 2 4 / data 0 / data 0 / backlog 0 2 / announce 0 / read 0 1 / data 0 / read 0 0 / backlog 0 3",
    ],
    "I": [
        "2 2 2 / data 0 / backlog 0 1 / backlog 1 2 / read 0 0",
        "2 2 3 / data 0 / data 0 / backlog 0 1 / backlog 1 4 / announce 0 / read 0 0 / read 0 0",
        "3 2 3 / data 0 / backlog 0 2 / backlog 1 3 / backlog 2 3 / announce 0 / data 0 / data 0 / read 0 1 / read 0 0",
    ],
    "J": [
        "2 2 8 / backlog 0 3 / backlog 1 1", "2 2 8 / backlog 0 2 / announce 0 / backlog 1 2 / announce 1",
        "2 1 8 / data 1 / backlog 0 3 / read 1 0 / backlog 1 2",
    ],
}  # fmt: skip


def _mixed_receiver(seed: int) -> Iterator[list[Any]]:
    """What producers, tasks and a connection could do, in random order."""
    generator = random.Random(f"sluice 11.1 {seed}")
    for _ in range(40):
        shape = [generator.randint(1, 3), generator.randint(1, 3), generator.choice((0, 1, 2, 4, 8))]
        ops: list[Any] = [["channels", *shape]]
        gate = drive_c11.Gate(BufferManager, *shape)
        for _ in range(generator.randint(3, 24)):
            channel = generator.randrange(shape[0])
            held, promised = gate.held[channel], gate.managers[channel].credit.num_promised
            op: list[Any] = ["backlog", channel, generator.randint(0, 6)]
            match generator.randrange(4):
                case 0 if held:
                    op = ["read", channel, generator.randrange(len(held))]
                case 1 | 2 if promised:
                    op = ["data", channel]
                case 3 if generator.random() < 0.6:
                    op = ["announce", channel]
            gate.do(op)
            ops.append(op)
        yield ops


def _simpler_receiver(op: list[Any]) -> Iterator[list[Any]]:
    if op[0] == "backlog" and op[2]:
        yield from (["backlog", op[1], less] for less in {0, op[2] // 2, op[2] - 1})


def _receiver_belief(found: Difference) -> _Found:
    name, channel = found.op[0], f"channel {found.op[1]}" if len(found.op) > 1 else ""
    got, want, before = (state.get(channel, {}) for state in (found.got, found.want, found.before))
    values = {"backlog": str(found.op[2]) if name == "backlog" else "", "own": str(found.ops[0][2]),
              "got": str(got.get("unannounced")), "want": str(want.get("unannounced"))}  # fmt: skip
    if name in ("channels", "data", "announce"):
        return "different", values
    if any(not isinstance(each, int) for each in got.values()):
        return "no_number", values
    if got == want:
        return _elsewhere(found), values
    if name == "backlog":
        values |= {"got": str(got["wanted"]), "want": str(want["wanted"])} if got["wanted"] != want["wanted"] else {}
        return _on_backlog(found, got, want, before), values
    return _on_recycled(got, want, before), values


def _elsewhere(found: Difference) -> str:
    """The channel itself is as it should be: its pool, or a neighbour, is not."""
    pools = found.got.get("pool", {}), found.want["pool"]
    if any(group.startswith("channel") for group, _ in found.fields):
        return "other_channel"
    if pools[0].get("line") != pools[1]["line"]:
        return "in_line_twice" if pools[0].get("line", 0) > pools[1]["line"] else "not_in_line"
    return "pool_differs"


def _on_backlog(found: Difference, got: dict[str, Any], want: dict[str, Any], before: dict[str, Any]) -> str:
    _, own, _ = found.ops[0][1:]
    backlog = found.op[2]
    if got["wanted"] != want["wanted"]:
        if found.ops[0][1] > 1:
            return "channels_share"  # alone, the channel would have failed before
        beliefs = [
            ("forgets_own", backlog), ("wanted_not_set", before["wanted"] if backlog + own > before["wanted"] else -1),
            ("wanted_only_grows", max(before["wanted"], backlog + own)),
            ("backlog_added", before["wanted"] + backlog), ("backlog_added", before["wanted"] + backlog + own),
            ("backlog_added", max(before["wanted"], own) + backlog),
            ("counts_empty_own", backlog + before["own"]),
            ("counts_all_empty", backlog + before["own"] + before["floating"]), ("own_twice", backlog + 2 * own),
        ]  # fmt: skip
        return next((code for code, value in beliefs if value == got["wanted"]), "wanted_wrong")
    if got["own"] != want["own"]:
        return "touches_own"
    if got["floating"] != want["floating"]:
        return _how_many(found, got, want, before)
    if got["unannounced"] != want["unannounced"]:
        return _what_credit(found, got, want, before)
    return "nobody_told" if not got["told"] else "promise_changed"


def _how_many(found: Difference, got: dict[str, Any], want: dict[str, Any], before: dict[str, Any]) -> str:
    taken, right = got["floating"] - before["floating"], want["floating"] - before["floating"]
    backlog, free = found.op[2], found.before["pool"]["free"]
    missing = want["wanted"] - before["own"] - before["floating"]
    if taken < 0:
        return "gives_back"
    if taken == 0:
        return "all_or_nothing" if right < missing else "takes_nothing"
    beliefs = [
        ("takes_backlog", min(backlog, free)), ("takes_wanted", min(want["wanted"], free)), ("takes_one", 1),
        ("ignores_floating", min(max(0, want["wanted"] - before["own"]), free)),
        ("one_too_many", right + 1), ("one_too_few", right - 1), ("takes_all", free),
    ]  # fmt: skip
    return next((code for code, value in beliefs if value == taken), "takes_wrong")


def _what_credit(found: Difference, got: dict[str, Any], want: dict[str, Any], before: dict[str, Any]) -> str:
    now, then, taken = got["unannounced"], before["unannounced"], want["floating"] - before["floating"]
    available = want["own"] + want["floating"]
    missing = want["wanted"] - before["own"] - before["floating"]
    beliefs = [
        ("not_announced", then), ("overwrites_credit", taken), ("announces_all", available),
        ("announces_all", then + available), ("announces_unmet", then + missing),
        ("announces_backlog", then + found.op[2]), ("announces_wanted", then + want["wanted"]),
        ("announces_floating", then + want["floating"]), ("announced_twice", then + 2 * taken),
        ("announces_one", then + 1),
    ]  # fmt: skip
    if now < then:
        return "credit_taken_back"
    return next((code for code, value in beliefs if value == now), "announces_wrong")


def _on_recycled(got: dict[str, Any], want: dict[str, Any], before: dict[str, Any]) -> str:
    is_surplus = want["floating"] < before["floating"]
    credit = got["unannounced"] - before["unannounced"]
    if got["wanted"] != want["wanted"]:
        return "wanted_changed"
    if got["own"] < want["own"]:
        return "returns_own"
    if got["floating"] < want["floating"]:
        return "returns_all" if is_surplus else "returns_needed"
    if is_surplus:
        if got["floating"] == want["floating"]:
            return "returns_and_announces"
        return "keeps_floating" if credit else "quiet_surplus"
    if got["floating"] > want["floating"]:
        return "takes_on_recycled"
    if credit == 0:
        return "quiet_without_floating" if want["own"] + want["floating"] > want["wanted"] else "no_credit"
    if got["unannounced"] in (want["own"] + want["floating"], before["unannounced"] + want["own"] + want["floating"]):
        return "announces_all"
    if credit < 0:
        return "credit_taken_back"
    return "announces_more" if got["unannounced"] != want["unannounced"] else "nobody_told"


# -- 11.2: the sender ----------------------------------------------------------------------------------

_SENDER = {
    "A": ["2 / credit 5", "0 / credit 1 / credit 1", "1 / credit 4 / credit 2", "2 / credit 200 / credit 100"],
    "B": ["2 / data / available", "2 / available", "1 / data / available", "3 / data / data / available"],
    "C": ["0 / data / available", "0 / data / data / credit 1 / available"],
    "D": [
        "0 / event / available", "0 / data / event / available", "1 / event / available",
        "0 / event / data / available",
    ],
    "E": ["2 / data / next", "4 / data / next / data / next", "4 / data / data / data / next / next / next"],
    "F": ["1 / event / next", "0 / event / next", "2 / event / event / data / next / next / next"],
    "G": [
        "0 / event / data / next", "1 / data / data / next", "2 / data / data / data / next / next",
        "1 / data / data / next / available / credit 1 / available / next",
    ],
    "H": [
        "1 / data / event / next", "0 / event / event / next", "1 / event / data / next / next",
        "1 / data / event / data / next / next",
    ],
    "I": ["1 / next", "1 / data / next / credit 1 / next"],
}  # fmt: skip


def _mixed_sender(seed: int) -> Iterator[list[Any]]:
    """What a task, a consumer and a connection could do, in random order."""
    generator = random.Random(f"sluice 11.2 {seed}")
    for _ in range(30):
        credit = generator.randint(0, 3)
        ops: list[Any] = [["reader", credit]]
        end = drive_c11.Reader(SubpartitionReader, credit)
        for _ in range(generator.randint(3, 20)):
            op: list[Any] = [generator.choice(("data", "data", "event", "available"))]
            if generator.random() < 0.2:
                op = ["credit", generator.randint(1, 3)]
            elif end.reader.is_available and generator.random() < 0.6:
                op = ["next"]
            end.do(op)
            ops.append(op)
        yield ops


def _simpler_sender(op: list[Any]) -> Iterator[list[Any]]:
    if op[0] == "credit" and op[1] > 1:
        yield ["credit", 1]


def _queue(ops: Any) -> list[str]:
    """What is queued after these operations."""
    queue: list[str] = []
    for op in ops:
        if op[0] in ("data", "event"):
            queue.append(op[0])
        elif op[0] == "next" and queue:
            queue.pop(0)
    return queue


def _sender_belief(found: Difference) -> _Found:
    name = found.op[0]
    credit, before = found.got.get("reader", {}).get("credit"), found.before.get("reader", {}).get("credit", 0)
    want = found.want["reader"]["credit"]
    values = {"got": str(credit), "want": str(want)}
    if name in ("reader", "data", "event"):
        return "different", values
    if name == "credit":
        beliefs = [("credit_replaced", found.op[1]), ("credit_ignored", before), ("credit_counts_calls", before + 1),
                   ("credit_shrinks", before - found.op[1])]  # fmt: skip
        return next((code for code, value in beliefs if value == credit), "credit_wrong"), values
    got, right = found.got.get("answer", {}), found.want["answer"]
    queue = _queue(found.ops[:-1])
    if name == "available":
        if got != right:
            if got.get("may") is False and ["available"] in list(found.ops[:-1]):
                return "old_answer", values
            return _about_may(got.get("may"), queue, before), {"got": str(got.get("may")), "want": str(right["may"])}
        return "asking_costs", values
    if got.get("out") != right["out"]:
        out = str(got.get("out"))
        return _about_out(out, queue, before), {"got": out.removeprefix("? ")}
    if got.get("asked") != right.get("asked"):
        return "asks_often", values
    if credit != want:
        return _about_cost(credit, before, want), values
    more = got.get("more")
    return _about_more(more, queue[1:], before, want), {"got": str(more)}


def _about_may(may: Any, queue: list[str], credit: int) -> str:
    if may == "a method":
        return "is_a_method"
    if not isinstance(may, bool):
        return "no_truth"
    if may:
        if not queue:
            return "may_with_nothing"
        return "data_without_credit" if "event" not in queue else "event_behind_data"
    if queue[0] == "event":
        return "event_needs_credit" if credit == 0 else "event_waits"
    return "needs_two" if credit == 1 else "never_speaks"


def _about_out(out: str, queue: list[str], credit: int) -> str:
    if out == "nothing":
        return "refuses_event" if queue[0] == "event" and credit == 0 else "says_nothing"
    if out.startswith("? what the view gave"):
        return "only_taken"
    if out == "? a pair with None in it":
        return "pair_of_nothing"
    if out in ("with a reference more", "given back"):
        return "retains" if out == "with a reference more" else "recycles"
    return "only_buffer" if out == "? a buffer" else "wrong_answer"


def _about_cost(credit: Any, before: int, want: int) -> str:
    if not isinstance(credit, int):
        return "credit_wrong"
    if want == before:
        return "event_costs" if credit == before - 1 else "credit_wrong"
    return {before: "data_is_free", 0: "spends_all", before + 1: "credit_grows"}.get(credit, "credit_wrong")


def _about_more(more: Any, left: list[str], before: int, credit: int) -> str:
    if not isinstance(more, bool):
        return "no_truth"
    if more:
        if not left:
            return "goes_on_with_nothing"
        return "asks_before_paying" if before else "goes_on_without_credit"
    if left[0] == "event":
        return "stops_before_event" if credit == 0 else "stops_with_credit"
    return "stops_with_credit"


CHECKS = {
    "11.1": ScriptCheck(
        "11.1", BufferManager, drive_c11.run_case, _cases("channels", _RECEIVER), _receiver_belief,
        ("K", _mixed_receiver), simpler=_simpler_receiver,
    ),
    "11.2": ScriptCheck(
        "11.2", SubpartitionReader, drive_c11.run_case, _cases("reader", _SENDER), _sender_belief,
        ("J", _mixed_sender), simpler=_simpler_sender,
    ),
}  # fmt: skip
