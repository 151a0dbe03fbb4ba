"""Exercise 0.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.transcript import Difference, Seeded, TranscriptCheck
from course.checks.words import Words, pair
from course.curriculum.messages import phrase
from course.curriculum.parts import to_departure
from course.data.flights import FLIGHT_COLUMNS
from course.exercises.e00_1_departure import driver
from course.grading.rules import Case, Finding, Row

__all__ = ["CHECK"]


def _say(key: str, **values: object) -> str:
    return phrase(key, "0.1", **values)


def _flight(delay: int, origin: str = "JFK", dest: str = "LAX", carrier: str = "AA") -> dict[str, Any]:
    values = (1_357_034_400_000 + 60_000 * delay, origin, carrier, dest, delay)
    return dict(zip(FLIGHT_COLUMNS, values, strict=True))


def _shuffled(flight: dict[str, Any], first: str) -> dict[str, Any]:
    return {first: flight[first], **{k: v for k, v in sorted(flight.items()) if k != first}, "tail": "N14228"}


def _told(flight: dict[str, Any]) -> str:
    return _say("flight", origin=flight["origin"], dest=flight["dest"], delay=flight["dep_delay_minutes"])


def _delays(flights: Sequence[dict[str, Any]]) -> str:
    return ", ".join(str(flight["dep_delay_minutes"]) for flight in flights)


def _simpler(op: list[Any]) -> Iterator[list[Any]]:
    """The same flight with a delay nearer to 0, and the first one there is."""
    flight = op[1]
    delay = flight["dep_delay_minutes"]
    for less in {0, delay // 2 if delay > 0 else -(-delay // 2), delay - 1 if delay > 0 else delay + 1} - {delay}:
        yield ["call", _flight(less, flight["origin"], flight["dest"], flight["carrier"])]
    yield ["call", _flight(delay)]


def _case(rule: str, flights: Sequence[dict[str, Any]], key: str, **values: object) -> Case:
    """A case with words of its own."""
    return Case(rule, [["call", each] for each in flights], _say(key, **values))


def _calls(*flights: dict[str, Any]) -> list[list[Any]]:
    """Cases of one call each."""
    return [[["call", each]] for each in flights]


_TWO = _calls(_flight(83), _flight(20, "EWR", "IAH", "UA"))
_MANY = [_flight(30), _flight(-2), _flight(0), _flight(5, "EWR"), _flight(30)]
_CASES: dict[str, list[list[Any] | Case]] = {
    "A": [*_TWO],
    "B": [*_TWO, _case("B", [_shuffled(_flight(7, "LGA", "ATL", "DL"), "dest")], "other_order")],
    "C": [*_TWO, *_calls(*(_flight(delay, "LGA", "ORD", "MQ") for delay in (1, 59, 60, 61, 600, 1301, 20_000)))],
    "D": [*_calls(*map(_flight, (-4, 0, -1, -43, -1500)))],
    "E": [_case("E", [_flight(12)], "looked_at", delay=12), _case("E", [_flight(-4)], "looked_at_early", delay=4)],
    "F": [
        _case("F", [_flight(9), _flight(9)], "same_twice"), [["call", each] for each in _MANY],
        [["call", {**_flight(30, origin), "event_time_ms": 0}] for origin in ("JFK", "EWR", "LGA")],
    ],
}  # fmt: skip
_LOOKS_AT = {
    "A": ["shape"], "B": ["shape", "airport"], "C": ["shape", "delay"], "D": ["shape", "delay"], "E": ["flight"],
    "F": ["shape", "answer"], "G": ["answer", "flight"],
}  # fmt: skip


def _seeded(seed: int) -> Iterator[Case]:
    generator = random.Random(f"sluice 0.1 {seed}")
    for _ in range(20):
        flights = []
        for _ in range(generator.randint(1, 6)):
            origin, dest = generator.sample(["JFK", "EWR", "LGA", "ATL", "ORD", "BOS"], 2)
            carrier = generator.choice(["UA", "B6", "EV"])
            flights.append(_flight(generator.randint(-43, 1301), origin, dest, carrier))
        yield _case("G", flights, "from_the_seed", number=len(flights))


class _Words(Words):
    """Flights, and answers as Python writes them."""

    def told(self, ops: Sequence[Any]) -> str:
        flights = [flight for _, flight in ops]
        return _told(flights[0]) if len(ops) == 1 else _say("several", number=len(ops), delays=_delays(flights))

    def tell(self, event: Sequence[Any]) -> str:
        """An answer, and the flight as it is afterwards."""
        return f"{_text(event[1]['answer'])}   {_say('flight_now')} {_dict(event[1]['flight'])}"

    def values(self, found: Difference) -> dict[str, str]:
        got, want = map(_text, found.answers)
        return {**super().values(found), "got": got, "want": want, "delay": str(found.op[1]["dep_delay_minutes"])}

    def rows(self, found: Difference) -> list[Row]:
        label = _say("call", number=found.index + 1) if len(found.every_op) > 1 else _say("answer")
        told, field = (_dict, "flight") if found.field == "flight" else (_text, "answer")
        return pair(label, told(found.got[field]), told(found.want[field]), "right")


def _ending(found: Finding, _op: object) -> Finding:
    """A flight with its keys in another order was too much: it was read by position."""
    if found.ran != _say("other_order") or found.code == "vanished":
        return found
    return Finding(found.rule, "by_position", found.ran, values={"got": phrase("an_exception")})


def _text(plain: list[Any]) -> str:
    """A value as Python would write it, from its plain form."""
    kind, content = plain[0], plain[1]
    if kind == "str":
        return repr(content)
    if kind in ("tuple", "list", "set", "generator"):
        inner = ", ".join(_text(each) for each in content[:4]) + (", …" if len(content) > 4 else "")
        brackets = {"tuple": f"({inner})", "list": f"[{inner}]", "set": f"{{{inner}}}"}
        return brackets.get(kind) or _say("generator", inner=inner)
    if kind == "dict":
        return _dict(content)
    return str(content) if kind in ("int", "float", "bool", "NoneType") else f"{kind} {content}".strip()


def _dict(items: list[Any]) -> str:
    shown = "{" + ", ".join(f"{key}: {_text(value)}" for key, value in items if key != "event_time_ms") + "}"
    return shown if len(shown) <= 72 else shown[:71] + "…"


def _belief(found: Difference) -> str:
    rule, flight, answer = found.rule, found.op[1], found.got["answer"]
    if rule == "A":
        if answer[0] == "str" and flight["origin"] in answer[1] and str(flight["dep_delay_minutes"]) in answer[1]:
            return "one_text"
        return _shape(answer)
    if rule == "E":
        return _change(*found.values)
    if rule == "G":
        return "different"
    if found.field == "shape":
        return "drops_early" if rule == "D" and answer[0] == "NoneType" else "shape_changes"
    if rule == "B":
        return _about_airport(answer[1], flight)
    if rule in "CD":
        return _about_delay(rule, answer[1][1], flight)
    return "remembers" if found.index else "different"


def _shape(answer: list[Any]) -> str:
    kind = answer[0]
    if kind == "tuple":
        return "not_a_pair"
    if kind == "generator":
        return "yields"
    if kind == "list":
        pairs = answer[1] and all(each[0] in ("tuple", "list") for each in answer[1])
        return "list_of_pairs" if pairs else "list_not_pair"
    if kind == "the flight":
        return "returns_flight"
    return {
        "NoneType": "returns_nothing",
        "dict": "returns_dict",
        "str": "one_value",
        "int": "one_value",
        "float": "one_value",
        "coroutine": "coroutine",
    }.get(kind, "other_type")


def _about_airport(pair: list[Any], flight: dict[str, Any]) -> str:
    got = pair[0]
    if got == ["str", flight["dest"]]:
        return "destination"
    if got == ["str", flight["carrier"]]:
        return "carrier"
    if got[0] in ("int", "float"):
        return "pair_turned" if pair[1] == ["str", flight["origin"]] else "by_position"
    if got[0] == "str" and str(got[1]).strip().upper() == flight["origin"]:
        return "spelling"
    return "airport_wrong"


def _about_delay(rule: str, got: list[Any], flight: dict[str, Any]) -> str:
    delay = flight["dep_delay_minutes"]
    kind, value = got[0], str(got[1])
    if kind == "str":
        return "delay_text"
    if kind == "NoneType":
        return "drops_early" if rule == "D" else "delay_none"
    if rule == "D" and kind == "int":
        early = {str(delay): "below_zero", str(abs(delay)): "absolute", "1": "one_for_zero"}
        return early.get(value, "early_wrong")
    if kind == "float":
        return "hours" if value == str(delay / 60) else "delay_float"
    if kind == "bool":
        return "delay_bool"
    if delay >= 60 and value in (str(delay // 60), str(round(delay / 60))):
        return "hours"
    if value == str(flight["event_time_ms"]):
        return "delay_is_time"
    if value in (str(delay * 60), str(delay * 60_000), str(delay * 1000)):
        return "other_unit"
    if value == "0":
        return "late_is_zero"
    if kind not in ("int", "tuple", "list", "set", "dict"):
        return "delay_other_type"
    return "arithmetic" if kind == "int" else "delay_wrong"


def _change(after: list[Any], before: list[Any]) -> str:
    now, then = {item[0] for item in after}, {item[0] for item in before}
    if now - then:
        return "adds_key"
    return "removes_key" if then - now else "changes_value"


CHECK = TranscriptCheck(
    "0.1", to_departure, driver, _CASES, _belief, Seeded("G", _seeded, _simpler), _LOOKS_AT, _Words("0.1"), _ending
)
