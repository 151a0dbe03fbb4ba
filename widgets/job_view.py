"""The job as a graph: operators fold into tasks, tasks spread into subtasks, and who is held back can be seen."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from refimpl.drivers import ProcessRun, Simulation, ThreadedRun
from refimpl.job import JobSnapshot, StreamEnvironment
from widgets.facts import Drawing, Facts, FactView, Pen, Table
from widgets.job_graph_model import STAGES, Plan, known_of_plan, known_of_run, plan_model, plans_of, run_model
from widgets.job_layout import MAX_SUBTASKS, is_split
from widgets.job_svg import PROGRESS, WIRE_WORDS, WIRES, job_drawing
from widgets.moment_view import Source
from widgets.pressure_model import BACK_MS, LookBack, load_words, loads_between, pressure_model, sampled_words
from widgets.recording import Recording
from widgets.text import PROGRESS_SYMBOL, PROGRESS_WORD, lost_words, rest_words, step_words
from widgets.view_models import Model

__all__ = ["JobView"]

_WIRE_WORD = ("", *WIRE_WORDS.values())
_PLANNED = "not running"
_TIMED_HEADS = ("the last second", "back pressure of the task, sampled")


class JobView(FactView):
    """A job as a graph: tasks with their operators, subtasks and channels, and who is backpressured.

    Of a `StreamEnvironment` that has not been run it shows what you wrote, what is chained (operators in one frame
    share a task), and the subtasks it will have, one after the other. `MomentView` says what else can be shown, and
    the options; `model()` goes to `graph_of`, which gives a networkx graph.

    Of a job with a clock (threads, processes, a simulation with `policy="timed"`) it tells how each subtask spent the
    last second, and who holds the job back; of one whose driver takes samples also the level of each task, as samples
    had it at most a minute ago.

        JobView(environment)
        JobView(ThreadedRun(environment).start())
    """

    default_title = "Job"
    kind = "job"

    def __init__(self, source: Source | StreamEnvironment, **given: Any) -> None:
        self._looks = LookBack()
        self._has_clock = isinstance(source, ThreadedRun | ProcessRun)
        self._is_timed = self._has_clock or _knows_times(source)
        if isinstance(source, StreamEnvironment):
            plans = plans_of(source)
            stages = Recording(known_of_plan(plans[0]))
            for plan in plans:
                stages.add(plan)  # type: ignore[arg-type]  # no moment of a running job, and read by this view alone
            at = given.pop("at", None)
            super().__init__(stages, at=STAGES.index("after chaining") if at is None else at, **given)
        else:
            super().__init__(source, **given)

    def known_of(self, snapshot: JobSnapshot | Plan) -> Model:
        if isinstance(snapshot, Plan):
            return known_of_plan(snapshot)
        return {**known_of_run(snapshot), "is_timed": self._is_timed}

    def model_of(self, snapshot: JobSnapshot | Plan, action: str, known: Model) -> Model:
        if isinstance(snapshot, Plan):
            return plan_model(snapshot, known)
        model = run_model(snapshot, known, action)
        return {**model, **self._pressure(snapshot, known, model)}

    def _pressure(self, snapshot: JobSnapshot, known: Model, model: Model) -> Model:
        loads = loads_between(self._before(snapshot), snapshot)
        ask = getattr(self._source, "back_pressure", None)
        names = [vertex["name"] for vertex in model["vertices"]]
        return {
            "is_timed": known["is_timed"],
            **pressure_model(loads, known, snapshot),
            "sampled": [sampled_words(ask(name)) if ask is not None else "" for name in names],
        }

    def _before(self, snapshot: JobSnapshot) -> JobSnapshot | None:
        """The moment with which this one is compared."""
        place = self._recording.place_of(snapshot)
        if place is None or self._has_clock:
            return self._looks.before(snapshot)
        earlier = (each for each, _ in reversed(self._recording.moments[:place]))
        return next((each for each in earlier if snapshot.time_ms - each.time_ms >= BACK_MS), None)

    @staticmethod
    def moment_words(model: Model) -> str:
        sentence = f": {model['bottleneck']}" if model.get("bottleneck") else ""
        return str(model["stage"]) or step_words(model) + sentence

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {}
        for number, vertex in enumerate(model["vertices"]):
            facts[f"{number} frame"] = int(_is_chained(model))
            facts[f"{number} head"] = _head_words(vertex) if _is_chained(model) else ""
            if model.get("is_timed"):
                facts[f"{number} sampled"] = model["sampled"][number]
            for place, subtask in enumerate(vertex["subtasks"]):
                if model.get("is_timed"):
                    facts[f"{number} load {place}"] = load_words(model["loads"].get(subtask["name"]), most_only=True)
                    facts[f"{number} shares {place}"] = load_words(model["loads"].get(subtask["name"]))
                if place < MAX_SUBTASKS:
                    progress = _progress(subtask) if _is_spread(model) else "absent"
                    facts[f"{number} sub {place}"] = PROGRESS.index(progress)
                facts[f"{number} word {place}"] = _progress_words(subtask) if _is_spread(model) else ""
                is_running = _is_spread(model) and subtask["progress"]
                facts[f"{number} flow {place}"] = _flow_words(subtask) if is_running else ""
        for number, edge in enumerate(model["edges"]):
            facts[f"{number} edge"] = WIRES.index(_edge_state(number, model))
            facts[f"{number} words"] = _way_words(edge, model)
            facts[f"{number} load"] = _load_words(edge, model)
        for number, channel in enumerate(model["channels"]):
            is_there = _is_spread(model)
            facts[f"channel {number} state"] = WIRES.index(channel["state"]) if is_there else 0
            facts[f"channel {number} queued"] = channel["queued_buffers"]
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        return job_drawing(pen, model)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lines = ["busy, idle and held back: in the last second"] if model.get("is_timed") else []
        for number, vertex in enumerate(model["vertices"]):
            lines.append(_vertex_words(vertex, model))
            if any(model.get("sampled", [])):
                lines.append(f"  back pressure, sampled: {model['sampled'][number] or 'not yet'}")
            loads = model.get("loads", {})
            lines += [
                f"  {_subtask_words(subtask)}" + _load_end(loads.get(subtask["name"]))
                for subtask in vertex["subtasks"]
                if _is_spread(model)
            ]
            for place, edge in enumerate(model["edges"]):
                if edge["from_vertex"] == number:
                    target = model["vertices"][edge["to_vertex"]]["name"]
                    why = f"; not chained: {edge['reasons']}" if edge["reasons"] and _is_chained(model) else ""
                    lines.append(f"  → {target}: {_edge_words(edge, model)}{why}")
                    lines += _channel_lines(place, model)
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        subtasks = [subtask for vertex in model["vertices"] for subtask in vertex["subtasks"]]
        if model["stage"]:
            operators = sum(len(vertex["operators"]) for vertex in model["vertices"])
            return f"{operators} operators, {len(model['vertices'])} tasks, {len(subtasks)} subtasks"
        held = [subtask["name"] for subtask in subtasks if subtask["progress"] == "backpressured"]
        stuck = sum(edge["num_stuck_channels"] for edge in model["edges"])
        names = ", ".join(held[:4]) + (" and more" if len(held) > 4 else "")
        words = f"backpressured: {names}" if held else "nobody is held back"
        lost = lost_words([subtask["name"] for subtask in subtasks if subtask["progress"] == "lost"])
        return f"{words}{lost}; {stuck} of {len(model['channels'])} channels stuck"

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        vertices, stages = model["vertices"], model["stage"]
        is_timed = model.get("is_timed", False)
        subtasks = [
            [
                subtask["name"],
                pen.cell(f"{number} word {place}"),
                pen.cell(f"{number} flow {place}"),
                *([pen.cell(f"{number} shares {place}"), pen.cell(f"{number} sampled")] if is_timed else []),
            ]
            for number, vertex in enumerate(vertices)
            for place, subtask in enumerate(vertex["subtasks"])
        ]
        edges = [
            [
                vertices[edge["from_vertex"]]["name"],
                vertices[edge["to_vertex"]]["name"],
                pen.cell(f"{number} words"),
                edge["reasons"] if stages else pen.cell(f"{number} load"),
            ]
            for number, edge in enumerate(model["edges"])
        ]
        channels = [
            [
                f"{channel['name']} {channel['from_subtask']}→{channel['to_subtask']}",
                pen.cell(f"channel {number} state", _WIRE_WORD),
                pen.cell(f"channel {number} queued"),
            ]
            for number, channel in enumerate(model["channels"])
        ]
        return [
            ("Subtasks", ["subtask", "how it stands", "records", *(_TIMED_HEADS if is_timed else ())], subtasks),
            ("Exchanges", ["from", "to", "what", "why not chained" if stages else "what waits"], edges),
            ("Channels", ["channel", "state", "queued (buffers)"], channels),
        ]


def _knows_times(source: object) -> bool:
    """Whether a job that does not run by itself says how its tasks spend their time."""
    if isinstance(source, Simulation):
        return bool(source.task_times)
    moment = source.moments[-1][0] if isinstance(source, Recording) and len(source) else source
    return isinstance(moment, JobSnapshot) and any(task.times.total_ms for task in moment.tasks)


# -- words -----------------------------------------------------------------------------------------


def _is_chained(model: Model) -> bool:
    return bool(model["stage"] != STAGES[0])


def _is_spread(model: Model) -> bool:
    return model["stage"] in ("", STAGES[-1])


def _progress(subtask: Model) -> str:
    """How its lamp is lit: a lost one's like that of one that has not begun."""
    progress: str = subtask["progress"]
    return "planned" if progress in ("", "lost") else progress


