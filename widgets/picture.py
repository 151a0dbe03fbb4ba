"""A moving picture of a real run, for a page that has no kernel: `python -m widgets.picture PATH`.

A small job runs in a simulation: two sources, keyed to two windows, the second of which is slow. What each
memory segment did, step by step, becomes one animated SVG: out of the pool, into a queue while it is
filled, read, and home. Nothing in it is invented, and the same code draws the same bytes.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Action
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader, TumblingWindows
from widgets.svg import document, element, text_element
from widgets.text import PROGRESS_SYMBOL, PROGRESS_WORD
from widgets.view_models import Model, pipeline_model, topology

__all__ = ["run_picture"]

_STEP_S = 0.3
_STEPS_BEFORE_BUSY = 4
_SEED = 11
_NUM_RECORDS = 44
_NUM_BUFFERS = 12
_SLOW, _SLOW_WEIGHT = "window → sink-1", 0.14
_WIDTH, _HEIGHT = 960, 478
_SOURCE_X, _WINDOW_X, _STATION_WIDTH, _STATION_HEIGHT = 24, 716, 220, 132
_TOPS = (84, 240)
_POOL_TOP = 396
_QUEUE_X, _TOKEN_WIDTH, _TOKEN_HEIGHT, _TOKEN_STEP = 520, 30, 26, 35

Point = tuple[float, float]


@dataclass
class _Moment:
    """One step: where each segment is, how full in parts of one, and how each task stands."""

    places: dict[int, Point] = field(default_factory=dict)
    levels: dict[int, float] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    num_queued: int = 0


def run_picture(path: str | Path) -> Path:
    """Run the job and write its picture to `path`; returns the path.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(path)
    target.write_text(_drawing(_moments()), encoding="utf-8")
    return target


# -- the run ---------------------------------------------------------------------------------------


class _Count:
    def create_accumulator(self) -> int:
        return 0

    def add(self, _value: object, total: int) -> int:
        return total + 1

    def get_result(self, total: int) -> int:
        return total


def _job() -> StreamEnvironment:
    config = Config(segment_size_bytes=48, num_buffers=_NUM_BUFFERS, source_batch=2, buffer_timeout_ms=-1)
    environment = StreamEnvironment(config, 2)
    (
        environment.source(lambda i, n: IterableReader(list(range(i, _NUM_RECORDS, n))))
        .assign_timestamps(lambda value: value * 1_000, 0)
        .key_by(lambda value: value % 7)
        .window(TumblingWindows(20_000))
        .aggregate(_Count())
        .sink(lambda _result: None)
    )
    return environment


def _moments() -> list[_Moment]:
    """Every step of the run, the slow window being chosen seldom; begins and ends with all segments free."""
    choice = random.Random(_SEED)
    simulation = Simulation(_job())
    known = topology(simulation.snapshot())
    moments = [_moment(simulation, known)]
    while enabled := simulation.enabled():
        simulation.step(_pick(enabled, choice))
        moments.append(_moment(simulation, known))
    end = _moment(simulation, known)
    simulation.deployment.close()
    return [*moments, end, _Moment(dict(moments[0].places), {}, end.words)]


def _pick(enabled: Sequence[Action], choice: random.Random) -> Action:
    weights = [_SLOW_WEIGHT if _SLOW in str(action) else 1.0 for action in enabled]
    return choice.choices(enabled, weights)[0]


def _moment(simulation: Simulation, known: Model) -> _Moment:
    model = pipeline_model(simulation.snapshot(), known)
    moment = _Moment(words=[task["progress"] for task in model["tasks"]])
    for number, segment in enumerate(simulation.deployment.pool.free_segments):
        moment.places[segment.id] = (492 + number * _TOKEN_STEP, _POOL_TOP + 16)
    for number, partition in enumerate(simulation.deployment.partitions):
        for index, segment in enumerate(partition.pool.idle_segments):
            moment.places[segment.id] = (_SOURCE_X + 66 + index * _TOKEN_STEP, _TOPS[number] + 90)
    for channel in model["channels"]:
        for index, entry in enumerate(channel["queue"]):
            if entry["is_event"]:
                continue
            row = _row(channel["from_task"], channel["index"])
            moment.places[entry["segment_id"]] = (_QUEUE_X - index * _TOKEN_STEP, row - _TOKEN_HEIGHT / 2)
            moment.levels[entry["segment_id"]] = entry["written_bytes"] / entry["capacity_bytes"]
            moment.num_queued += 1
    return moment


