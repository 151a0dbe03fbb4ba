"""What each task did, moment by moment: who moved, who waited, who was held back."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from refimpl.checkpoint import CheckpointCounts, CheckpointStatsSnapshot
from refimpl.drivers import Simulation
from refimpl.job import JobSnapshot
from widgets.checkpoint_model import newest_of, newest_words
from widgets.facts import GONE, MARGIN, Drawing, Facts, FactView, Pen, Table, still
from widgets.letters import fitting
from widgets.moment_view import Source
from widgets.recording import Recording
from widgets.stepper import Stepper
from widgets.svg import element, name_element, text_element
from widgets.text import PROGRESS_SYMBOL, PROGRESS_WORD, lost_words
from widgets.view_models import Model, moment_of, pipeline_model, topology

__all__ = ["TimelineView"]

_MOMENTS = 48
_MAX_TASKS = 12
_MOST_SEEN = 20_000
_LEFT = MARGIN + 220
_CELL, _TALL, _ROW = 15, 24, 32
_RIGHT = _LEFT + _MOMENTS * _CELL
_STATES = ("absent", "made", "idle", "backpressured", "done", "lost")
_LAMPS = (*_STATES[:-1], "planned")  # who is lost looks like who has not begun
_MARKS = ("none", "progress", "completed", "failed", "restored")
_MARK_SYMBOLS = dict(zip(_MARKS, "·▶✓✗↺", strict=True))
_MARK_WORDS = dict(zip(_MARKS, ("", "in progress", "completed", "failed", "the job went on"), strict=True))
_WORDS = ("", *PROGRESS_WORD.values())


@dataclass(frozen=True, slots=True)
class _Column:
    """One moment: how each task stood, and the checkpoints of a run with a store."""

    progress: list[str]
    checkpoints: CheckpointStatsSnapshot | None


class TimelineView(FactView):
    """A row for each task and a column for each moment, the newest on the right: moving, idle, backpressured, done
    or lost.

    Of a job that is stepped a column is a step, and a frame marks the task that took it; of one that runs it is a look
    of the sampler. Of a run with a store a row shows its checkpoints from the trigger to the end, and ◆ the moment at
    which a task had acknowledged the newest. The slider goes through all that was; a `Stepper` is forked (F) from any
    of it. `MomentView` says what else can be shown, and the options.

        TimelineView(Stepper(environment))
    """

    default_title = "Timeline"
    kind = "timeline"
    styles = ("facts.css", "timeline.css")

    def __init__(self, source: Source, **given: Any) -> None:
        self._past: deque[tuple[tuple[float, int], _Column]] = deque(maxlen=_MOMENTS + 1)
        self._seen: dict[int, tuple[JobSnapshot, _Column]] = {}  # by identity: a moment is looked at many times
        super().__init__(source, **given)

    def known_of(self, snapshot: JobSnapshot) -> Model:
        return topology(snapshot)

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        moment = pipeline_model(snapshot, known, action)
        now = _Column([task["progress"] for task in moment["tasks"]], snapshot.checkpoints)
        since = [*self._before(snapshot, now, known), now]
        since = since[-_MOMENTS - 1 :]  # one more than is shown: it tells what the first has changed
        columns = since[-_MOMENTS:]
        acted = action.removeprefix("step ")
        return {
            **moment_of("timeline", snapshot, action),
            "tasks": [
                {
                    "name": task["name"],
                    "progress": [column.progress[number] for column in columns],
                    "is_acting": task["name"] == acted,
                    "num_backpressured": sum(column.progress[number] == "backpressured" for column in columns),
                    "num_since_ack": _since_ack(task["name"], since),
                }
                for number, task in enumerate(known["tasks"])
            ],
            "num_moments": len(columns),
            "has_store": snapshot.checkpoints is not None,
            "checkpoints": _marks(since)[-_MOMENTS:],
            "newest": newest_of(snapshot),
        }

    def _before(self, snapshot: JobSnapshot, now: _Column, known: Model) -> list[_Column]:
        """How the tasks stood at the moments before this one; several moments may have one time."""
        if isinstance(self._source, Recording | JobSnapshot | Simulation | Stepper):
            recording = self._branch_of(snapshot)
            moments, end = recording.moments, recording.place_of(snapshot)
            if end is None:  # looked at again: it is the last moment, or one that came later
                end = len(moments) - (moments[-1][0] == snapshot)
            return [self._column(moment, known) for moment, _ in moments[max(0, end - _MOMENTS) : end]]
        look = (snapshot.time_ms, snapshot.num_steps)
        if self._past and self._past[-1][1] == now and getattr(self._source, "is_done", False):
            return [column for _, column in list(self._past)[:-1]]  # the clock of a job goes on behind its end
        before = [column for other, column in list(self._past) if other < look]
        if not self._past or self._past[-1][0] < look:
            self._past.append((look, now))
        return before

    def _branch_of(self, snapshot: JobSnapshot) -> Recording:
        """The branch that this is a moment of: two branches have two pasts."""
        if not isinstance(self._source, Stepper):
            return self._recording
        main, fork = self._source.recording, self._source.fork_recording
        if fork is not None and main.place_of(snapshot) is None and fork.place_of(snapshot) is not None:
            return fork
        return main

    def _column(self, moment: JobSnapshot, known: Model) -> _Column:
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        kept = self._seen.get(id(moment))
        if kept is None:
            progress = [task["progress"] for task in pipeline_model(moment, known)["tasks"]]
            kept = (moment, _Column(progress, moment.checkpoints))
            self._seen[id(moment)] = kept
        return kept[1]

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {}
        if model["has_store"]:
            facts["checkpoint"] = fitting(_newest_words(model), _RIGHT + 230 - _LEFT, "small")
            missing = _MOMENTS - len(model["checkpoints"])
            for place in range(_MOMENTS):
                mark = model["checkpoints"][place - missing] if place >= missing else "none"
                facts[f"c {place}"] = _MARKS.index(mark)
        for number, task in enumerate(model["tasks"]):
            facts[f"{number} now"] = f"{PROGRESS_SYMBOL[task['progress'][-1]]} {PROGRESS_WORD[task['progress'][-1]]}"
            facts[f"{number} held"] = _share(task, model)
            if model["has_store"]:
                since = task["num_since_ack"]
                facts[f"{number} ack"] = GONE if since is None else _MOMENTS - 1 - since
            if number < _MAX_TASKS:
                facts[f"{number} acts"] = int(task["is_acting"])
                missing = _MOMENTS - len(task["progress"])
                for place in range(_MOMENTS):
                    state = task["progress"][place - missing] if place >= missing else "absent"
                    facts[f"{number} {place}"] = _STATES.index(state)
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        parts = [
            text_element(_LEFT, 12, f"the last {_MOMENTS} moments", "small soft"),
            text_element(_RIGHT, 12, "now ↓", "small soft end"),
            text_element(_RIGHT + 120, 12, "held back", "small soft"),
        ]
        top = 22.0
        if model["has_store"]:
            parts.append(_checkpoint_row(pen, top))
            top += _ROW + 14
        for number, task in enumerate(model["tasks"][:_MAX_TASKS]):
            y = top + number * _ROW
            parts.append(name_element(MARGIN, y + 17, task["name"], _LEFT - MARGIN - 8, "name"))
            parts += [
                pen.group(f"{number} {place}", _LAMPS, _cell(_LEFT + place * _CELL, y)) for place in range(_MOMENTS)
            ]
            ring = {"x": _RIGHT - _CELL - 2, "y": y - 3, "width": _CELL + 3, "height": _TALL + 6, "rx": 4}
            parts.append(pen.group(f"{number} acts", ("off", "acting"), element("rect", class_="acts", **ring)))
            if model["has_store"]:
                parts.append(pen.moving(f"{number} ack", _MOMENTS, _CELL, 0, _gem(_LEFT, y)))
            parts.append(pen.words(_RIGHT + 10, y + 17, f"{number} now", "small"))
            parts.append(pen.words(_RIGHT + 120, y + 17, f"{number} held", "small soft"))
        bottom = top + min(_MAX_TASKS, len(model["tasks"])) * _ROW
        if more := max(0, len(model["tasks"]) - _MAX_TASKS):
            parts.append(text_element(MARGIN, bottom + 12, f"… and {more} more tasks, in the table", "soft"))
            bottom += 22
        return Drawing(
            "".join(parts) + _key(bottom + 8, model["has_store"]),
            _RIGHT + 250,
            bottom + (78 if model["has_store"] else 46),
        )

    @staticmethod
    def words_of(model: Model) -> list[str]:
        width = max(len(task["name"]) for task in model["tasks"])
        lines = []
        if model["has_store"]:
            row = "".join(_MARK_SYMBOLS[mark] for mark in model["checkpoints"])
            lines.append(f"{'checkpoints':<{width}}  {row}")
            lines.append(f"{'':<{width}}  {_newest_words(model)}")
        for task in model["tasks"]:
            row = "".join(PROGRESS_SYMBOL[progress] for progress in task["progress"])
            acts = "  ← its step" if task["is_acting"] else ""
            since = task["num_since_ack"]
            ack = "" if since is None else f"  ◆ {since} moments ago"
            lines.append(f"{task['name']:<{width}}  {row}  {_share(task, model)}{ack}{acts}")
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        held = [task["name"] for task in model["tasks"] if task["progress"][-1] == "backpressured"]
        words = f"backpressured: {', '.join(held[:4])}" if held else "nobody is held back"
        return words + lost_words([task["name"] for task in model["tasks"] if task["progress"][-1] == "lost"])

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        now = [
            [task["name"], pen.cell(f"{number} now"), pen.cell(f"{number} held")]
            for number, task in enumerate(model["tasks"])
        ]
        shown, places = model["tasks"][:_MAX_TASKS], range(_MOMENTS)
        marks = [[pen.cell(f"c {place}", list(_MARK_WORDS.values()))] if model["has_store"] else [] for place in places]
        past = [
            [
                str(place - _MOMENTS + 1),
                *marks[place],
                *(pen.cell(f"{number} {place}", _WORDS) for number in range(len(shown))),
            ]
            for place in places
        ]
        if model["has_store"]:
            now.append(["newest checkpoint", pen.cell("checkpoint"), ""])
        heads = ["moment", *(["checkpoints"] if model["has_store"] else []), *(task["name"] for task in shown)]
        return [
            ("Tasks", ["task", "now", "held back"], now),
            ("The last moments, the newest at the end", heads, past),
        ]


def _share(task: Model, model: Model) -> str:
    """How much of the time it was held back."""
    number = task["num_backpressured"]
    return f"{number} of {model['num_moments']} moments" if number else "never"


# -- the checkpoints of the last moments -----------------------------------------------------------


def _marks(columns: list[_Column]) -> list[str]:
    """What became of a checkpoint at each moment; while one is under way, that it is."""
    found = ["none" if _counts(column).num_in_progress == 0 else "progress" for column in columns]
    for place, (before, after) in enumerate(pairwise(map(_counts, columns)), 1):
        if after.num_restored > before.num_restored:
            found[place] = "restored"
        elif after.num_completed > before.num_completed:
            found[place] = "completed"
        elif after.num_failed > before.num_failed:
            found[place] = "failed"
    return found


def _counts(column: _Column) -> CheckpointCounts:
    return CheckpointCounts() if column.checkpoints is None else column.checkpoints.counts


def _since_ack(task: str, columns: list[_Column]) -> int | None:
    """How many moments ago a task acknowledged the newest checkpoint; `None`: it has not, or before all these."""
    history = () if columns[-1].checkpoints is None else columns[-1].checkpoints.history
    if not history:
        return None
    has_acked = [_has_acked(task, history[-1].checkpoint_id, column.checkpoints) for column in columns]
    first = next((place for place, (before, after) in enumerate(pairwise(has_acked), 1) if after and not before), None)
    return None if first is None else len(columns) - 1 - first


def _has_acked(task: str, checkpoint_id: int, stats: CheckpointStatsSnapshot | None) -> bool:
    history = () if stats is None else stats.history[::-1]
    found = next((each for each in history if each.checkpoint_id == checkpoint_id), None)
    return found is not None and any(each.task == task and each.acked_ms is not None for each in found.subtasks)


def _newest_words(model: Model) -> str:
    return "no checkpoint so far" if model["newest"] is None else newest_words(model["newest"])


# -- the drawing -----------------------------------------------------------------------------------


def _cell(x: float, y: float, tall: float = _TALL) -> str:
    at = {"x": x, "y": y, "width": _CELL - 2, "height": tall, "rx": 2}
    return element("rect", class_="lamp", **at) + element("rect", class_="lamp over", **at)


def _checkpoint_row(pen: Pen, y: float) -> str:
    cells = [pen.group(f"c {place}", _MARKS, _cell(_LEFT + place * _CELL, y + 4, 14)) for place in range(_MOMENTS)]
    name = text_element(MARGIN, y + 16, "checkpoints", "soft")
    return name + element("g", "".join(cells), class_="checkpoints") + pen.words(_LEFT, y + 34, "checkpoint", "small")


def _gem(x: float, y: float) -> str:
    """At place 0 of a row."""
    return element("path", d=f"M{x + 6.5:g} {y + 5:g}l6 7l-6 7l-6 -7z", class_="gem")


def _key(y: float, has_store: bool) -> str:
    parts, x = [], float(MARGIN)
    for state in _STATES[1:]:
        words = f"{PROGRESS_SYMBOL[state]} {PROGRESS_WORD[state]}"
        parts.append(still(Pen({"s": _STATES.index(state)}).group("s", _LAMPS, _cell(x, y))))
        parts.append(text_element(x + 20, y + 17, words, "small"))
        x += 46 + 7.2 * len(words)
    if has_store:
        parts.append(_gem(MARGIN, y + 32))
        parts.append(text_element(MARGIN + 20, y + 49, "has acknowledged the newest checkpoint", "small"))
        x = _LEFT + 90.0
        for mark in _MARKS[1:]:
            words = f"{_MARK_SYMBOLS[mark]} {_MARK_WORDS[mark]}"
            cell = still(Pen({"s": _MARKS.index(mark)}).group("s", _MARKS, _cell(x, y + 37, 14)))
            parts.append(element("g", cell, class_="checkpoints"))
            parts.append(text_element(x + 20, y + 49, words, "small"))
            x += 46 + 7.2 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
