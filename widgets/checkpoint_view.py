"""What became of the checkpoints of a run: when each was begun, how long it took, who was last, why one failed."""

from __future__ import annotations

from math import inf

from refimpl.checkpoint import (
    LIST_HEAD,
    CheckpointCounts,
    CheckpointStats,
    CheckpointStatsSnapshot,
    SubtaskStats,
    duration_words,
    list_row,
    reason_words,
    size_words,
)
from refimpl.job import JobSnapshot
from widgets.checkpoint_model import (
    STATES,
    SYMBOLS,
    WORDS,
    acks_words,
    checkpoint_model,
    result_words,
    since_trigger,
    title_of,
)
from widgets.facts import GONE, MARGIN, Drawing, Facts, FactView, Pen, Table, still
from widgets.letters import fitting
from widgets.svg import element, name_element, text_element
from widgets.view_models import Model, moment_of

__all__ = ["CheckpointView"]

_MOST = 10  # checkpoints drawn, as many as are remembered; and subtasks drawn of one
_LAMPS = (*STATES, "free")  # a place for one that is still to come
_SUBTASK_STATES = ("waits", "completed")
_BAR, _THICK = 200, 14
_WHEN_X = MARGIN + 250
_BAR_X = _WHEN_X + 90
_SAYS_X = _BAR_X + _BAR + 16
_ROOM = 380
_WIDTH = _SAYS_X + _ROOM + MARGIN
_TOP, _ROW, _LINE = 64, 38, 26
_NO_STORE = "This run keeps no checkpoints: it has no store. Give it one, as in Simulation(job, store=MemoryStore())."
_NONE_YET = "No checkpoint has been triggered so far: one is every checkpoint_interval_ms of Config, with 0 none is."
_HEADS = {"counts": "name", "newest": "", "note": "soft"}  # lines, and how they look
_NONE_COMPLETED = "None has been completed so far: after a failure the job would begin from the start."