def _progress_words(subtask: Model) -> str:
    progress = subtask["progress"]
    return f"{PROGRESS_SYMBOL[progress]} {PROGRESS_WORD[progress]}" if progress else _PLANNED


def _flow_words(subtask: Model) -> str:
    rests = f" · {rest_words(subtask)}" if subtask["rest_ms"] else ""
    return f"in {subtask['num_records_in']} · out {subtask['num_records_out']}{rests}"


def _subtask_words(subtask: Model) -> str:
    name: str = subtask["name"]
    if not subtask["progress"]:
        return name
    return f"{_progress_words(subtask)}: {name}, {_flow_words(subtask)}"


def _load_end(load: Model | None) -> str:
    """How a subtask spent the last second, as the end of a line."""
    return f"; {load_words(load)}" if load is not None else ""


def _head_words(vertex: Model) -> str:
    number = len(vertex["subtasks"])
    return f"one task, {number} subtask{'s' if number > 1 else ''}"


def _vertex_words(vertex: Model, model: Model) -> str:
    names = [operator["name"] for operator in vertex["operators"]]
    if not _is_chained(model):
        return ", ".join(f"{name} × {len(vertex['subtasks'])}" for name in names)
    return f"{' → '.join(names)} × {len(vertex['subtasks'])}" + (", chained" if len(names) > 1 else "")


