"""The race of all ways to push back: what each source did, second by second, and what was inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from refimpl.rivals import INNOCENT, Run, measure, wins
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, curve_path
from widgets.recording import Recording
from widgets.svg import element, name_element, text_element
from widgets.view_models import Model

__all__ = ["RaceView"]

_LEFT, _WIDE = MARGIN + 200, 500
_TALL, _ROW = 52, 78
_ROOM = 192
_BLOCKS = "▁▂▃▄▅▆▇█"
_PER_BLOCK_S = 5
_LETTERS = 108


@dataclass(frozen=True, slots=True)
class _Second:
    """One second of a race."""

    runs: tuple[Run, ...]
    second: int
    num_steps: int
    time_ms: float


class RaceView(FactView):
    """A row for each system: the rate of the slow branch's source over what could pass, and the innocent branch's.

    The slider goes through the seconds of the race, and says what each source and sink did there and what was inside,
    in queues, overflow lists, waiting batches and on wires. `runs` are those of one workload: what
    `course.figures.race.race()` gives, or its `runs`. Options: `title`; `at`, the second to begin with, 0 the first.

        RaceView(race(["storm", "sluice-credit"]))

    Raises:
        LocalUsageError: there are no runs, they are of different phases, or there is no such option.
    """

    default_title = "How others push back"
    kind = "race"

    def __init__(self, runs: Any, **given: Any) -> None:
        found = _runs_of(runs)
        num_seconds = len(found[0].rates())
        recording = Recording({"wins": _wins(found)}, max_frames=num_seconds)
        for second in range(num_seconds):
            moment = _Second(found, second, second + 1, 1_000.0 * (second + 1))
            recording.add(moment)  # type: ignore[arg-type]  # a race is no job, and is gone through like one
        if given.get("at") is None:
            given["at"] = _worst(found[0])
        super().__init__(recording, **given)

    def known_of(self, snapshot: JobSnapshot) -> Model:
        return dict(self._recording.topology)

    def model_of(self, snapshot: Any, action: str, known: Model) -> Model:
        runs, second = snapshot.runs, snapshot.second
        each_second = [phase for phase in runs[0].phases for _ in range(phase.seconds)]
        phase = each_second[second]
        return {
            "kind": self.kind,
            "action": action,
            "num_steps": snapshot.num_steps,
            "time_ms": snapshot.time_ms,
            "phase": phase.name,
            "phases": [{"name": each.name, "num_seconds": each.seconds} for each in runs[0].phases],
            "can_pass_per_s": phase.sustainable_per_s,
            "allowed_per_s": [each.sustainable_per_s for each in each_second],
            "most_per_s": max(max(each.offered_per_s, each.sustainable_per_s) for each in each_second),
            "systems": [_system(run, second) for run in runs],
            "wins": known["wins"],
        }

    @staticmethod
    def moment_words(model: Model) -> str:
        return f"second {model['num_steps']}: {model['phase']}, {model['can_pass_per_s']:g} records a second can pass"

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {"second": model["num_steps"] - 1}
        for number, system in enumerate(model["systems"]):
            facts[f"{number} source"] = f"source {system['source_per_s']:g} /s, sink {system['sink_per_s']:g} /s"
            facts[f"{number} innocent"] = f"innocent {system['innocent_per_s']:g} /s"
            facts[f"{number} inside"] = f"{system['num_inside']} inside"
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        num_seconds = len(model["allowed_per_s"])
        step = _step(model)
        right = _LEFT + step * num_seconds
        bottom = 40.0 + _ROW * len(model["systems"])
        parts = [*_phases(model, bottom)]
        for number, system in enumerate(model["systems"]):
            base = 30.0 + _ROW * number + _TALL + 12
            parts += [
                element("path", d=f"M{_LEFT} {base - _TALL:g}V{base:g}H{right}", class_="axis"),
                _line(model["allowed_per_s"], model, base, "mark"),
                _line(system["innocent_rates_per_s"], model, base, "rate s1"),
                _line(system["source_rates_per_s"], model, base, "rate s0"),
                name_element(MARGIN, base - 34, system["name"], _ROOM, "name"),
                text_element(MARGIN, base - 16, f"up to {system['num_inside_most']} inside", "small soft"),
                pen.words(right + 12, base - 38, f"{number} source", "small"),
                pen.words(right + 12, base - 20, f"{number} innocent", "small soft"),
                pen.words(right + 12, base - 2, f"{number} inside", "small soft"),
            ]
        cursor = element("path", d=f"M{_LEFT} 26V{bottom - 4:g}", class_="mark")
        parts.append(pen.moving("second", 10_000, step, 0, cursor))
        return Drawing(
            "".join(parts) + _key(bottom + 16, model), right + 210, bottom + 44 + 20 * len(_win_lines(model))
        )

    @staticmethod
    def words_of(model: Model) -> list[str]:
        width = max(len(system["name"]) for system in model["systems"])
        lines = [f"{'can pass':<{width}}  {_blocks(model['allowed_per_s'], model)}"]
        for system in model["systems"]:
            lines.append(f"{system['name']:<{width}}  {_blocks(system['source_rates_per_s'], model)}")
            lines.append(f"{'':<{width}}  {_blocks(system['innocent_rates_per_s'], model)}  the innocent branch")
            lines.append(f"{'':<{width}}  {', '.join(_now_words(system))}, at most {system['num_inside_most']}")
        phases = ", ".join(f"{each['name']} ({each['num_seconds']} s)" for each in model["phases"])
        return [*lines, f"phases: {phases}; █ is {model['most_per_s']:g} records a second", *model["wins"]]

    @staticmethod
    def status_of(model: Model) -> str:
        return "; ".join(f"{each['name']}: {each['source_per_s']:g} /s" for each in model["systems"])

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        now = [
            [each["name"], *(pen.cell(f"{number} {what}") for what in ("source", "innocent", "inside"))]
            for number, each in enumerate(model["systems"])
        ]
        names = [each["name"] for each in model["systems"]]
        every = range(0, len(model["allowed_per_s"]), _PER_BLOCK_S)
        curves = [
            [
                str(second + 1),
                f"{model['allowed_per_s'][second]:g}",
                *(f"{each['source_rates_per_s'][second]:g}" for each in model["systems"]),
            ]
            for second in every
        ]
        return [
            ("At this second", ["system", "slow branch", "innocent branch", "records"], now),
            (f"The source, every {_PER_BLOCK_S} s, in records a second", ["second", "can pass", *names], curves),
        ]


# -- the runs ----------------------------------------------------------------------------------------


def _runs_of(given: Any) -> tuple[Run, ...]:
    """The runs of what was given, all of one workload."""
    runs = getattr(given, "runs", given)
    runs = list(runs.values() if isinstance(runs, Mapping) else runs if isinstance(runs, Iterable) else [])
    if not runs or not all(isinstance(each, Run) for each in runs):
        raise LocalUsageError(f"a {type(given).__name__} is no race; give what race() gives, or its runs")
    if len({(each.phases, len(each.samples)) for each in runs}) > 1:
        raise LocalUsageError("these runs had different phases, so they are no race")
    return tuple(runs)


def _wins(runs: tuple[Run, ...]) -> list[str]:
    """Who wins at what, in words; of one system nothing can be said."""
    if len(runs) == 1:
        return []
    found = wins({run.name: measure(run) for run in runs})
    return [f"{win.what}: {' · '.join(win.names) or 'nobody'} ({win.words})" for win in found]


def _worst(run: Run) -> int:
    """The second in which most more was offered than could pass: the middle of that phase."""
    phase = max(run.phases, key=lambda each: each.offered_per_s - each.capacity_per_s)
    before = run.phases[: run.phases.index(phase)]
    return sum(each.seconds for each in before) + phase.seconds // 2


def _system(run: Run, second: int) -> Model:
    source, innocent, inside = run.rates(), run.rates(INNOCENT, of_sink=True), run.num_inside
    return {
        "name": run.name,
        "source_rates_per_s": source,
        "innocent_rates_per_s": innocent,
        "source_per_s": source[second],
        "sink_per_s": run.rates(of_sink=True)[second],
        "innocent_per_s": innocent[second],
        "num_inside": inside[second],
        "num_inside_most": max(inside),
    }


# -- words -----------------------------------------------------------------------------------------


def _now_words(system: Model) -> list[str]:
    return [
        f"source {system['source_per_s']:g} /s",
        f"sink {system['sink_per_s']:g} /s",
        f"innocent {system['innocent_per_s']:g} /s",
        f"{system['num_inside']} inside",
    ]


def _blocks(rates: list[float], model: Model) -> str:
    """A curve in letters, one for some seconds; a blank where nothing moves."""
    means = [sum(rates[at : at + _PER_BLOCK_S]) / len(rates[at : at + _PER_BLOCK_S]) for at in _every(rates)]
    top = len(_BLOCKS) - 1
    return "".join(" " if not mean else _BLOCKS[min(top, int(mean / model["most_per_s"] * top))] for mean in means)


def _every(rates: list[float]) -> range:
    return range(0, len(rates), _PER_BLOCK_S)


# -- the drawing -----------------------------------------------------------------------------------


def _step(model: Model) -> int:
    """How many pixels a second is wide."""
    return max(1, round(_WIDE / len(model["allowed_per_s"])))


def _line(rates: list[float], model: Model, base: float, class_: str) -> str:
    heights = " ".join(str(round(_TALL * min(1.1, rate / model["most_per_s"]))) for rate in rates)
    return element("path", d=curve_path(heights, _LEFT, _step(model), base), class_=class_)


def _phases(model: Model, bottom: float) -> list[str]:
    parts, x = [], float(_LEFT)
    for number, phase in enumerate(model["phases"]):
        wide = _step(model) * phase["num_seconds"]
        if number:
            parts.append(element("path", d=f"M{x:g} 20V{bottom - 4:g}", class_="grid"))
        parts.append(name_element(x + 3, 12 if number % 2 == 0 else 26, phase["name"], max(wide, 130), "small soft"))
        x += wide
    return parts


def _win_lines(model: Model) -> list[str]:
    return [line for words in model["wins"] for line in wrap(words, _LETTERS, subsequent_indent="    ")]


def _key(y: float, model: Model) -> str:
    parts, x = [], float(MARGIN)
    for class_, words in (
        ("rate s0", "the slow branch's source"),
        ("rate s1", "the innocent branch"),
        ("mark", "what can pass"),
    ):
        parts.append(element("path", d=f"M{x:g} {y - 5:g}h36", class_=class_) + text_element(x + 44, y, words, "small"))
        x += 66 + 6.8 * len(words)
    parts.append(text_element(x, y, f"a row: {model['most_per_s']:g} records a second", "small soft"))
    lines = [text_element(MARGIN, y + 26 + 20 * number, words) for number, words in enumerate(_win_lines(model))]
    return element("g", "".join(parts), class_="key", aria_hidden="true") + "".join(lines)
