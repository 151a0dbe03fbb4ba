"""Exercise 11.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from course.checks import drive_credit
from course.checks.common import scripts
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import StateWords
from refimpl.consumer.buffer_manager import BufferManager

__all__ = ["CHECK"]


_RECEIVER = {
    "A": [
        "1 2 8 / backlog 0 3", "1 2 8 / backlog 0 1", "1 1 6 / backlog 0 4", "1 3 9 / backlog 0 5",
        "1 2 60 / backlog 0 50", "1 2 400 / backlog 0 300",
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
        "1 2 4 / backlog 0 3 / announce 0 / backlog 0 7", "1 2 0 / backlog 0 70000",
    ],
    "F": [
        "1 2 1 / backlog 0 4 / backlog 0 6", "1 2 1 / backlog 0 4 / backlog 0 0 / backlog 0 5",
        "1 1 1 / backlog 0 3 / announce 0 / data 0 / read 0 0 / backlog 0 4",
        "1 1 1 / backlog 0 3 / announce 0 / data 0 / read 0 0 / backlog 0 0 / data 0 / read 0 0 / backlog 0 3",
        "2 2 2 / backlog 0 2 / backlog 1 3 / announce 0 / data 0 / read 0 0 / backlog 1 4",
        "1 2 1 / meanwhile 0 3", "1 2 3 / meanwhile 0 5",
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
        gate = drive_credit.Gate(BufferManager, *shape)
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


def _receiver_belief(found: Difference) -> Belief:
    name, channel = found.op[0], f"channel {found.op[1]}" if len(found.op) > 1 else ""
    got, want, before = (state.get(channel, {}) for state in (found.got, found.want, found.was))
    values = {"backlog": str(found.op[2]) if name in ("backlog", "meanwhile") else "", "own": str(found.ops[0][2]),
              "got": str(got.get("unannounced")), "want": str(want.get("unannounced"))}  # fmt: skip
    if name in ("channels", "data", "announce"):
        return "different", values
    if any(not isinstance(each, int) for each in got.values()):
        return "no_number", values
    if name == "meanwhile":
        return "stands_nowhere", values
    if got == want:
        return _elsewhere(found), values
    if name == "backlog":
        values |= {"got": str(got["wanted"]), "want": str(want["wanted"])} if got["wanted"] != want["wanted"] else {}
        return _on_backlog(found, got, want, before), values
    return _on_recycled(found, got, want, before), values


def _elsewhere(found: Difference) -> str:
    """The channel itself is as it should be: its pool, or a neighbour, is not."""
    pools = found.got.get("pool", {}), found.want["pool"]
    if any(group.startswith("channel") for group in found.names):
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
            ("zero_ignored", before["wanted"] if not backlog else -1),
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
    backlog, free = found.op[2], found.was["pool"]["free"]
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


def _on_recycled(found: Difference, got: dict[str, Any], want: dict[str, Any], before: dict[str, Any]) -> str:
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
        if found.got["pool"].get("free") != found.was["pool"]["free"]:
            return "sent_and_kept"
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


CHECK = TranscriptCheck(
    "11.1", BufferManager, drive_credit, scripts("channels", _RECEIVER), _receiver_belief,
    Seeded("K", _mixed_receiver, _simpler_receiver, setup="channels"), words=StateWords("11.1"),
)  # fmt: skip
