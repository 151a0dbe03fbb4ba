"""The job as a graph: operators fold into tasks, tasks spread into subtasks, and who is held up can be seen."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from refimpl.job import JobSnapshot, StreamEnvironment
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, still
from widgets.job_graph_model import STAGES, Plan, known_of_plan, known_of_run, plan_model, plans_of, run_model
from widgets.moment_view import Source
from widgets.recording import Recording
from widgets.svg import element, escape, name_element, text_element
from widgets.text import PROGRESS_SYMBOL, PROGRESS_WORD, rest_words, step_words
from widgets.view_models import Model

__all__ = ["JobView"]

_MAX_SUBTASKS = 8
_MAX_LINES = 64
_CARD, _GAP = 244, 216
_COLUMN = _CARD + _GAP
_HEAD, _OPERATOR, _BOX, _SUBTASK = 32, 42, 26, 48
_PROGRESS = ("absent", "planned", "made", "idle", "backpressured", "done")
_WIRES = ("absent", "quiet", "queued", "stuck", "ended")
_WIRE_WORDS = {
    "quiet": "nothing waits",
    "queued": "data waits",
    "stuck": "▲ data waits, no buffer left",
    "ended": "ended",
}
_WIRE_WORD = ("", *_WIRE_WORDS.values())
_PLANNED = "not running"


class JobView(FactView):
    """A job as a graph: tasks with their operators, subtasks and channels, and who is backpressured.

    Of a `StreamEnvironment` that has not been run it shows what you wrote, what is chained (operators in one frame
    share a task), and the subtasks it will have, one after the other. `MomentView` says what else can be shown, and
    the options; `model()` goes to `graph_of`, which gives a networkx graph.

        JobView(environment)
        JobView(ThreadedRun(environment).start())
    """

    default_title = "Job"
    kind = "job"

    def __init__(self, source: Source | StreamEnvironment, **given: Any) -> None:
        if isinstance(source, StreamEnvironment):
            plans = plans_of(source)
            source = Recording(known_of_plan(plans[0]))
            for plan in plans:
                source.add(plan)
            given = {"at": STAGES.index("after chaining"), **given}
        super().__init__(source, **given)

    def known_of(self, snapshot: JobSnapshot | Plan) -> Model:
        return known_of_plan(snapshot) if isinstance(snapshot, Plan) else known_of_run(snapshot)

    def model_of(self, snapshot: JobSnapshot | Plan, action: str, known: Model) -> Model:
        return plan_model(snapshot, known) if isinstance(snapshot, Plan) else run_model(snapshot, known, action)

    @staticmethod
    def moment_words(model: Model) -> str:
        return str(model["stage"]) or step_words(model)

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {}
        for number, vertex in enumerate(model["vertices"]):
            facts[f"{number} frame"] = int(_is_chained(model))
            facts[f"{number} head"] = _head_words(vertex) if _is_chained(model) else ""
            for place, subtask in enumerate(vertex["subtasks"]):
                if place < _MAX_SUBTASKS:
                    progress = _progress(subtask) if _is_spread(model) else "absent"
                    facts[f"{number} sub {place}"] = _PROGRESS.index(progress)
                facts[f"{number} word {place}"] = _progress_words(subtask) if _is_spread(model) else ""
                is_running = _is_spread(model) and subtask["progress"]
                facts[f"{number} flow {place}"] = _flow_words(subtask) if is_running else ""
        for number, edge in enumerate(model["edges"]):
            facts[f"{number} edge"] = _WIRES.index(_edge_state(number, model))
            facts[f"{number} words"] = _way_words(edge, model)
            facts[f"{number} load"] = _load_words(edge, model)
        for number, channel in enumerate(model["channels"]):
            is_there = _is_spread(model)
            facts[f"channel {number} state"] = _WIRES.index(channel["state"]) if is_there else 0
            facts[f"channel {number} queued"] = channel["queued_buffers"]
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        places, width, height = _layout(model)
        parts = [_exchange(pen, number, model, places) for number in range(len(model["edges"]))]
        parts += [_vertex(pen, number, vertex, *places[number]) for number, vertex in enumerate(model["vertices"])]
        return Drawing("".join(parts) + _key(height + 12), max(width, 900), height + 74)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lines = []
        for number, vertex in enumerate(model["vertices"]):
            lines.append(_vertex_words(vertex, model))
            lines += [f"  {_subtask_words(subtask)}" for subtask in vertex["subtasks"] if _is_spread(model)]
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
        words = f"backpressured: {names}" if held else "nobody is held up"
        return f"{words}; {stuck} of {len(model['channels'])} channels stuck"

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        vertices, stages = model["vertices"], model["stage"]
        subtasks = [
            [subtask["name"], pen.cell(f"{number} word {place}"), pen.cell(f"{number} flow {place}")]
            for number, vertex in enumerate(vertices)
            for place, subtask in enumerate(vertex["subtasks"])
        ]
        edges = [
            [vertices[edge["from_vertex"]]["name"], vertices[edge["to_vertex"]]["name"],
             pen.cell(f"{number} words"), edge["reasons"] if stages else pen.cell(f"{number} load")]
            for number, edge in enumerate(model["edges"])
        ]  # fmt: skip
        channels = [
            [f"{channel['name']} {channel['from_subtask']}→{channel['to_subtask']}",
             pen.cell(f"channel {number} state", _WIRE_WORD), pen.cell(f"channel {number} queued")]
            for number, channel in enumerate(model["channels"])
        ]  # fmt: skip
        return [
            ("Subtasks", ["subtask", "how it stands", "records"], subtasks),
            ("Exchanges", ["from", "to", "what", "why not chained" if stages else "what waits"], edges),
            ("Channels", ["channel", "state", "queued (buffers)"], channels),
        ]


# -- words -----------------------------------------------------------------------------------------


def _is_chained(model: Model) -> bool:
    return bool(model["stage"] != STAGES[0])


def _is_spread(model: Model) -> bool:
    return model["stage"] in ("", STAGES[-1])


def _progress(subtask: Model) -> str:
    return subtask["progress"] or "planned"


def _progress_words(subtask: Model) -> str:
    progress = subtask["progress"]
    return f"{PROGRESS_SYMBOL[progress]} {PROGRESS_WORD[progress]}" if progress else _PLANNED


def _flow_words(subtask: Model) -> str:
    rests = f" · {rest_words(subtask)}" if subtask["rest_ms"] else ""
    return f"in {subtask['num_records_in']} · out {subtask['num_records_out']}{rests}"


def _subtask_words(subtask: Model) -> str:
    if not subtask["progress"]:
        return subtask["name"]
    return f"{_progress_words(subtask)}: {subtask['name']}, {_flow_words(subtask)}"


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
    if _is_spread(model) and _is_split(model["edges"][number], model):
        return "absent"
    states = {channel["state"] for channel in model["channels"] if channel["edge"] == number}
    return next((state for state in ("stuck", "queued", "quiet", "ended") if state in states), "quiet")


# -- the drawing -----------------------------------------------------------------------------------


def _num_drawn(vertex: Model) -> int:
    return min(_MAX_SUBTASKS, len(vertex["subtasks"]))


def _is_split(edge: Model, model: Model) -> bool:
    """Whether each channel of an edge is a line of its own."""
    ends = (model["vertices"][edge["from_vertex"]], model["vertices"][edge["to_vertex"]])
    return edge["num_channels"] <= _MAX_LINES and all(len(end["subtasks"]) <= _MAX_SUBTASKS for end in ends)


def _top_of_subtasks(vertex: Model) -> int:
    return _HEAD + len(vertex["operators"]) * _OPERATOR


def _height(vertex: Model) -> int:
    more = 22 if len(vertex["subtasks"]) > _MAX_SUBTASKS else 0
    return _top_of_subtasks(vertex) + _num_drawn(vertex) * _SUBTASK + more + 6


def _layout(model: Model) -> tuple[list[tuple[float, float]], float, float]:
    """Left and top of each vertex, then the size of all."""
    columns: dict[int, list[int]] = {}
    for number, vertex in sorted(enumerate(model["vertices"]), key=lambda item: item[1]["row"]):
        columns.setdefault(vertex["column"], []).append(number)
    heights = [_height(vertex) for vertex in model["vertices"]]
    totals = {column: sum(heights[n] + 24 for n in numbers) - 24 for column, numbers in columns.items()}
    tallest = max(totals.values())
    places = [(0.0, 0.0)] * len(heights)
    for column, numbers in columns.items():
        y = 8 + (tallest - totals[column]) / 2
        for number in numbers:
            places[number] = (float(MARGIN + column * _COLUMN), y)
            y += heights[number] + 24
    return places, 2 * MARGIN + max(columns) * _COLUMN + _CARD, 8 + tallest


def _vertex(pen: Pen, number: int, vertex: Model, x: float, y: float) -> str:
    """One task: its frame, its operators, its subtasks."""
    frame = element("rect", x=x, y=y, width=_CARD, height=_height(vertex), rx=12, class_="frame")
    parts = [
        element("title", escape(vertex["name"])),
        pen.group(f"{number} frame", ("loose", "chained"), frame),
        pen.words(x + 14, y + 21, f"{number} head", "small soft"),
    ]
    for place, operator in enumerate(vertex["operators"]):
        top = y + _HEAD + place * _OPERATOR
        if operator["after"] >= 0:
            above = y + _HEAD + operator["after"] * _OPERATOR
            parts.append(_call(pen, number, x, top, above, place - operator["after"]))
        parts.append(element("rect", x=x + 14, y=top, width=_CARD - 28, height=_BOX, rx=6, class_="box"))
        parts.append(name_element(x + 26, top + 18, operator["name"], _CARD - 48, "name"))
    top = y + _top_of_subtasks(vertex)
    parts += [_subtask(pen, number, place, x + 14, top + place * _SUBTASK) for place in range(_num_drawn(vertex))]
    if more := len(vertex["subtasks"]) - _MAX_SUBTASKS:
        words = f"… and {more} more subtasks" if more > 0 else ""
        parts.append(text_element(x + 14, top + _MAX_SUBTASKS * _SUBTASK + 14, words, "small soft"))
    return element("g", "".join(parts), data_vertex=number)


def _call(pen: Pen, number: int, x: float, top: float, above: float, steps: int) -> str:
    """What one operator hands on to the next: over the network as written, with a call when chained."""
    middle = x + 40
    path = f"M{middle:g} {top - 16:g}v12" if steps == 1 else f"M{x + 14:g} {above + 13:g}h-7V{top + 13:g}h4"
    tip = f"M{middle - 5:g} {top - 6:g}h10l-5 6z" if steps == 1 else f"M{x + 8:g} {top + 8:g}v10l6 -5z"
    words = text_element(middle + 14, top - 4, "a call, no channel", "small soft told") if steps == 1 else ""
    body = element("path", d=path, class_="call") + element("path", d=tip, class_="tip") + words
    return pen.group(f"{number} frame", ("loose", "chained"), body)


def _subtask(pen: Pen, number: int, place: int, x: float, y: float) -> str:
    lamp = {"x": x, "y": y + 4, "width": 26, "height": 34, "rx": 6}
    body = (
        element("rect", class_="lamp", **lamp)
        + element("rect", class_="lamp over", **lamp)
        + text_element(x + 13, y + 26, str(place), "name mid lit")
    )
    words = pen.words(x + 38, y + 17, f"{number} word {place}", "name")
    return pen.group(f"{number} sub {place}", _PROGRESS, body) + words + pen.words(
        x + 38, y + 35, f"{number} flow {place}", "small soft"
    )


def _exchange(pen: Pen, number: int, model: Model, places: list[tuple[float, float]]) -> str:
    """One exchange: its channels, or one line for all, and what is said of it."""
    edge = model["edges"][number]
    (x, y), (right, bottom) = places[edge["from_vertex"]], places[edge["to_vertex"]]
    source, target = model["vertices"][edge["from_vertex"]], model["vertices"][edge["to_vertex"]]
    x += _CARD
    start, end = y + _top_of_subtasks(source) - 26, bottom + _HEAD + 13
    whole = element("path", d=_curve(x, start, right - 12, end), class_="wire thick")
    tip = element("path", d=f"M{right - 14:g} {end - 7:g}l13 7l-13 7z", class_="tip")
    parts = [pen.group(f"{number} edge", _WIRES, whole + tip)]
    if _is_split(edge, model):
        for place, channel in enumerate(model["channels"]):
            if channel["edge"] == number:
                begin = y + _top_of_subtasks(source) + channel["from_subtask"] * _SUBTASK + 21
                finish = bottom + _top_of_subtasks(target) + channel["to_subtask"] * _SUBTASK + 21
                line = element("path", d=_curve(x, begin, right, finish), class_="wire")
                parts.append(pen.group(f"channel {place} state", _WIRES, line))
    leaving = [each for each in model["edges"] if each["from_vertex"] == edge["from_vertex"]]
    if len(leaving) == 1:
        at, top, class_ = x + 10, start - 26, "small halo"
    else:  # where they arrive they are apart, or one below the other
        before = [each for each in model["edges"][:number] if each["to_vertex"] == edge["to_vertex"]]
        at, top, class_ = right - 16, bottom + 14 + 34 * len(before), "small halo end"
    parts.append(pen.words(at, top, f"{number} words", class_))
    parts.append(pen.words(at, top + 17, f"{number} load", class_))
    return element("g", "".join(parts), data_edge=number)


def _curve(x: float, y: float, right: float, bottom: float) -> str:
    middle = (x + right) / 2
    return f"M{x:g} {y:g}C{middle:g} {y:g} {middle:g} {bottom:g} {right:g} {bottom:g}"


def _key(y: float) -> str:
    parts, x = [], float(MARGIN)
    for progress in _PROGRESS[2:]:
        pen = Pen({"0 sub 0": _PROGRESS.index(progress), "0 word 0": "", "0 flow 0": ""})
        words = f"{PROGRESS_SYMBOL[progress]} {PROGRESS_WORD[progress]}"
        parts.append(still(_subtask(pen, 0, 0, x, y - 6)) + text_element(x + 34, y + 20, words, "small"))
        x += 60 + 7.4 * len(words)
    x = float(MARGIN)
    for state, words in _WIRE_WORDS.items():
        line = element("path", d=f"M{x:g} {y + 50:g}h34", class_="wire")
        parts.append(element("g", line, data_state=state) + text_element(x + 44, y + 54, words, "small"))
        x += 66 + 6.6 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
