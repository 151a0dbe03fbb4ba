"""Where the parts of a job graph stand: tasks in columns, and lanes beside them for exchanges that skip a column.

Rules of this file:
- A line runs through no task. An exchange that skips a column has a lane there, a place of its own among the tasks.
- Words of two exchanges have two places. They stand in the lane, if there is one; else where the lines begin; and where
  they arrive if several exchanges leave the task, or if the words of others are there.
"""

from __future__ import annotations

from dataclasses import dataclass

from widgets.facts import MARGIN
from widgets.view_models import Model

__all__ = [
    "CARD",
    "HEAD",
    "MAX_SUBTASKS",
    "OPERATOR",
    "SUBTASK",
    "Layout",
    "Path",
    "height_of",
    "is_split",
    "num_drawn",
    "top_of_subtasks",
]

MAX_SUBTASKS = 8
CARD = 244
HEAD, OPERATOR, SUBTASK = 32, 42, 48
_MAX_LINES = 64
_COLUMN = CARD + 216
_GAP = 24
_WORDS = 34  # the height of what is said of one exchange
_LINE_STEP, _MOST_OF_LANE = 7, 56
_PARALLEL_STEP, _MOST_APART = 12, 36

Path = list[tuple[float, float]]  # the corners of a line: where it begins, both ends of each lane, where it ends


def num_drawn(vertex: Model) -> int:
    """How many of its subtasks are drawn."""
    return min(MAX_SUBTASKS, len(vertex["subtasks"]))


def is_split(edge: Model, model: Model) -> bool:
    """Whether each channel of an edge is a line of its own."""
    ends = (model["vertices"][edge["from_vertex"]], model["vertices"][edge["to_vertex"]])
    return edge["num_channels"] <= _MAX_LINES and all(len(end["subtasks"]) <= MAX_SUBTASKS for end in ends)


def top_of_subtasks(vertex: Model) -> int:
    """How far below the top of a task its subtasks begin."""
    return HEAD + len(vertex["operators"]) * OPERATOR


def height_of(vertex: Model) -> int:
    """How tall a task is."""
    more = 22 if len(vertex["subtasks"]) > MAX_SUBTASKS else 0
    return top_of_subtasks(vertex) + num_drawn(vertex) * SUBTASK + more + 6


@dataclass(frozen=True, slots=True)
class _Item:
    """What stands in a column: a task, or the lane of an edge; `place` is how far down, from 0 to 1."""

    number: int
    is_lane: bool
    place: float
    height: float


