"""The text twin: the facts of a picture in words, from the same model.

It is what a screen reader, GitHub, a terminal and nbval see. Lines stay under 97 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from refimpl.job import JobSnapshot
from widgets.view_models import Model

__all__ = [
    "PROGRESS_SYMBOL",
    "PROGRESS_WORD",
    "channel_text",
    "failure_text",
    "fill_word",
    "lost_words",
    "moment_text",
    "pipeline_status",
    "pipeline_text",
    "progress_words",
    "queue_text",
    "rest_words",
    "result_symbol",
    "ribbon_status",
    "ribbon_text",
    "shortened",
    "silence_of",
    "step_text",
    "step_words",
    "watermark_text",
]

PROGRESS_SYMBOL = {"made": "▶", "idle": "○", "backpressured": "▲", "done": "✓", "lost": "✗"}
# The engine says that a step `made` progress; of a task one says that it is moving.
PROGRESS_WORD = {
    "made": "moving", "idle": "idle", "backpressured": "backpressured", "done": "done", "lost": "lost",
}  # fmt: skip

_HELD_MS = 60_000  # the longest rest there is stands for one without end

_SILENT = "⚠"

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def pipeline_text(model: Model, title: str = "", error: str = "") -> str:
    """A job at one moment: a line per task, per output and per channel; `error` is why it failed, if it did."""
    lines = [
        f"{title or 'Pipeline'}: {len(model['tasks'])} tasks, {len(model['channels'])} channels",
        moment_text(model),
        *([failure_text(error, most=400)] if error else []),
    ]
    width = max(len(task["name"]) for task in model["tasks"])
    for number, task in enumerate(model["tasks"]):
        word = PROGRESS_WORD[task["progress"]]
        lines.append(
            f"{PROGRESS_SYMBOL[task['progress']]} {task['name']:<{width}}  {word:<13}  in {task['num_records_in']:>6}  "
            f"out {task['num_records_out']:>6}  watermark {watermark_text(task)}"
            + (f"  {rest_words(task)}" if task["rest_ms"] else "")
        )
        lines += [f"    {output_text(output)}" for output in model["outputs"] if output["task"] == number]
        lines += [
            f"      {channel_text(channel, model)}" for channel in model["channels"] if channel["from_task"] == number
        ]
    return "\n".join(lines)


def pipeline_status(model: Model) -> str:
    """A job at one moment in one sentence, for `aria-live`."""
    counts = dict.fromkeys(PROGRESS_SYMBOL, 0)
    for task in model["tasks"]:
        counts[task["progress"]] += 1
    words = ", ".join(f"{number} {PROGRESS_WORD[progress]}" for progress, number in counts.items() if number)
    queued = sum(output["queued_buffers"] for output in model["outputs"])
    home = sum(output["home_buffers"] for output in model["outputs"])
    reading = sum(output["reading_buffers"] for output in model["outputs"])
    return (
        f"{step_words(model)}: tasks {words}; buffers {queued} queued, {reading} being read, "
        f"{home} home; {model['num_free_segments']} of {model['num_total_segments']} segments free"
    )


def moment_text(model: Model) -> str:
    """When this is, what was done last, and what nobody holds."""
    return (
        f"{step_words(model)} · {model['num_free_segments']} of {model['num_total_segments']} segments "
        f"of {model['segment_size_bytes']} B free"
    )


def step_words(model: Model) -> str:
    """`step 9 (flights-0)`: how many steps were taken, and by whom the last."""
    action = model["action"].removeprefix("step ")
    return f"step {model['num_steps']}" + (f" ({action})" if action else "")


def progress_words(task: Model) -> str:
    """How a task stands: a sign and a word."""
    return f"{PROGRESS_SYMBOL[task['progress']]} {PROGRESS_WORD[task['progress']]}"


def rest_words(task: Model) -> str:
    """How a task is slowed: nothing if it is not, `rests 50 ms`, or `held`."""
    if task["rest_ms"] >= _HELD_MS:
        return "held"
    return f"rests {task['rest_ms']:g} ms" if task["rest_ms"] else ""


def lost_words(names: Sequence[str]) -> str:
    """Which tasks went with their TaskManager, as the end of a sentence; nothing if none did."""
    return f"; lost: {', '.join(names[:4])}{' and more' if len(names) > 4 else ''}" if names else ""


def failure_text(error: str, most: int) -> str:
    """Why a job failed, on one line; or what `silence_of` says, as it is."""
    words = " ".join(error.split())
    return shortened(words if words.startswith(_SILENT) else f"✗ the job failed: {words}", most)


def silence_of(snapshot: object) -> str:
    """Which TaskManagers do not answer; "" if all do."""
    silent = [each for each in snapshot.task_managers if each.is_silent] if isinstance(snapshot, JobSnapshot) else []
    if not silent:
        return ""
    names = ", ".join(f"tm-{each.number} (process {each.process_id})" for each in silent)
    return f"{_SILENT} no answer from {names}, shown as seen last; if it was stopped, kill -CONT lets it go on"


def shortened(words: str, most: int) -> str:
    """At most so many characters, the last one `…` if some are missing."""
    return words if len(words) <= most else words[: most - 1] + "…"


def watermark_text(task: Model) -> str:
    """A watermark as a picture writes it: `none yet`, a time, or `end`."""
    if task["watermark_state"] == "set":
        return f"{task['watermark_ms']} ms"
    return "end" if task["watermark_state"] == "end" else "none yet"


def output_text(output: Model) -> str:
    """Where the buffers of one output are."""
    return (
        f"buffers of {output['name']}: {output['home_buffers']} home, {output['queued_buffers']} queued, "
        f"{output['reading_buffers']} being read, limit {output['size_buffers']}"
    )


def channel_text(channel: Model, model: Model) -> str:
    """One channel: where to, what stands in its queue, the head on the right."""
    target = model["tasks"][channel["to_task"]]["name"] if channel["to_task"] >= 0 else "nobody"
    tail = channel["queue"][-1] if channel["queue"] else None
    marks = [
        word
        for word, is_set in (
            ("tail open", tail is not None and not tail["is_finished"]),
            ("flush", channel["is_flush_requested"]),
            ("blocked", channel["is_blocked"]),
            ("ended", channel["is_finished"]),
        )
        if is_set
    ]
    return (
        f"[{channel['index']}] {queue_text(channel)} → {target}  backlog {channel['backlog_buffers']}  "
        f"sent {channel['num_bytes_total']} B" + "".join(f"  {mark}" for mark in marks)
    )


def queue_text(channel: Model, most: int = 8) -> str:
    """A queue as a row of fill levels, `▄` half full, `E` an event; the head stands on the right."""
    queue = channel["queue"]
    cells = ["E" if entry["is_event"] else _eighth(entry) for entry in queue[:most]]
    more = f"+{len(queue) - most}" if len(queue) > most else ""
    return f"{more}|{''.join(reversed(cells))}|" if queue else "(empty)"


def _eighth(entry: Model) -> str:
    return _EIGHTHS[min(8, -(-8 * entry["written_bytes"] // max(1, entry["capacity_bytes"])))]


def fill_word(entry: Model) -> str:
    """A queued buffer in words: `12 of 32 B, open`."""
    if entry["is_event"]:
        return f"event, {entry['written_bytes']} B"
    state = "finished" if entry["is_finished"] else "open"
    return f"{entry['written_bytes']} of {entry['capacity_bytes']} B, {state}"


# -- the ribbon ------------------------------------------------------------------------------------

_RESULT_SYMBOL = {
    "FULL_RECORD": "●",
    "FULL_RECORD_MEMORY_SEGMENT_FULL": "◆",
    "PARTIAL_RECORD_MEMORY_SEGMENT_FULL": "◐",
}


def result_symbol(result: str) -> str:
    """The mark of a result; `?` for an answer the engine does not know."""
    return _RESULT_SYMBOL.get(result, "?")


def _counted(number: int, what: str) -> str:
    """A number of things: 1 copy, 2 copies."""
    return f"{number} {what if number == 1 else what.removesuffix('y') + ('ies' if what.endswith('y') else 's')}"


def ribbon_text(model: Model, title: str = "") -> str:
    """Records in buffers: a line per copy, then each buffer's bytes with the lengths in brackets."""
    sizes = ", ".join(f"{record['payload_bytes']} B" for record in model["records"])
    lines = [f"{title or 'Ribbon'}: records of {sizes or 'none'} in buffers of {model['segment_size_bytes']} B"]
    for lane in model["lanes"]:
        copies, buffers = _counted(len(lane["steps"]), "copy"), _counted(lane["num_buffers"], "buffer")
        lines.append(f"{lane['name']}: {copies} into {buffers}")
        lines += [f"  {step_text(step)}" for step in lane["steps"]]
        lines += [f"  buffer {number}: {_buffer_bytes(lane, number)}" for number in range(lane["num_buffers"])]
        if lane["steps"]:
            lines.append(f"  queue: {queue_text(lane['steps'][-1])}  backlog {lane['steps'][-1]['backlog_buffers']}")
    if len(model["lanes"]) == 2:
        found = model["difference"]
        lines.append(f"first difference: {found['sentence']}" if found else "no difference")
    return "\n".join(lines)


