"""Exercise 0.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.common import ending_finding
from course.curriculum.messages import phrase
from course.curriculum.parts import to_departure
from course.data.flights import FLIGHT_COLUMNS
from course.exercises.e00_1_departure import driver
from course.grading.rules import Case, Finding, Row, Rule, Seen
from course.grading.shrink import smaller_lists

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


def _simpler(flight: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same flight with a delay nearer to 0, and the first one there is."""
    delay = flight["dep_delay_minutes"]
    for less in {0, delay // 2 if delay > 0 else -(-delay // 2), delay - 1 if delay > 0 else delay + 1} - {delay}:
        yield _flight(less, flight["origin"], flight["dest"], flight["carrier"])
    yield _flight(delay)


class MapCheck:
    """The check of 0.1, as the judge needs it."""

    exercise = "0.1"
    rules: Sequence[Rule] = tuple(Rule(each) for each in "ABCDEFG")

    def cases(self, seed: int) -> list[Case]:
        """Cases by rule; only those of rule G depend on `seed`."""
        found: list[Case] = []

        def add(rule: str, *flights: dict[str, Any], ran: str = "") -> None:
            found.append(Case(rule, list(flights), ran or _told(flights[0])))

        for rule in "ABC":
            add(rule, _flight(83))
            add(rule, _flight(20, "EWR", "IAH", "UA"))
        add("B", _shuffled(_flight(7, "LGA", "ATL", "DL"), "dest"), ran=_say("other_order"))
        for delay in (1, 59, 60, 61, 600, 1301, 20_000):
            add("C", _flight(delay, "LGA", "ORD", "MQ"))
        for delay in (-4, 0, -1, -43, -1500):
            add("D", _flight(delay))
        add("E", _flight(12), ran=_say("looked_at", delay=12))
        add("E", _flight(-4), ran=_say("looked_at_early", delay=4))
        add("F", _flight(9), _flight(9), ran=_say("same_twice"))
        add(
            "F",
            _flight(30),
            _flight(-2),
            _flight(0),
            _flight(5, "EWR"),
            _flight(30),
            ran=_say("several", number=5, delays="30, -2, 0, 5, 30"),
        )
        add(
            "F",
            *({**_flight(30, origin), "event_time_ms": 0} for origin in ("JFK", "EWR", "LGA")),
            ran=_say("several", number=3, delays="30, 30, 30"),
        )
        generator = random.Random(f"sluice 0.1 {seed}")
        for _ in range(20):
            flights = []
            for _ in range(generator.randint(1, 6)):
                origin, dest = generator.sample(["JFK", "EWR", "LGA", "ATL", "ORD", "BOS"], 2)
                carrier = generator.choice(["UA", "B6", "EV"])
                flights.append(_flight(generator.randint(-43, 1301), origin, dest, carrier))
            add("G", *flights, ran=_say("from_the_seed", number=len(flights)))
        return found

    def expected(self, cases: Sequence[Case]) -> list[list[Any]]:
        """The reference function's events."""
        found: list[list[Any]] = []
        for case in cases:
            events: list[Any] = []
            driver.run_case(to_departure, case.ops, events)
            found.append(events)
        return found

    def smaller(self, case: Case) -> Iterator[Case]:
        """Of the flights made from the seed: fewer, and with delays nearer to 0."""
        for flights in smaller_lists(case.ops, _simpler) if case.rule == "G" else ():
            if flights:
                several = _say("several", number=len(flights), delays=_delays(flights))
                yield Case(case.rule, flights, _told(flights[0]) if len(flights) == 1 else several)

    def compare(self, rule: Rule, case: Case, seen: Seen, expected: list[Any]) -> Finding | None:
        """The first call that breaks the rule."""
        for number, (flight, want) in enumerate(zip(case.ops, expected, strict=True), 1):
            event = seen.events[number - 1] if number <= len(seen.events) else None
            if (event is None or len(event) != 3) and case.ran == _say("other_order") and seen.ending:
                return Finding(rule.id, "by_position", case.ran, values={"got": phrase("an_exception")})
            if event is None or len(event) != 3:
                return ending_finding("0.1", rule.id, case, seen, (), "to_departure")
            code = _broken(rule.id, event, want, flight, number)
            if code is None:
                continue
            changed = rule.id == "E" or (rule.id == "G" and event[1] == want[1])
            yours, right = (_dict(event[2]), _dict(want[2])) if changed else (_text(event[1]), _text(want[1]))
            rows = [Row(_say("call", number=number) if len(case.ops) > 1 else _say("answer"), phrase("yours"), yours),
                    Row("", phrase("right"), right)]  # fmt: skip
            values = {"got": _text(event[1]), "want": _text(want[1]), "delay": str(flight["dep_delay_minutes"])}
            return Finding(rule.id, code, case.ran, rows, values)
        return ending_finding("0.1", rule.id, case, seen, (), phrase("the_end")) if seen.ending is not None else None

    def tell(self, event: list[Any]) -> str:
        """An answer as Python writes it, and the flight as it is afterwards."""
        if len(event) != 3:
            return phrase("no_return", call="to_departure")
        return f"{_text(event[1])}   {_say('flight_now')} {_dict(event[2])}"


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


def _broken(rule: str, event: list[Any], want: list[Any], flight: dict[str, Any], number: int) -> str | None:
    """The code of what is wrong under this rule, or None."""
    answer, right = event[1], want[1]
    if rule == "A":
        if answer[0] == "str" and flight["origin"] in answer[1] and str(flight["dep_delay_minutes"]) in answer[1]:
            return "one_text"
        return _shape(answer)
    if rule == "E":
        return None if event[2] == want[2] else _change(event[2], want[2])
    if rule == "G":
        return None if event[1:] == want[1:] else "different"
    if _shape(answer) is not None:
        return "drops_early" if rule == "D" and answer[0] == "NoneType" else "shape_changes"
    if rule == "B":
        return None if answer[1][0] == right[1][0] else _about_airport(answer[1], flight)
    if rule in "CD":
        return None if answer[1][1] == right[1][1] else _about_delay(rule, answer[1][1], flight)
    return None if answer == right else ("remembers" if number > 1 else "different")


def _shape(answer: list[Any]) -> str | None:
    kind = answer[0]
    if kind == "tuple":
        return None if answer[2] == 2 else "not_a_pair"
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


CHECK = MapCheck()