def _row(source: int, index: int) -> float:
    return _TOPS[source] + 36 + index * 60


# -- the drawing -----------------------------------------------------------------------------------


def _drawing(moments: list[_Moment]) -> str:
    busy = max(range(len(moments)), key=lambda index: moments[index].num_queued)
    seconds = round(len(moments) * _STEP_S, 2)
    # Whoever opens the page sees the queues grow, not an empty job.
    begin = round(seconds * max(0, busy - _STEPS_BEFORE_BUSY) / (len(moments) - 1), 2)
    rules, tokens = [], []
    for segment in range(_NUM_BUFFERS):
        drawn, moves = _token(segment, moments, busy)
        tokens.append(drawn)
        rules += moves
    stations = []
    for number in range(4):
        drawn, changes = _station(number, moments, busy)
        stations.append(drawn)
        rules += changes
    style = (
        f"<style>.token,.fill,.word{{animation-duration:{seconds:g}s;animation-delay:-{begin:g}s;"
        "animation-iteration-count:infinite}"
        ".token{animation-timing-function:ease-in-out}.word{opacity:0;animation-timing-function:step-end}"
        f".fill{{fill:#56b4e9;transform-origin:0 {_TOKEN_HEIGHT}px}}"
        ".token text{paint-order:stroke;stroke:var(--paper);stroke-width:4px;font-weight:650}"
        "@media (prefers-reduced-motion:reduce){.token,.fill,.word{animation:none!important}}"
        f"{''.join(rules)}</style>"
    )
    body = style + _rails() + "".join(stations) + "".join(tokens)
    description = (
        f"A real run of {len(moments)} steps in a loop. Two sources take empty buffers from their pools, fill them "
        "with records and queue them, one queue for each window. The windows read them, and each buffer goes "
        "home to its source. Window 1 is slow: its queues grow until the sources have no buffer left and stop."
    )
    return document("sluice-run", _WIDTH, _HEIGHT, "Buffers leaving home and coming back", description, body)


def _rails() -> str:
    parts = [
        text_element(24, 40, "Buffers leave home, wait, are read, and come home", "big"),
        text_element(24, 64, "A box is a buffer of 48 bytes, blue is what is written in it. Window 1 is slow.", "soft"),
    ]
    for source in (0, 1):
        for target in (0, 1):
            row, port = _row(source, target), _TOPS[target] + 46 + source * 40
            path = f"M{_SOURCE_X + _STATION_WIDTH} {row:g}H570C640 {row:g} 640 {port:g} {_WINDOW_X - 14} {port:g}"
            tip = element("path", d=f"M{_WINDOW_X - 16} {port - 8:g}l15 8l-15 8z", class_="tip")
            parts += [element("path", d=path, class_="gap"), element("path", d=path, class_=f"track c{source}"), tip]
    pool = element("rect", x=24, y=_POOL_TOP, width=_WIDTH - 48, height=58, rx=10, class_="card")
    parts += [pool, text_element(38, _POOL_TOP + 25, "free segments of the TaskManager", "name")]
    parts.append(text_element(38, _POOL_TOP + 44, "none left, and none at home: a source has to stop", "small soft"))
    return "".join(parts)