class CheckpointView(FactView):
    """The last checkpoints of a run with a store, the newest first, and below what each subtask did for the newest.

    A bar is a checkpoint from its trigger on, until the last acknowledgement, and then to its end. A flag says that the
    job went on from it. Go back in time to see what the subtasks did for an older one.
    `MomentView` says what can be shown, and the options.

        CheckpointView(Simulation(environment, store=MemoryStore()))
    """

    default_title = "Checkpoints"
    kind = "checkpoints"
    styles = ("facts.css", "checkpoints.css")

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        stats = snapshot.checkpoints or CheckpointStatsSnapshot()
        names = [task["name"] for task in known["tasks"]]
        newest_first = [checkpoint_model(each, snapshot.time_ms) for each in reversed(stats.history)]
        shown = stats.history[-1] if stats.history else None
        by_task = {} if shown is None else {each.task: each for each in shown.subtasks}
        return {
            **moment_of("checkpoints", snapshot, action),
            "has_store": snapshot.checkpoints is not None,
            **_counts(stats.counts),
            "refusal": "" if stats.refusal is None else reason_words(stats.refusal),
            "restored": _restored(stats),
            "newest": {
                "completed": _named(stats.latest_completed),
                "savepoint": _named(stats.latest_savepoint),
                "failed": _named(stats.latest_failed),
            },
            "checkpoints": newest_first,
            "subtasks": [_subtask(name, by_task.get(name), shown) for name in names],
        }

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {}
        for (name, class_), words in zip(_HEADS.items(), _head_words(model), strict=True):
            facts[name] = fitting(words, _WIDTH - 2 * MARGIN, class_)
        rows = model["checkpoints"][:_MOST]
        longest_ms = max((each["duration_ms"] for each in rows), default=0.0)
        for number in range(_MOST):
            facts |= _row_facts(str(number), rows[number] if number < len(rows) else None, longest_ms)
        facts["of"] = fitting(_of_words(model), _WIDTH - 2 * MARGIN, "name")
        took_ms = rows[0]["duration_ms"] if rows else 0.0
        for number, subtask in enumerate(model["subtasks"]):
            facts[f"s{number} state"] = _subtask_state(subtask)
            facts[f"s{number} acks"] = _part(subtask["acked_ms"] or 0.0, took_ms)
            facts[f"s{number} words"] = _subtask_words(subtask)
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        lines = enumerate(_HEADS.items())
        parts = [pen.words(MARGIN, 8 + 22 * place, name, class_) for place, (name, class_) in lines]
        shown = model["subtasks"][:_MOST]
        more = len(model["subtasks"]) - len(shown)
        tall = 40 + len(shown) * _LINE + (20 if more else 0)
        at = {"x": MARGIN - 8, "y": _TOP, "width": _WIDTH - 2 * MARGIN + 16, "height": tall, "rx": 10}
        parts.append(element("rect", class_="card", **at))
        parts.append(pen.words(MARGIN + 4, _TOP + 22, "of", "name"))
        for number, subtask in enumerate(shown):
            parts.append(_subtask_row(pen, f"s{number}", subtask["task"], _TOP + 34 + number * _LINE))
        if more:
            words = f"… and {more} more subtasks, in the table"
            parts.append(text_element(MARGIN + 4, _TOP + tall - 8, words, "small soft"))
        top = _TOP + tall + 26
        heads = ((MARGIN + 32, "newest first"), (_WHEN_X, "triggered"), (_BAR_X, "from trigger to end"))
        parts += [text_element(x, top, words, "small soft") for x, words in (*heads, (_SAYS_X, "what became of it"))]
        parts += [_row(pen, str(number), top + 14 + number * _ROW) for number in range(_MOST)]
        bottom = top + 20 + _MOST * _ROW
        return Drawing("".join(parts) + _key(bottom), _WIDTH, bottom + 64)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lines = [words for words in _head_words(model) if words]
        if not model["checkpoints"]:
            return lines
        lines.append(f"{LIST_HEAD}  {'triggered':>11}  what became of it")
        for each in model["checkpoints"]:
            begun = list_row(each["checkpoint"], each["kind"], each["state_bytes"], each["duration_ms"])
            why = f": {each['why']}" if each["why"] else ""
            passed = " · barriers have overtaken" if each["is_unaligned"] else ""
            lines.append(f"{begun}  {_when(each):>11}  {SYMBOLS[each['state']]} {WORDS[each['state']]}{why}{passed}")
            gone = "its files are deleted" if each["is_discarded"] else ""
            lines += [f"{'':8}{words}" for words in (acks_words(each, inf), _note(each), gone) if words]
        lines.append(_of_words(model))
        width = max(len(subtask["task"]) for subtask in model["subtasks"])
        return lines + [f"    {each['task']:<{width}}  {_subtask_words(each)}" for each in model["subtasks"]]

    @staticmethod
    def status_of(model: Model) -> str:
        if not model["checkpoints"]:
            return next(words for words in _head_words(model) if words)
        newest = model["checkpoints"][0]
        return f"{title_of(newest)}: {result_words(newest)}; {_counts_words(model)}"

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        facts = ("title", "when", "result", "more", "note")
        rows = [[str(place + 1), *(pen.cell(f"{place} {fact}") for fact in facts)] for place in range(_MOST)]
        heads = ["newest first", "checkpoint", "triggered", "what became of it", "acknowledged", "in full"]
        subtasks = [[subtask["task"], pen.cell(f"s{number} words")] for number, subtask in enumerate(model["subtasks"])]
        return [("Checkpoints", heads, rows), ("Subtasks of the newest", ["subtask", "its part"], subtasks)]


# -- the model -------------------------------------------------------------------------------------


def _counts(counts: CheckpointCounts) -> Model:
    return {
        "num_triggered": counts.num_triggered,
        "num_in_progress": counts.num_in_progress,
        "num_completed": counts.num_completed,
        "num_failed": counts.num_failed,
        "num_restored": counts.num_restored,
        "num_refused": counts.num_refused,
    }


def _restored(stats: CheckpointStatsSnapshot) -> Model | None:
    restored = stats.latest_restored
    if restored is None:
        return None
    return {
        "checkpoint": restored.checkpoint_id,
        "kind": restored.kind.value,
        "restored_ms": round(restored.restored_ms, 3),
    }