def step_text(step: Model) -> str:
    """One copy in words."""
    return (
        f"copy {step['index'] + 1}: {step['num_bytes']} B into buffer {step['buffer']} "
        f"→ {result_symbol(step['result'])} {step['result']}"
    )


def ribbon_status(model: Model, at: int) -> str:
    """What stands there after `at` copies, in one sentence."""
    if at == 0:
        return "nothing copied yet"
    words = []
    for lane in model["lanes"]:
        if at <= len(lane["steps"]):
            step = lane["steps"][at - 1]
            stands = f"{len(step['queue'])} queued, backlog {step['backlog_buffers']}"
            words.append(f"{lane['name']}: {step_text(step)}; {stands}")
        else:
            words.append(f"{lane['name']}: no further copy")
    found = model["difference"]
    if found and at == found["step"] + 1:
        words.append(f"first difference: {found['sentence']}")
    return ". ".join(words)


def _buffer_bytes(lane: Model, number: int, most: int = 24) -> str:
    """The bytes of one buffer, `[00 00 00 05]` being a length as a receiver reads it, cut after `most`."""
    cells = [cell for cell in lane["cells"] if cell["buffer"] == number]
    runs = []
    for (is_length, _record), run in groupby(cells[:most], lambda cell: (cell["part"] == "length", cell["record"])):
        words = " ".join(cell["hex"] for cell in run)
        runs.append(f"[{words}]" if is_length else words)
    more = [f"… {len(cells) - most} more"] if len(cells) > most else []
    return " ".join([*runs, *more])
