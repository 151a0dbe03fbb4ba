"""What each task did, moment by moment: who moved, who waited, who was held up."""

from __future__ import annotations

from collections import deque
from typing import Any

from refimpl.drivers import Simulation
from refimpl.job import JobSnapshot
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, still
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
_WORDS = ("", *PROGRESS_WORD.values())


class TimelineView(FactView):
    """A row for each task and a column for each moment, the newest on the right: moving, idle, backpressured, done
    or lost.

    Of a job that is stepped a column is a step, and a frame marks the task that took it; of one that runs it is a look
    of the sampler. The slider goes through all that was; a `Stepper` is forked (F) from any of it. `MomentView` says
    what else can be shown, and the options.

        TimelineView(Stepper(environment))
    """

    default_title = "Timeline"
    kind = "timeline"

    def __init__(self, source: Source, **given: Any) -> None:
        self._past: deque[tuple[tuple[float, int], list[str]]] = deque(maxlen=_MOMENTS)
        self._seen: dict[int, tuple[JobSnapshot, list[str]]] = {}  # by identity: a moment is looked at many times
        super().__init__(source, **given)

    def known_of(self, snapshot: JobSnapshot) -> Model:
        return topology(snapshot)

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        moment = pipeline_model(snapshot, known, action)
        now = [task["progress"] for task in moment["tasks"]]
        columns = [*self._before(snapshot, now, known), now][-_MOMENTS:]
        acted = action.removeprefix("step ")
        return {
            **moment_of("timeline", snapshot, action),
            "tasks": [
                {
                    "name": task["name"],
                    "progress": [column[number] for column in columns],
                    "is_acting": task["name"] == acted,
                    "num_backpressured": sum(column[number] == "backpressured" for column in columns),
                }
                for number, task in enumerate(known["tasks"])
            ],
            "num_moments": len(columns),
        }

    def _before(self, snapshot: JobSnapshot, now: list[str], known: Model) -> list[list[str]]:
        """How the tasks stood at the moments before this one; several moments may have one time."""
        if isinstance(self._source, Recording | JobSnapshot | Simulation | Stepper):
            recording = self._branch_of(snapshot)
            moments, end = recording.moments, recording.place_of(snapshot)
            if end is None:  # looked at again: it is the last moment, or one that came later
                end = len(moments) - (moments[-1][0] == snapshot)
            return [self._progress(moment, known) for moment, _ in moments[max(0, end - _MOMENTS + 1) : end]]
        look = (snapshot.time_ms, snapshot.num_steps)
        if self._past and self._past[-1][1] == now and getattr(self._source, "is_done", False):
            return [states for _, states in list(self._past)[:-1]]  # the clock of a job goes on behind its end
        before = [states for other, states in list(self._past) if other < look]
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

    def _progress(self, moment: JobSnapshot, known: Model) -> list[str]:
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        kept = self._seen.get(id(moment))
        if kept is None:
            kept = (moment, [task["progress"] for task in pipeline_model(moment, known)["tasks"]])
            self._seen[id(moment)] = kept
        return kept[1]

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {}
        for number, task in enumerate(model["tasks"]):
            facts[f"{number} now"] = f"{PROGRESS_SYMBOL[task['progress'][-1]]} {PROGRESS_WORD[task['progress'][-1]]}"
            facts[f"{number} held"] = _share(task, model)
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
            text_element(_RIGHT + 120, 12, "held up", "small soft"),
        ]
        for number, task in enumerate(model["tasks"][:_MAX_TASKS]):
            y = 22 + number * _ROW
            parts.append(name_element(MARGIN, y + 17, task["name"], _LEFT - MARGIN - 8, "name"))
            parts += [
                pen.group(f"{number} {place}", _LAMPS, _cell(_LEFT + place * _CELL, y)) for place in range(_MOMENTS)
            ]
            ring = {"x": _RIGHT - _CELL - 2, "y": y - 3, "width": _CELL + 3, "height": _TALL + 6, "rx": 4}
            parts.append(pen.group(f"{number} acts", ("off", "acting"), element("rect", class_="acts", **ring)))
            parts.append(pen.words(_RIGHT + 10, y + 17, f"{number} now", "small"))
            parts.append(pen.words(_RIGHT + 120, y + 17, f"{number} held", "small soft"))
        bottom = 22 + min(_MAX_TASKS, len(model["tasks"])) * _ROW
        if more := max(0, len(model["tasks"]) - _MAX_TASKS):
            parts.append(text_element(MARGIN, bottom + 12, f"… and {more} more tasks, in the table", "soft"))
            bottom += 22
        return Drawing("".join(parts) + _key(bottom + 8), _RIGHT + 250, bottom + 46)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        width = max(len(task["name"]) for task in model["tasks"])
        lines = []
        for task in model["tasks"]:
            row = "".join(PROGRESS_SYMBOL[progress] for progress in task["progress"])
            acts = "  ← its step" if task["is_acting"] else ""
            lines.append(f"{task['name']:<{width}}  {row}  {_share(task, model)}{acts}")
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        held = [task["name"] for task in model["tasks"] if task["progress"][-1] == "backpressured"]
        words = f"backpressured: {', '.join(held[:4])}" if held else "nobody is held up"
        return words + lost_words([task["name"] for task in model["tasks"] if task["progress"][-1] == "lost"])

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        now = [
            [task["name"], pen.cell(f"{number} now"), pen.cell(f"{number} held")]
            for number, task in enumerate(model["tasks"])
        ]
        shown = model["tasks"][:_MAX_TASKS]
        past = [
            [str(place - _MOMENTS + 1), *(pen.cell(f"{number} {place}", _WORDS) for number in range(len(shown)))]
            for place in range(_MOMENTS)
        ]
        return [
            ("Tasks", ["task", "now", "held up"], now),
            ("The last moments, the newest at the end", ["moment", *(task["name"] for task in shown)], past),
        ]


def _share(task: Model, model: Model) -> str:
    """How much of the time it was held up."""
    number = task["num_backpressured"]
    return f"{number} of {model['num_moments']} moments" if number else "never"


# -- the drawing -----------------------------------------------------------------------------------


def _cell(x: float, y: float) -> str:
    at = {"x": x, "y": y, "width": _CELL - 2, "height": _TALL, "rx": 2}
    return element("rect", class_="lamp", **at) + element("rect", class_="lamp over", **at)


def _key(y: float) -> str:
    parts, x = [], float(MARGIN)
    for state in _STATES[1:]:
        words = f"{PROGRESS_SYMBOL[state]} {PROGRESS_WORD[state]}"
        parts.append(still(Pen({"s": _STATES.index(state)}).group("s", _LAMPS, _cell(x, y))))
        parts.append(text_element(x + 20, y + 17, words, "small"))
        x += 46 + 7.2 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
