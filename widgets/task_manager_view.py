"""Who runs what: the TaskManagers, whether they are there, their slots, and how the tasks in each slot stand."""

from __future__ import annotations

from itertools import groupby

from refimpl.job import JobSnapshot, TaskManagerSnapshot
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, still
from widgets.frames import PROGRESS
from widgets.svg import element, name_element, text_element
from widgets.text import PROGRESS_SYMBOL, PROGRESS_WORD
from widgets.view_models import Model, moment_of

__all__ = ["TaskManagerView"]

_MAX_TASK_MANAGERS = 8
_MAX_SLOTS = 8
_CARD, _GAP = 420, 20
_HEAD, _SLOT, _TASK = 60, 26, 42

# How a lamp is lit is known to the style already: a TaskManager that is there glows like a task that moves.
_LIFE = ("alive", "done", "lost", "silent")
_LIFE_LAMPS = ("made", "done", "backpressured")
_LAMP_OF_LIFE = {"alive": 0, "done": 1, "lost": 2, "silent": 2}
_LIFE_WORD = {"alive": "▶ alive", "done": "✓ done", "lost": "✗ lost", "silent": "⚠ no answer"}
_LAMPS = (*PROGRESS[:-1], "planned")  # who is lost looks like who has not begun
_WORD = {progress: f"{PROGRESS_SYMBOL[progress]} {PROGRESS_WORD[progress]}" for progress in PROGRESS}


class TaskManagerView(FactView):
    """The TaskManagers of a job: alive, done or lost, their processes, memory and slots, and the tasks in each slot.

    A slot holds one subtask of every operator of a slot-sharing group; what is in one slot needs no network. A
    TaskManager is lost when its process has ended before its tasks had: the rest of the job fails, as in Flink, and
    what it held is shown as it was seen last. So is one that does not answer, since its process was stopped, say.
    `MomentView` says what can be shown, and the options.

        TaskManagerView(ProcessRun(environment, num_task_managers=2).start())
    """

    default_title = "TaskManagers"
    kind = "taskmanagers"

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        parts = [_task_manager(part) for part in snapshot.task_managers]
        return {**moment_of("taskmanagers", snapshot, action), "task_managers": parts}

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {"all": _all_words(model)}
        for number, part in enumerate(model["task_managers"]):
            facts[f"{number} life"] = _LAMP_OF_LIFE[part["life"]]
            facts[f"{number} word"] = _LIFE_WORD[part["life"]]
            facts[f"{number} memory"] = _memory_words(part)
            for place, task in enumerate(_tasks(part)):
                facts[f"{number}.{place} state"] = PROGRESS.index(task["progress"])
                facts[f"{number}.{place} word"] = _WORD[task["progress"]]
                facts[f"{number}.{place} flow"] = _flow_words(task)
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        shown = list(enumerate(model["task_managers"]))[:_MAX_TASK_MANAGERS]
        parts = [pen.words(MARGIN, 14, "all", "name")]
        top, width = 30.0, 2 * MARGIN + _CARD
        for at in range(0, len(shown), 2):
            heights = []
            for column, (number, part) in enumerate(shown[at : at + 2]):
                drawn, tall = _card(pen, number, part, MARGIN + column * (_CARD + _GAP), top)
                parts.append(drawn)
                heights.append(tall)
                width = max(width, 2 * MARGIN + (column + 1) * _CARD + column * _GAP)
            top += max(heights) + 14
        if more := len(model["task_managers"]) - len(shown):
            parts.append(text_element(MARGIN, top + 8, f"… and {more} more, in the table", "soft"))
            top += 22
        return Drawing("".join(parts) + _key(top + 4), max(width, 760), top + 44)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lines = [_all_words(model)]
        for part in model["task_managers"]:
            lines.append(f"{_name(part)}: {_LIFE_WORD[part['life']]}, {_memory_words(part)}")
            for slot in part["slots"]:
                lines.append(f"    slot {slot['slot']}")
                lines += [
                    f"        {task['name']}: {_WORD[task['progress']]}, {_flow_words(task)}" for task in slot["tasks"]
                ]
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        lost = [_name(part) for part in model["task_managers"] if part["life"] == "lost"]
        silent = [_name(part) for part in model["task_managers"] if part["life"] == "silent"]
        words = [f"; {word}: {', '.join(who[:4])}" for word, who in (("lost", lost), ("no answer", silent)) if who]
        return _all_words(model) + "".join(words)

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        parts = list(enumerate(model["task_managers"]))
        return [
            (
                "TaskManagers",
                ["TaskManager", "state", "slots", "memory"],
                [[_name(p), pen.cell(f"{n} word"), str(len(p["slots"])), pen.cell(f"{n} memory")] for n, p in parts],
            ),
            (
                "Tasks",
                ["task", "TaskManager", "slot", "state", "records"],
                [
                    [
                        task["name"],
                        f"tm-{part['task_manager']}",
                        str(task["slot"]),
                        pen.cell(f"{number}.{place} word"),
                        pen.cell(f"{number}.{place} flow"),
                    ]
                    for number, part in parts
                    for place, task in enumerate(_tasks(part))
                ],
            ),
        ]