def _edge_words(edge: Model, model: Model) -> str:
    return " · ".join(filter(None, [_way_words(edge, model), _load_words(edge, model)]))


def _way_words(edge: Model, model: Model) -> str:
    number = edge["num_channels"]
    channels = f"{number} channel{'s' if number != 1 else ''}" if _is_spread(model) else ""
    return " · ".join(filter(None, [edge["way"], channels]))


def _load_words(edge: Model, model: Model) -> str:
    if model["stage"]:
        return ""
    stuck = f" · ▲ {edge['num_stuck_channels']} stuck" if edge["num_stuck_channels"] else ""
    return f"{edge['queued_buffers']} queued{stuck}"


def _channel_lines(number: int, model: Model) -> list[str]:
    """The channels of an edge that do not simply stand open and empty."""
    marks = [
        f"{channel['from_subtask']}→{channel['to_subtask']} {channel['state']} {channel['queued_buffers']}"
        for channel in model["channels"]
        if channel["edge"] == number and channel["state"] != "quiet"
    ]
    return wrap(", ".join(marks), 96, initial_indent="      ", subsequent_indent="      ", break_on_hyphens=False)


def _edge_state(number: int, model: Model) -> str:
    """Of an edge that is drawn as one line: the worst of its channels."""
    if _is_spread(model) and is_split(model["edges"][number], model):
        return "absent"
    states = {channel["state"] for channel in model["channels"] if channel["edge"] == number}
    return next((state for state in ("stuck", "queued", "quiet", "ended") if state in states), "quiet")