class Layout:
    """Where each task, each line and all words stand, and the size of the whole."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._edges = model["edges"]
        self._begin = [edge["from_vertex"] for edge in self._edges]
        columns = self._columns()
        totals = {column: sum(item.height + _GAP for item in items) - _GAP for column, items in columns.items()}
        tallest = max(totals.values())
        self.places = [(0.0, 0.0)] * len(model["vertices"])
        self._lanes: dict[tuple[int, int], float] = {}  # the top, by edge and column
        for column, items in columns.items():
            y = 8 + (tallest - totals[column]) / 2
            for item in items:
                if item.is_lane:
                    self._lanes[item.number, column] = y
                else:
                    self.places[item.number] = (float(MARGIN + column * _COLUMN), y)
                y += item.height + _GAP
        self.width = 2 * MARGIN + max(columns) * _COLUMN + CARD
        self.height = 8 + tallest
        self._arriving = self._words_that_arrive()

    def whole(self, number: int) -> Path:
        """The way of one line for a whole edge; its tip is at the end."""
        (x, y), (right, bottom) = self._ends(number)
        start = y + top_of_subtasks(self._vertex(number, "from")) - 26
        return self._way(number, 0, 1, (x, start), (right - 12, bottom + HEAD + 13))

    def line(self, number: int, place: int, channel: Model) -> Path:
        """The way of one channel of an edge, the `place`-th."""
        (x, y), (right, bottom) = self._ends(number)
        begin = y + top_of_subtasks(self._vertex(number, "from")) + channel["from_subtask"] * SUBTASK + 21
        finish = bottom + top_of_subtasks(self._vertex(number, "to")) + channel["to_subtask"] * SUBTASK + 21
        return self._way(number, place, self._edges[number]["num_channels"], (x, begin), (right, finish))

    def words(self, number: int) -> tuple[float, float, str]:
        """Where it is said what an edge carries, and the class of the words."""
        if skipped := _skipped(self._edges[number], self._model):
            return float(MARGIN + skipped[0] * _COLUMN + 14), self._lanes[number, skipped[0]] + 12, "small halo"
        return self._words_at_end(number) if number in self._arriving else self._words_at_start(number)

    def _words_at_start(self, number: int) -> tuple[float, float, str]:
        (x, y), _ = self._ends(number)
        return x + 10, y + top_of_subtasks(self._vertex(number, "from")) - 52, "small halo"

    def _words_at_end(self, number: int) -> tuple[float, float, str]:
        _, (right, bottom) = self._ends(number)
        place = self._into(self._edges[number]["to_vertex"]).index(number)
        return right - 16, bottom + 14 + _WORDS * place, "small halo end"

    def _words_that_arrive(self) -> set[int]:
        """The edges whose words stand where they arrive, one below the other; no others may stand at their height."""
        direct = [number for number, edge in enumerate(self._edges) if not _skipped(edge, self._model)]
        found = {number for number in direct if self._begin.count(self._begin[number]) > 1}
        while True:
            taken = [(self._vertex(number, "to")["column"], self._words_at_end(number)[1]) for number in found]
            more = {
                number
                for number in set(direct) - found
                for column, y in taken
                if column == self._vertex(number, "to")["column"] and abs(self._words_at_start(number)[1] - y) < _WORDS
            }
            if not more:
                return found
            found |= more

    def _into(self, vertex: int) -> list[int]:
        """The edges that go to a task from the column before."""
        return [
            number
            for number, edge in enumerate(self._edges)
            if edge["to_vertex"] == vertex and not _skipped(edge, self._model)
        ]

    def _vertex(self, number: int, end: str) -> Model:
        vertex: Model = self._model["vertices"][self._edges[number][f"{end}_vertex"]]
        return vertex

    def _ends(self, number: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """The upper right corner of the task an edge leaves, and the upper left one of where it goes."""
        edge = self._edges[number]
        x, y = self.places[edge["from_vertex"]]
        return (x + CARD, y), self.places[edge["to_vertex"]]

    def _way(
        self, number: int, place: int, num_lines: int, start: tuple[float, float], end: tuple[float, float]
    ) -> Path:
        apart = self._apart(number)
        path = [(start[0], start[1] + apart)]
        middle = _lane_height(self._edges[number], self._model) / 2
        for at, column in enumerate(_skipped(self._edges[number], self._model)):
            step = min(_LINE_STEP, _MOST_OF_LANE / num_lines)
            y = self._lanes[number, column] + middle + (place - (num_lines - 1) / 2) * step + (0 if at else _WORDS)
            x = float(MARGIN + column * _COLUMN)
            path += [(x, y), (x + CARD, y)]
        return [*path, (end[0], end[1] + apart)]

    def _apart(self, number: int) -> float:
        """How far a line is moved down, so that two exchanges between the same two tasks do not lie on each other."""
        ends = [(edge["from_vertex"], edge["to_vertex"]) for edge in self._edges]
        same, before = ends.count(ends[number]), ends[:number].count(ends[number])
        return (before - (same - 1) / 2) * min(_PARALLEL_STEP, _MOST_APART / same)

    def _columns(self) -> dict[int, list[_Item]]:
        """For each column what stands in it, from above."""
        vertices = self._model["vertices"]
        columns: dict[int, list[_Item]] = {}
        sizes = [sum(other["column"] == vertex["column"] for other in vertices) for vertex in vertices]
        down = [(vertex["row"] + 0.5) / size for vertex, size in zip(vertices, sizes, strict=True)]
        for number, vertex in enumerate(vertices):
            into = self._into(number)
            is_alone = all(self._begin.count(other) == 1 for other in self._begin)  # then all words stand at the start
            said = 0 if is_alone else _WORDS * len(into)
            item = _Item(number, False, down[number], max(height_of(vertex), said))
            columns.setdefault(vertex["column"], []).append(item)
        for number, edge in enumerate(self._edges):
            middle = (down[edge["from_vertex"]] + down[edge["to_vertex"]]) / 2
            for place, column in enumerate(_skipped(edge, self._model)):
                height = _lane_height(edge, self._model) + (0 if place else _WORDS)
                columns[column].append(_Item(number, True, middle, height))
        return {
            column: sorted(items, key=lambda item: (item.place, item.is_lane, item.number))
            for column, items in columns.items()
        }


def _skipped(edge: Model, model: Model) -> range:
    """The columns between the two ends of an edge."""
    ends = [model["vertices"][edge[f"{end}_vertex"]]["column"] for end in ("from", "to")]
    return range(ends[0] + 1, ends[1])


def _lane_height(edge: Model, model: Model) -> float:
    """How tall the lines of an edge are in a lane."""
    num_lines = edge["num_channels"] if is_split(edge, model) else 1
    return float(10 + min(_LINE_STEP * num_lines, _MOST_OF_LANE))