def _task_manager(part: TaskManagerSnapshot) -> Model:
    is_done = all(task.progress.value == "done" for task in part.tasks)
    life = "lost" if part.is_lost else "done" if is_done else "silent" if part.is_silent else "alive"
    tasks = [
        {
            "name": task.name,
            "slot": slot,
            "progress": "lost" if part.is_lost else task.progress.value,
            "num_records_in": task.num_records_in,
            "num_records_out": task.num_records_out,
        }
        for task, slot in zip(part.tasks, part.slots, strict=True)
    ]
    tasks.sort(key=lambda task: task["slot"])
    slots = [{"slot": number, "tasks": list(each)} for number, each in groupby(tasks, lambda task: task["slot"])]
    return {
        "task_manager": part.number,
        "process": part.process_id,
        "life": life,
        "num_free_segments": part.pool.num_free,
        "num_total_segments": part.pool.num_total,
        "slots": slots,
    }


def _tasks(part: Model) -> list[Model]:
    """Its tasks, slot by slot."""
    return [task for slot in part["slots"] for task in slot["tasks"]]


# -- words -----------------------------------------------------------------------------------------


def _all_words(model: Model) -> str:
    parts = model["task_managers"]
    lives = [part["life"] for part in parts]
    slots = sum(len(part["slots"]) for part in parts)
    words = ", ".join(f"{lives.count(life)} {life}" for life in _LIFE if life in lives)
    return f"{_counted(len(parts), 'TaskManager')}: {words} · {_counted(slots, 'slot')}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _name(part: Model) -> str:
    return f"tm-{part['task_manager']}" + (f" (process {part['process']})" if part["process"] else "")


def _memory_words(part: Model) -> str:
    used = part["num_total_segments"] - part["num_free_segments"]
    return f"{used} of {part['num_total_segments']} segments taken"


def _flow_words(task: Model) -> str:
    return f"in {task['num_records_in']}, out {task['num_records_out']}"


# -- the drawing -----------------------------------------------------------------------------------


def _card(pen: Pen, number: int, part: Model, x: float, y: float) -> tuple[str, float]:
    shown = part["slots"][:_MAX_SLOTS]
    more = len(part["slots"]) - len(shown)
    tall = _HEAD + sum(_SLOT + _TASK * len(slot["tasks"]) for slot in shown) + (24 if more else 8)
    parts = [
        element("rect", x=x, y=y, width=_CARD, height=tall, rx=10, class_="card"),
        pen.group(f"{number} life", _LIFE_LAMPS, _lamp(x + 14, y + 14, 22, 30)),
        text_element(x + 50, y + 28, _name(part), "name"),
        pen.words(x + _CARD - 14, y + 28, f"{number} word", "name end"),
        pen.words(x + 50, y + 48, f"{number} memory", "small soft"),
    ]
    at, place = y + _HEAD, 0
    for slot in shown:
        parts.append(text_element(x + 14, at + 14, f"slot {slot['slot']}", "small soft"))
        at += _SLOT
        for task in slot["tasks"]:
            fact = f"{number}.{place}"
            parts += [
                pen.group(f"{fact} state", _LAMPS, _lamp(x + 28, at + 1, 12, 16)),
                name_element(x + 50, at + 14, task["name"], 230, "name"),
                pen.words(x + _CARD - 14, at + 14, f"{fact} word", "small end"),
                pen.words(x + 50, at + 31, f"{fact} flow", "small soft"),
            ]
            at += _TASK
            place += 1
    if more > 0:
        parts.append(text_element(x + 14, at + 12, f"… and {_counted(more, 'more slot')}, in the table", "small soft"))
    return element("g", "".join(parts), data_task_manager=part["task_manager"]), tall


def _lamp(x: float, y: float, width: float, height: float) -> str:
    box = {"x": x, "y": y, "width": width, "height": height, "rx": 4}
    return element("rect", class_="lamp", **box) + element("rect", class_="lamp over", **box)


def _key(y: float) -> str:
    parts, x = [text_element(MARGIN, y + 15, "a task:", "small soft")], MARGIN + 60.0
    for number, progress in enumerate(PROGRESS):
        lamp = Pen({"state": number}).group("state", _LAMPS, _lamp(x, y + 2, 12, 16))
        parts.append(still(lamp) + text_element(x + 20, y + 15, _WORD[progress], "small"))
        x += 48 + 7.4 * len(_WORD[progress])
    return element("g", "".join(parts), class_="key", aria_hidden="true")