def _station(number: int, moments: list[_Moment], busy: int) -> tuple[str, list[str]]:
    """A task with the word for how it stands, four words of which one is seen."""
    is_source = number < 2
    x, y = (_SOURCE_X if is_source else _WINDOW_X), _TOPS[number % 2]
    name = f"source {number}" if is_source else f"window {number - 2}" + (", slow" if number == 3 else "")
    parts = [
        element("rect", x=x, y=y, width=_STATION_WIDTH, height=_STATION_HEIGHT, rx=10, class_="card"),
        text_element(x + 14, y + 28, name, "name"),
        text_element(x + 14, y + 108, "home" if is_source else "reads", "small soft"),
    ]
    rules = []
    for word, symbol in list(PROGRESS_SYMBOL.items())[:-1]:  # a simulation loses nobody
        shown = [int(moment.words[number] == word) for moment in moments]
        id_ = f"t{number}{word[0]}"
        at = {"x": x + 14, "y": y + 44, "width": 22, "height": 22, "rx": 5}
        mark, wash = element("rect", class_="band", **at), element("rect", class_="wash", **at)
        label = text_element(x + 46, y + 60, f"{symbol} {PROGRESS_WORD[word]}", "name")
        state = element("g", mark + wash + label, data_progress=word)
        parts.append(element("g", state, class_="word", id=id_))
        frames = _keyframes([f"opacity:{value}" for value in shown])
        rules.append(f"@keyframes k{id_}{{{frames}}}#{id_}{{opacity:{shown[busy]};animation-name:k{id_}}}")
    return "".join(parts), rules


def _token(segment: int, moments: list[_Moment], busy: int) -> tuple[str, list[str]]:
    """One segment of memory: a box that is filled, and moves."""
    places: list[Point] = []
    for moment in moments:
        places.append(moment.places.get(segment, places[-1] if places else (0.0, 0.0)))
    levels = [round(moment.levels.get(segment, 0.0), 2) for moment in moments]
    body = (
        element("rect", width=_TOKEN_WIDTH, height=_TOKEN_HEIGHT, rx=4, class_="slot")
        + element("rect", width=_TOKEN_WIDTH, height=_TOKEN_HEIGHT, rx=4, class_="fill", id=f"f{segment}")
        + element("rect", width=_TOKEN_WIDTH, height=_TOKEN_HEIGHT, rx=4, class_="edge")
        + text_element(_TOKEN_WIDTH / 2, 18, str(segment), "small mid")
    )
    moves = _keyframes([f"transform:translate({x:g}px,{y:g}px)" for x, y in places], _detours(places))
    fills = _keyframes([f"transform:scaleY({level:g})" for level in levels])
    x, y = places[busy]
    rest = f"transform:translate({x:g}px,{y:g}px)"
    return element("g", body, class_="token", id=f"s{segment}"), [
        f"@keyframes m{segment}{{{moves}}}#s{segment}{{{rest};animation-name:m{segment}}}",
        f"@keyframes l{segment}{{{fills}}}#f{segment}{{transform:scaleY({levels[busy]:g});animation-name:l{segment}}}",
    ]


def _detours(places: list[Point]) -> dict[int, str]:
    """A buffer that left its queue was at its window on the way home: a stop in the middle of that step."""
    stops = {}
    for index, (before, after) in enumerate(pairwise(places)):
        if before[0] == _QUEUE_X and after[1] != before[1]:
            source = 0 if before[1] < _TOPS[1] - 20 else 1
            target = 0 if before[1] < _TOPS[source] + 60 else 1
            stops[index] = f"transform:translate({_WINDOW_X + 66 + source * _TOKEN_STEP}px,{_TOPS[target] + 90}px)"
    return stops


def _keyframes(values: list[str], stops: dict[int, str] | None = None) -> str:
    """Keyframes at the changes only: a value is held until the step in which it changes."""
    last = len(values) - 1
    written = [f"0%{{{values[0]}}}"]
    for index in range(last):
        if values[index] == values[index + 1]:
            continue
        written.append(f"{100 * index / last:.4g}%{{{values[index]}}}")
        if stops and index in stops:
            written.append(f"{100 * (index + 0.5) / last:.4g}%{{{stops[index]}}}")
        written.append(f"{100 * (index + 1) / last:.4g}%{{{values[index + 1]}}}")
    return "".join(dict.fromkeys([*written, f"100%{{{values[last]}}}"]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m widgets.picture PATH")
    written_to = run_picture(sys.argv[1])
    print(f"{written_to}: {written_to.stat().st_size} bytes")