def _named(stats: CheckpointStats | None) -> str:
    """A checkpoint as a line names it; "" for none."""
    return "" if stats is None else f"{stats.checkpoint_id}{f' ({stats.name})' if stats.name else ''}"


def _subtask(name: str, done: SubtaskStats | None, stats: CheckpointStats | None) -> Model:
    """What a subtask did for the newest checkpoint, of which it need not be a part."""
    has_acked = stats is not None and done is not None and done.acked_ms is not None
    return {
        "task": name,
        "is_part": done is not None,
        "acked_ms": since_trigger(stats, done) if has_acked and stats is not None and done is not None else None,
        "state_bytes": 0 if done is None else done.state_bytes,
        "alignment_ms": None if done is None or done.alignment_ms is None else round(done.alignment_ms, 3),
        "buffered_bytes": None if done is None else done.buffered_bytes,
        "is_unaligned": done is not None and done.is_unaligned,
    }


# -- words -----------------------------------------------------------------------------------------


def _head_words(model: Model) -> tuple[str, str, str]:
    """What is said of all of them, in the order of `_HEADS`."""
    newest = [f"newest {what}: {name}" for what, name in model["newest"].items() if name]
    if (restored := model["restored"]) is not None:
        when = duration_words(restored["restored_ms"])
        newest.append(f"went on from {restored['kind']} {restored['checkpoint']} at {when}")
    notes = []
    if model["num_triggered"] and not model["num_completed"] and restored is None:
        notes.append(_NONE_COMPLETED)
    if refused := model["num_refused"]:
        requests = "1 request was refused" if refused == 1 else f"{refused} requests were refused, the last"
        notes.append(f"{requests}, since {model['refusal']}")
    return _counts_words(model), " · ".join(newest), " ".join(notes)


def _counts_words(model: Model) -> str:
    if not model["has_store"]:
        return _NO_STORE
    if not model["num_triggered"]:
        return _NONE_YET
    each = {
        "in progress": model["num_in_progress"],
        "completed": model["num_completed"],
        "failed": model["num_failed"],
    }
    words = f"{model['num_triggered']} triggered: " + ", ".join(f"{count} {what}" for what, count in each.items())
    return words + (f" · restored {_times(model['num_restored'])}" if model["num_restored"] else "")


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _when(each: Model) -> str:
    return f"at {duration_words(each['triggered_ms'])}"


def _note(each: Model) -> str:
    """What a line has no room for."""
    words = [f"called {each['name']}"] if each["name"] else []
    if each["state"] == "progress" and each["missing"]:
        names, more = each["missing"][:8], len(each["missing"]) - 8
        words.append(f"waits for {', '.join(names)}" + (f" and {more} more" if more > 0 else ""))
    if each["cause"]:
        words.append(each["cause"] + (f", {each['detail']}" if each["detail"] else ""))
    if each["num_restores"]:
        words.append(f"the job went on from it {_times(each['num_restores'])}")
    return " · ".join(words)


def _of_words(model: Model) -> str:
    if not model["checkpoints"]:
        return "Subtasks: nothing to tell yet"
    return f"What each subtask did for {title_of(model['checkpoints'][0])}"


def _subtask_state(subtask: Model) -> int:
    return (
        GONE
        if not subtask["is_part"]
        else _SUBTASK_STATES.index("waits" if subtask["acked_ms"] is None else "completed")
    )


def _subtask_words(subtask: Model) -> str:
    if not subtask["is_part"]:
        return "no part of it"
    if subtask["acked_ms"] is None:
        return "has not acknowledged"
    words = [f"after {duration_words(subtask['acked_ms'])}", f"state {size_words(subtask['state_bytes'])}"]
    if subtask["alignment_ms"] is not None:
        words.append(f"alignment {duration_words(subtask['alignment_ms'])}")
    if subtask["buffered_bytes"] is not None:
        words.append(f"{size_words(subtask['buffered_bytes'])} in flight")
    if subtask["is_unaligned"]:
        words.append("barriers have overtaken")
    return " · ".join(words)


# -- the drawing -----------------------------------------------------------------------------------


def _part(ms: float, of_ms: float) -> int:
    """How much of a bar that is."""
    return round(_BAR * min(1.0, ms / of_ms)) if of_ms else 0


