"""How much flows over time: records or bytes in a second, one line for each task or exchange."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table
from widgets.moment_view import Source
from widgets.on_sight import action_of
from widgets.paper import Curve, Panel, PaperFigure
from widgets.recording import Recording
from widgets.stepper import Stepper
from widgets.svg import element, name_element, text_element
from widgets.text import shortened
from widgets.view_models import Model, moment_of

__all__ = ["ThroughputView"]

_POINTS = 48
_MAX_SERIES = 6
_MAX_MARKS = 10
_KEPT = 4_000
_LEFT, _RIGHT = MARGIN + 74, 960
_STEP = (_RIGHT - _LEFT) / (_POINTS - 1)
_TOP, _BOTTOM = 34, 274
_TALL = _BOTTOM - _TOP
_FLOWS = ("records", "bytes")
_BY = ("vertex", "task")

Sample = tuple[float, dict[str, int]]


class ThroughputView(FactView):
    """Rates over time, a line for each task: how fast records come in, or how many bytes each exchange delivers.

    Options besides those of `MomentView`: `flow`, "records" (of tasks) or "bytes" (of exchanges); `by`, "vertex" for
    all subtasks together or "task" for each; `seconds` of a live job that are shown (30). `mark` writes a word at the
    moment it is called, such as what you have just changed; a swap from the browser marks itself.

        view = ThroughputView(run); view.mark("30 %"); view.paper().save("rates.pdf")

    Raises:
        LocalUsageError: there is no such flow or way to group, or `seconds` is not above 0.
    """

    default_title = "Throughput"
    kind = "throughput"
    own_options = {"flow": "records", "by": "vertex", "seconds": 30}  # noqa: RUF012

    def __init__(self, source: Source, **given: Any) -> None:
        for name, known in (("flow", _FLOWS), ("by", _BY)):
            if given.get(name, known[0]) not in known:
                raise LocalUsageError(f"{name}={given[name]!r}: it is one of {', '.join(map(repr, known))}")
        seconds = given.get("seconds", 30)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 3_600:
            raise LocalUsageError(f"seconds={seconds!r} cannot work: more than 0, at most 3600")
        if isinstance(source, Stepper):
            raise LocalUsageError("a Stepper goes back in time; give its recording: ThroughputView(stepper.recording)")
        self._samples: deque[Sample] = deque(maxlen=_KEPT)
        self._marks: deque[tuple[float, str]] = deque(maxlen=_MAX_MARKS)
        self._whole = source if isinstance(source, Recording) else None
        super().__init__(source, **given)

    def mark(self, words: str) -> None:
        """Write `words` above the moment that is now."""
        if self._source is not None and not isinstance(self._source, Recording | JobSnapshot):
            snapshot = self._source.snapshot()
            if not action_of(self._source):  # else what is shown begins behind the mark
                self._keep((snapshot.time_ms, self._counts(snapshot)))
            self._marks.append((snapshot.time_ms, shortened(str(words), 12)))

    def on_swap(self, name: str) -> None:
        self.mark(name)

    def paper(self) -> PaperFigure:
        """What the view shows now, as a figure for paper: the rates over time, with the marks."""
        model = self.model()
        start, end = model["start_ms"], model["end_ms"]
        times = [round((start + (end - start) * at / (_POINTS - 1)) / 1_000, 4) for at in range(_POINTS)]
        curves = [
            Curve(each["name"], times, each["rates_per_s"], look=number)
            for number, each in enumerate(model["series"][:_MAX_SERIES])
        ]
        marks = [(mark["at_ms"] / 1_000, mark["words"]) for mark in model["marks"]]
        return PaperFigure(self.title, [Panel("seconds", f"{model['flow']} a second", curves, marks=marks)])

    def known_of(self, snapshot: JobSnapshot) -> Model:
        counts = self._counts(snapshot)
        known: Model = {"names": list(counts)}
        if self._whole is not None:
            moments = self._whole.moments
            known["samples"] = [(moment.time_ms, self._counts(moment)) for moment, _ in moments]
            known["end_ms"] = moments[-1][0].time_ms
        return known

    def _counts(self, snapshot: JobSnapshot) -> dict[str, int]:
        """What has flowed so far, by name of the series."""
        counts: Counter[str] = Counter()
        is_each = self.options["by"] == "task"
        if self.options["flow"] == "bytes":
            for partition in snapshot.partitions:
                name = partition.name if is_each else re.sub(r"-\d+ →", " →", partition.name)
                counts[name] += sum(sub.num_bytes_total for sub in partition.subpartitions)
        else:
            for task in snapshot.tasks:
                counts[task.name if is_each else task.name.rpartition("-")[0]] += task.num_records_in
        return dict(counts)

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        now = (snapshot.time_ms, self._counts(snapshot))
        if self._whole is not None:
            end = known["end_ms"]
            place = self._whole.place_of(snapshot)  # several moments may have one time
            samples = known["samples"][: place + 1] if place is not None else [*known["samples"], now]
            start = known["samples"][0][0]
        elif action_of(self._source):  # of a job that has not begun there is one moment
            samples, start, end = [now], now[0], now[0] + 1e-6
        else:
            has_ended = bool(getattr(self._source, "is_done", False))
            if has_ended and self._samples and self._samples[-1][1] == now[1]:
                now = self._samples[-1]  # the clock of a job goes on behind its end
            self._keep(now)
            samples = [each for each in list(self._samples) if each[0] < now[0]] + [now]
            end = max(now[0], samples[0][0] + 1e-6)
            start = max(samples[0][0], end - 1_000 * self.options["seconds"])
        series = [_series(name, samples, start, end, now[0]) for name in known["names"]]
        return {
            **moment_of("throughput", snapshot, action),
            "flow": self.options["flow"],
            "start_ms": round(start, 3),
            "end_ms": round(end, 3),
            "most_per_s": _round_up(max((rate for each in series for rate in each["rates_per_s"] if rate), default=0)),
            "series": series,
            "marks": [{"at_ms": round(at, 3), "words": words} for at, words in list(self._marks) if start <= at <= end],
        }

    def _keep(self, now: Sample) -> None:
        """Have it as the last sample, if it is later than that."""
        if self._samples and self._samples[-1][0] == now[0] and _total(self._samples[-1]) < _total(now):
            self._samples.pop()  # a later moment of the same time
        nearest_ms = 1_000 * self.options["seconds"] / _KEPT
        if len(self._samples) > 1 and self._samples[-1][0] - self._samples[-2][0] < nearest_ms:
            self._samples.pop()  # so that as many seconds as are shown have room
        if not self._samples or self._samples[-1][0] < now[0]:
            self._samples.append(now)

    @staticmethod
    def facts_of(model: Model) -> Facts:
        most = model["most_per_s"]
        facts: Facts = {"most": _number(most), "half": _number(most / 2) if most else ""}
        facts |= {"start": _time(model["start_ms"]), "end": _time(model["end_ms"])}
        for number, series in enumerate(model["series"]):
            facts[f"{number} now"] = f"{_number(series['now_per_s'])} /s"
            facts[f"{number} total"] = _number(series["num_total"])
            if number < _MAX_SERIES:
                facts[f"{number} curve"] = _heights(series["rates_per_s"], most)
        for place in range(_MAX_MARKS):
            mark = model["marks"][place] if place < len(model["marks"]) else None
            facts[f"mark {place}"] = _pixels(mark["at_ms"], model) if mark else -1
            facts[f"mark {place} words"] = mark["words"] if mark else ""
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        unit = f"{model['flow']} a second, {'into each task' if model['flow'] == 'records' else 'delivered'}"
        parts = [
            text_element(_LEFT, 12, unit, "soft"),
            element("path", d=f"M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}", class_="axis"),
            element("path", d=f"M{_LEFT} {_TOP}H{_RIGHT}M{_LEFT} {(_TOP + _BOTTOM) / 2:g}H{_RIGHT}", class_="grid"),
            pen.words(_LEFT - 8, _TOP + 5, "most", "small end"),
            pen.words(_LEFT - 8, (_TOP + _BOTTOM) / 2 + 5, "half", "small end"),
            text_element(_LEFT - 8, _BOTTOM + 5, "0", "small end"),
            pen.words(_LEFT, _BOTTOM + 20, "start", "small soft"),
            pen.words(_RIGHT, _BOTTOM + 20, "end", "small soft end"),
        ]
        for place in range(_MAX_MARKS):
            line = element("path", d=f"M{_LEFT} {_TOP - 4}V{_BOTTOM}", class_="mark")
            words = pen.words(_LEFT + 4, _TOP + 6, f"mark {place} words", "small halo")
            parts.append(pen.moving(f"mark {place}", 10_000, 1, 0, line + words))
        bottom = _BOTTOM + 44
        for number, series in enumerate(model["series"][:_MAX_SERIES]):
            parts.append(pen.curve(f"{number} curve", _LEFT, _STEP, _BOTTOM, f"rate s{number}"))
            y = bottom + number * 22
            parts.append(element("path", d=f"M{_LEFT} {y - 5}h44", class_=f"rate s{number}"))
            parts.append(name_element(_LEFT + 54, y, series["name"], 520, "name"))
            parts.append(pen.words(_RIGHT - 150, y, f"{number} now", "end"))
            parts.append(pen.words(_RIGHT, y, f"{number} total", "small soft end", after=" in all"))
        bottom += min(_MAX_SERIES, len(model["series"])) * 22
        if more := max(0, len(model["series"]) - _MAX_SERIES):
            parts.append(text_element(_LEFT, bottom, f"… and {more} more, in the table", "soft"))
            bottom += 20
        return Drawing("".join(parts), _RIGHT + MARGIN + 20, bottom + 6)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        span = f"{_time(model['start_ms'])} to {_time(model['end_ms'])}"
        lines = [f"{model['flow']} a second, from {span}, at most {_number(model['most_per_s'])}"]
        width = max((len(series["name"]) for series in model["series"]), default=0)
        for series in model["series"]:
            now, total = _number(series["now_per_s"]), _number(series["num_total"])
            lines.append(f"  {series['name']:<{width}}  {now:>7} /s now, {total} in all")
            rates = [f"{_number(rate)}" if rate is not None else "-" for rate in series["rates_per_s"]]
            lines += [f"    {' '.join(rates[first : first + 12])}" for first in range(0, len(rates), 12)]
        lines += [f"  {_time(mark['at_ms'])}: {mark['words']}" for mark in model["marks"]]
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        rates = ", ".join(f"{each['name']} {_number(each['now_per_s'])}" for each in model["series"][:_MAX_SERIES])
        return f"{model['flow']} a second: {rates}"

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        rows = [
            [series["name"], pen.cell(f"{number} now"), pen.cell(f"{number} total")]
            for number, series in enumerate(model["series"])
        ]
        head = ["task" if model["flow"] == "records" else "exchange", "a second, now", "in all"]
        return [(f"Throughput, {model['flow']}", head, rows)]


# -- rates -----------------------------------------------------------------------------------------


def _series(name: str, samples: Sequence[Sample], start: float, end: float, now: float) -> Model:
    """The rate of one thing at `_POINTS` moments; none after `now`."""
    times = [time for time, _ in samples]
    counts = [found.get(name, 0) for _, found in samples]
    width = (end - start) / (_POINTS - 1)
    edges = [start + (place - 1) * width for place in range(_POINTS + 1)]
    levels = [_at(edge, times, counts) if edge >= times[0] else None for edge in edges]
    rates: list[float | None] = []
    for before, after, edge in zip(levels, levels[1:], edges[1:], strict=False):
        if before is None or after is None or edge > now + width / 2 or width <= 0:
            rates.append(None)
        else:
            rates.append(_short(1_000 * (after - before) / width))
    last = next((rate for rate in reversed(rates) if rate is not None), 0)
    return {"name": name, "rates_per_s": rates, "now_per_s": last, "num_total": counts[-1]}


def _at(time: float, times: Sequence[float], counts: Sequence[int]) -> float:
    """What had flowed at a moment, evenly between two looks."""
    place = bisect_right(times, time)
    if place == 0 or place == len(times):
        return float(counts[0] if place == 0 else counts[-1])
    share = (time - times[place - 1]) / (times[place] - times[place - 1])
    return counts[place - 1] + share * (counts[place] - counts[place - 1])


def _total(sample: Sample) -> int:
    return sum(sample[1].values())


def _short(rate: float) -> float:
    """Three digits are as much as a picture can show."""
    return float(f"{rate:.3g}")


def _round_up(rate: float) -> float:
    """The next round number, so that a scale does not move with each frame."""
    if rate <= 0:
        return 0
    power = 10 ** (len(str(int(rate))) - 1)
    return next(float(step * power) for step in (1, 2, 5, 10) if step * power >= rate)


def _number(value: float) -> str:
    """`1.2k`, `34M`: short, for a scale."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * size or (value >= size and value % size == 0):
            return f"{value / size:.3g}{sign}"
    return f"{value:.4g}"


def _time(time_ms: float) -> str:
    return f"{time_ms / 1_000:.1f} s" if time_ms >= 1_000 else f"{time_ms:.3g} ms"


def _heights(rates: Sequence[float | None], most: float) -> str:
    return " ".join("-" if rate is None else str(round(_TALL * min(1.0, rate / (most or 1)))) for rate in rates)


def _pixels(time_ms: float, model: Model) -> int:
    start: float = model["start_ms"]
    end: float = model["end_ms"]
    return round((_RIGHT - _LEFT) * (time_ms - start) / max(1e-6, end - start))
