"""Exercise 13.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from course.checks.common import scripts
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.checks.words import FieldWords
from course.curriculum.messages import phrase
from course.exercises.e13_2_valve import driver
from refimpl.consumer.watermark_valve import StatusWatermarkValve
from refimpl.records import MAX_WATERMARK, MIN_TIMESTAMP, StreamStatus, Watermark

__all__ = ["CHECK", "goes_on_alike"]

_MANY = 40
_NO_LIST = "? no list: "
_END = MAX_WATERMARK.timestamp

_CASES = {
    "A": [
        "1 / watermark 0 5", "1 / watermark 0 5 / watermark 0 9 / watermark 0 23", "1 / watermark 0 -7 / watermark 0 0",
    ],
    "B": [
        "3 / watermark 0 30 / watermark 1 20 / watermark 2 41", "2 / watermark 0 30",
        "2 / watermark 1 30 / watermark 0 20 / watermark 1 70 / watermark 0 50",
        "3 / watermark 2 40 / watermark 0 10 / watermark 1 25 / watermark 0 90 / watermark 1 95",
    ],
    "C": [
        "1 / watermark 0 5 / watermark 0 5", "1 / watermark 0 9 / watermark 0 4 / watermark 0 8 / watermark 0 10",
        "2 / watermark 0 30 / watermark 1 20 / watermark 0 60", "2 / watermark 0 30 / watermark 1 30 / watermark 1 50",
        "2 / watermark 0 60 / watermark 1 20 / watermark 0 40 / watermark 1 70 / watermark 0 65",
    ],
    "D": [
        "2 / watermark 0 20 / watermark 1 20 / idle 1 / watermark 0 30",
        "2 / watermark 0 30 / watermark 1 20 / idle 1", "3 / watermark 0 30 / watermark 1 20 / watermark 2 45 / idle 1",
        "2 / watermark 0 30 / idle 1 / watermark 0 40", "3 / watermark 0 30 / watermark 1 50 / idle 2 / idle 0",
        "3 / watermark 0 60 / watermark 1 20 / watermark 2 30 / idle 0 / watermark 1 25 / watermark 2 80",
        "2 / watermark 0 30 / watermark 1 20 / idle 1 / watermark 1 90 / watermark 0 50",
        "2 / idle 1 / watermark 1 30 / watermark 0 20", "2 / watermark 0 30 / watermark 1 20 / idle 0 / watermark 1 26",
    ],
    "E": [
        "1 / watermark 0 5 / idle 0", "1 / idle 0", "2 / watermark 0 30 / watermark 1 20 / idle 1 / idle 0",
        "2 / watermark 0 30 / watermark 1 20 / idle 0 / idle 1",
        "3 / watermark 0 30 / watermark 1 80 / watermark 2 50 / idle 1 / idle 2 / idle 0",
        "2 / watermark 0 30 / watermark 1 20 / idle 0 / idle 1 / watermark 0 70 / watermark 1 90",
    ],
    "F": [
        "1 / watermark 0 5 / idle 0 / active 0 / watermark 0 9", "2 / idle 0 / idle 1 / active 1 / watermark 1 30",
        "2 / watermark 0 30 / watermark 1 20 / idle 1 / active 1",
        "2 / watermark 0 30 / watermark 1 20 / idle 1 / active 1 / watermark 1 25 / watermark 0 70",
        "2 / watermark 0 30 / watermark 1 20 / idle 1 / active 1 / watermark 0 70",
        "2 / watermark 0 30 / watermark 1 20 / idle 1 / watermark 0 70 / active 1 / watermark 1 90 / watermark 0 80",
        "2 / watermark 0 30 / watermark 1 20 / idle 1 / active 1 / watermark 1 30 / watermark 0 70 / watermark 1 60",
        "2 / watermark 0 30 / watermark 1 20 / idle 0 / idle 1 / active 0 / active 1 / watermark 0 40 / watermark 1 50",
        "2 / watermark 0 30 / watermark 1 20 / idle 1 / active 1 / idle 0",
        "2 / watermark 0 10 / idle 1 / watermark 1 30 / active 1 / watermark 0 50",
        "2 / watermark 0 30 / watermark 1 20 / idle 0 / active 0 / watermark 1 50",
    ],
    "G": [
        "1 / active 0", "2 / idle 0 / idle 0",
        "2 / watermark 0 30 / watermark 1 20 / idle 1 / idle 1 / idle 0 / idle 0",
        "2 / idle 0 / idle 1 / idle 0", "2 / idle 0 / idle 1 / active 0 / active 0 / active 1",
        "2 / watermark 0 30 / watermark 1 20 / active 1 / watermark 1 25",
    ],
    "H": [
        f"2 / watermark 0 30 / watermark 1 20 / watermark 0 {_END} / watermark 1 {_END}",
        f"2 / watermark 0 {MIN_TIMESTAMP} / watermark 1 {MIN_TIMESTAMP + 1} / watermark 0 {MIN_TIMESTAMP + 2}",
        "2 / watermark 0 -30 / watermark 1 -20 / watermark 0 0 / watermark 1 0",
        "2 / watermark 0 1357035300000 / watermark 1 1357036140000 / watermark 0 1357036140000",
        f"{_MANY} / " + " / ".join(f"watermark {n} {100 + n * 7 % _MANY}" for n in range(_MANY)) + " / idle 0 / idle 7",
        "2 / idle 0 / watermark 1 300 / active 0 / watermark 0 299 / watermark 1 301 / watermark 0 301",
    ],
}  # fmt: skip


def goes_on_alike(valve: StatusWatermarkValve) -> bool:
    """Whether all who keep to the text say the same from here on.

    Time may stand behind the least of those that count when nobody held it back: everybody else was idle or had to
    catch up. Flink moves it with the next watermark only; who moves it at once, or when the next channel goes idle,
    is right as well. Cases end before that.
    """
    idle, last = set(valve.idle_channels), valve.current_watermark
    marks = [mark for index, mark in enumerate(valve.channel_watermarks) if index not in idle]
    counting = [mark for mark in marks if mark >= last]
    return min(counting, default=last) <= last if marks else max(valve.channel_watermarks) <= last


def _do(valve: StatusWatermarkValve, op: Sequence[Any]) -> None:
    if op[0] == "watermark":
        valve.input_watermark(Watermark(op[2]), op[1])
    else:
        valve.input_status(StreamStatus[op[0].upper()], op[1])


def _after(ops: Sequence[Any]) -> StatusWatermarkValve:
    valve = StatusWatermarkValve(ops[0][1])
    for op in ops[1:]:
        _do(valve, op)
    return valve


def _seeded(seed: int) -> Iterator[list[Any]]:
    generator = random.Random(f"sluice 13.2 {seed}")
    for _ in range(80):
        num_channels = generator.randint(1, 4)
        ops: list[Any] = [["channels", num_channels]]
        valve = StatusWatermarkValve(num_channels)
        for number in range(generator.randint(3, 24)):
            op: list[Any] = ["watermark", generator.randrange(num_channels), 3 * number + generator.randint(-20, 20)]
            if generator.random() < 0.35:
                op = [generator.choice(("idle", "active")), op[1]]
            _do(valve, op)
            if not goes_on_alike(valve):
                break
            ops.append(op)
        if len(ops) > 1:
            yield ops


def _is_valid(ops: list[Any]) -> bool:
    valve = StatusWatermarkValve(ops[0][1])
    for op in ops[1:]:
        _do(valve, op)
        if not goes_on_alike(valve):
            return False
    return True


def _simpler(op: Sequence[Any]) -> Iterator[list[Any]]:
    if op[0] == "watermark" and op[2]:
        yield from (["watermark", op[1], less] for less in {0, int(op[2] / 2)})


# -- beliefs -----------------------------------------------------------------------------------------


def _belief(found: Difference) -> Belief:
    got, want = found.got.get("out", []), found.want["out"]
    valve = _after(found.before)
    values = {"got": _said(got), "want": _said(want), "last": str(valve.current_watermark)}
    if any(str(each).startswith("?") for each in got):
        strange = next(str(each) for each in got if str(each).startswith("?"))
        is_no_list = strange.startswith(_NO_LIST)
        return "no_list" if is_no_list else "strange", {
            **values,
            "got": strange.removeprefix(_NO_LIST).removeprefix("? "),
        }
    times = [each for each in got if isinstance(each, int)]
    statuses = [each for each in got if isinstance(each, str)]
    if statuses != [each for each in want if isinstance(each, str)]:
        return _about_statuses(found, valve, statuses), values
    if sorted(times) == [each for each in want if isinstance(each, int)]:
        return "order", values
    if set(times) & _said_while_idle(found.before) - set(want):
        return "idle_noted", values
    if found.op[0] == "watermark":
        return _of_all_watermarks(found) or _about_watermarks(found, valve, times), values
    if found.op[0] == "active":
        return ("back_in_time" if times[0] < valve.current_watermark else "moves_at_return"), values
    return _about_idleness(valve, times, want), values


def _said_while_idle(ops: Sequence[Any]) -> set[int]:
    """The watermarks of channels that were idle when they came."""
    idle: set[int] = set()
    said: set[int] = set()
    for name, index, *time in ops[1:]:
        if name == "watermark" and index in idle:
            said.add(*time)
        elif name != "watermark":
            idle = idle | {index} if name == "idle" else idle - {index}
    return said


def _about_statuses(found: Difference, valve: StatusWatermarkValve, statuses: list[str]) -> str:
    name, index = found.op[:2]
    is_known = name != "watermark" and (index in valve.idle_channels) == (name == "idle")
    if found.op[0] == "watermark":
        return "status_at_watermark"
    if is_known:
        return "status_again"
    if not statuses:
        return "idle_not_said" if name == "idle" else "active_not_said"
    return "idle_too_early" if name == "idle" else "active_too_often"


def _of_all_watermarks(found: Difference) -> str:
    """The belief that explains everything that was said in a case of watermarks alone, or ""."""
    ops = found.every_op[1:]
    if any(op[0] != "watermark" for op in ops) or found.every_op[0][1] < 2:
        return ""
    said = [event[1].get("out") if len(event) > 1 else None for event in found.events[1:]]
    told: dict[int, int] = {}
    last = dict.fromkeys(("maximum", "forgets_silent", "noted_old"), MIN_TIMESTAMP)
    outs: dict[str, list[Any]] = {code: [] for code in ("forwards_each", *last)}
    newest = dict.fromkeys(range(found.every_op[0][1]), MIN_TIMESTAMP)
    for _, index, time in ops:
        told[index] = max(time, told.get(index, time))
        newest[index] = time
        outs["forwards_each"].append([time])
        reached = {
            "maximum": max(told.values()),
            "forgets_silent": min(told.values()),
            "noted_old": min(newest.values()),
        }
        for code, at in reached.items():
            outs[code].append([at] if at > last[code] else [])
            last[code] = max(last[code], at)
    return next((code for code, each in outs.items() if each == said), "")


def _about_watermarks(found: Difference, valve: StatusWatermarkValve, times: list[int]) -> str:
    _, index, time = found.op
    if times == [MIN_TIMESTAMP]:
        return "least_long"
    want, last, marks, idle = found.want["out"], valve.current_watermark, valve.channel_watermarks, valve.idle_channels
    largest = max(*marks, time)
    if not times:
        if len(marks) == 1:
            return "forwards_nothing"
        return "waits_for_idle" if idle else "waits_for_late" if _late(valve) else "too_slow"
    (got, *more) = times
    if more:
        return "several_at_once"
    if index in idle:
        return "idle_speaks"
    if time <= marks[index]:
        return "equal_again" if got == last else "old_mark"
    if got == last:
        return "equal_again"
    if got < last:
        return "back_in_time"
    if got == largest and len(marks) > 1:
        return "maximum"
    if got == time:
        return "forwards_each"
    told = [mark for place, mark in enumerate((*marks, time)) if place != index and mark != MIN_TIMESTAMP]
    if MIN_TIMESTAMP in marks and got == min(told):
        return "forgets_silent"
    if want:
        return "waits_for_idle" if idle and got < want[0] else "wrong_time"
    return "too_early"


def _late(valve: StatusWatermarkValve) -> bool:
    """Whether a channel is active and has to catch up."""
    marks = enumerate(valve.channel_watermarks)
    return any(mark < valve.current_watermark for index, mark in marks if index not in valve.idle_channels)


def _about_idleness(valve: StatusWatermarkValve, times: list[int], want: list[Any]) -> str:
    is_last = "IDLE" in want
    if not times:
        return "not_flushed" if is_last else "idle_holds"
    (got, *_) = times
    if got == valve.current_watermark:
        return "equal_again"
    if got < valve.current_watermark:
        return "back_in_time"
    return "flushes_least" if is_last else "idle_maximum"


def _said(out: Sequence[Any]) -> str:
    return ", ".join(map(_told, out)) or phrase("nothing_out", "13.2")


def _told(each: Any) -> str:
    if isinstance(each, int):
        return phrase("told_watermark", "13.2", a=each)
    if str(each).startswith(_NO_LIST):
        return phrase("told_no_list", "13.2", a=str(each).removeprefix(_NO_LIST))
    return str(each).removeprefix("? ")


def _op(op: Sequence[Any]) -> str:
    return phrase(f"op_{op[0]}", "13.2", **dict(zip("ab", op[1:], strict=False)))


def _field(_name: str, value: Any) -> str:
    return _said(value)


CHECK = TranscriptCheck(
    "13.2", StatusWatermarkValve, driver, scripts("channels", _CASES), _belief,
    Seeded("I", _seeded, _simpler, is_valid=_is_valid, setup="channels"),
    words=FieldWords("13.2", _op, _field),
)  # fmt: skip