def _row_facts(name: str, each: Model | None, longest_ms: float) -> Facts:
    if each is None:
        words: Facts = {f"{name} {what}": "" for what in ("title", "when", "result", "more", "note")}
        return {**words, f"{name} state": _LAMPS.index("free"), f"{name} flag": 0, f"{name} bar": 0, f"{name} acks": 0}
    return {
        f"{name} title": fitting(title_of(each), _WHEN_X - MARGIN - 40, "name"),
        f"{name} when": _when(each),
        f"{name} result": fitting(result_words(each), _ROOM, "small"),
        f"{name} more": acks_words(each, _ROOM - 270),
        f"{name} note": _note(each),
        f"{name} state": STATES.index(each["state"]),
        f"{name} flag": int(each["num_restores"] > 0),
        f"{name} bar": _part(each["duration_ms"], longest_ms),
        f"{name} acks": _part(each["last_acked_ms"] or 0.0, longest_ms),
    }


def _row(pen: Pen, name: str, y: float) -> str:
    return "".join(
        [
            pen.group(f"{name} state", _LAMPS, _lamp(MARGIN, y) + _bar(pen, name, y + 3)),
            pen.group(f"{name} flag", ("none", "restored"), _flag(MARGIN + 5, y + 3)),
            pen.words(MARGIN + 32, y + 15, f"{name} title", "name"),
            pen.words(_WHEN_X, y + 15, f"{name} when", "small"),
            pen.words(_SAYS_X, y + 9, f"{name} result", "small"),
            pen.words(_SAYS_X, y + 24, f"{name} more", "small soft"),
        ]
    )


def _subtask_row(pen: Pen, name: str, task: str, y: float) -> str:
    at = {"x": _BAR_X, "y": y, "width": _BAR, "height": _THICK, "rx": 3}
    lamp = element("rect", x=MARGIN + 6, y=y, width=14, height=14, rx=7, class_="lamp")
    bar = element("rect", class_="trough", **at) + pen.length(f"{name} acks", _BAR, _BAR_X, y, _BAR, _THICK, "acks")
    return "".join(
        [
            pen.group(f"{name} state", _SUBTASK_STATES, lamp + bar),
            name_element(MARGIN + 32, y + 12, task, _BAR_X - MARGIN - 50, "small"),
            pen.words(_SAYS_X, y + 12, f"{name} words", "small"),
        ]
    )


def _lamp(x: float, y: float) -> str:
    at = {"x": x, "y": y, "width": 22, "height": 22, "rx": 5}
    return element("rect", class_="lamp", **at) + element("rect", class_="lamp over", **at)


def _bar(pen: Pen, name: str, y: float) -> str:
    trough = element("rect", x=_BAR_X, y=y, width=_BAR, height=_THICK, rx=3, class_="trough")
    whole = pen.length(f"{name} bar", _BAR, _BAR_X, y, _BAR, _THICK, "run")
    return trough + whole + pen.length(f"{name} acks", _BAR, _BAR_X, y, _BAR, _THICK, "acks")


def _flag(x: float, y: float) -> str:
    pole = element("path", d=f"M{x:g} {y + 16:g}v-16", class_="flag-up")
    return pole + element("path", d=f"M{x:g} {y:g}l12 4l-12 4z", class_="flag-up cloth")


def _key(y: float) -> str:
    parts, x = [], float(MARGIN)
    for state in STATES:
        words = f"{SYMBOLS[state]} {WORDS[state]}"
        parts.append(still(Pen({"s": STATES.index(state)}).group("s", STATES, _lamp(x, y))))
        parts.append(text_element(x + 28, y + 16, words, "small"))
        x += 52 + 7.0 * len(words)
    parts.append(element("g", _flag(x, y + 3), data_state="restored"))
    parts.append(text_element(x + 20, y + 16, "the job went on from it", "small"))
    x = float(MARGIN)
    for class_, words in (("acks", "from the trigger to the last acknowledgement"), ("run", "and then to the end")):
        parts.append(element("rect", x=x, y=y + 34, width=22, height=_THICK, class_=class_))
        parts.append(text_element(x + 28, y + 46, words, "small"))
        x += 52 + 7.0 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
