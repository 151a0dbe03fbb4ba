"""The text twin: the facts of a picture in words, from the same model.

It is what a screen reader, GitHub, a terminal and nbval see. Lines stay under 97 columns.
"""

from __future__ import annotations

from widgets.view_models import Model

__all__ = ["PROGRESS_SYMBOL", "fill_word", "pipeline_status", "pipeline_text", "queue_text", "watermark_text"]

PROGRESS_SYMBOL = {"made": "▶", "idle": "○", "backpressured": "▲", "done": "✓"}

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def pipeline_text(model: Model, title: str = "") -> str:
    """A job at one moment: a line per task, per output and per channel."""
    size = model["segment_size_bytes"]
    lines = [
        f"{title or 'Pipeline'}: {len(model['tasks'])} tasks, {len(model['channels'])} channels, "
        f"step {model['num_steps']}" + (f" ({model['action']})" if model["action"] else ""),
        f"pool: {model['num_free_segments']} of {model['num_total_segments']} segments of {size} B free",
    ]
    width = max(len(task["name"]) for task in model["tasks"])
    for number, task in enumerate(model["tasks"]):
        symbol = PROGRESS_SYMBOL[task["progress"]]
        lines.append(
            f"{symbol} {task['name']:<{width}}  {task['progress']:<13}  in {task['num_records_in']:>6}  "
            f"out {task['num_records_out']:>6}  watermark {watermark_text(task)}"
        )
        for output in (o for o in model["outputs"] if o["task"] == number):
            lines.append(f"    {output_text(output)}")
        lines += [
            f"      {channel_text(channel, model)}" for channel in model["channels"] if channel["from_task"] == number
        ]
    return "\n".join(lines)


def pipeline_status(model: Model) -> str:
    """A job at one moment in one sentence, for `aria-live`."""
    counts = {word: 0 for word in PROGRESS_SYMBOL}
    for task in model["tasks"]:
        counts[task["progress"]] += 1
    words = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    queued = sum(output["queued_buffers"] for output in model["outputs"])
    home = sum(output["home_buffers"] for output in model["outputs"])
    reading = sum(output["reading_buffers"] for output in model["outputs"])
    action = f" ({model['action']})" if model["action"] else ""
    return (
        f"step {model['num_steps']}{action}: tasks {words}; buffers {queued} queued, {reading} being read, "
        f"{home} home; {model['num_free_segments']} of {model['num_total_segments']} segments free"
    )


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
    marks = [
        word
        for word, is_set in (
            ("flush", channel["is_flush_requested"]),
            ("blocked", channel["is_blocked"]),
            ("ended", channel["is_finished"]),
        )
        if is_set
    ]
    return (
        f"[{channel['index']}] {queue_text(channel)} → {target}  backlog {channel['backlog_buffers']}"
        + "".join(f"  {mark}" for mark in marks)
    )


def queue_text(channel: Model, most: int = 8) -> str:
    """A queue as a row of fill levels, `▄` half full, `E` an event; the head stands on the right."""
    queue = channel["queue"]
    cells = [
        "E" if entry["is_event"] else _EIGHTHS[-(-8 * entry["written_bytes"] // max(1, entry["capacity_bytes"]))]
        for entry in queue[:most]
    ]
    more = f"+{len(queue) - most}" if len(queue) > most else ""
    return f"{more}|{''.join(reversed(cells))}|" if queue else "(empty)"


def fill_word(entry: Model) -> str:
    """A queued buffer in words: `12 of 32 B, open`."""
    if entry["is_event"]:
        return f"event, {entry['written_bytes']} B"
    state = "finished" if entry["is_finished"] else "open"
    return f"{entry['written_bytes']} of {entry['capacity_bytes']} B, {state}"
