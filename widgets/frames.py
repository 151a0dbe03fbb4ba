"""A moment of a job, small enough to send thirty times a second: the model without its names.

A frame is a list of lists of whole numbers, in the order of the topology:

    [num_steps, time_ms, num_free_segments, action,
     [task, ...]      [progress, num_records_in, num_records_out, watermark]
     [output, ...]    [size, required, home, queued, reading, is_available]   in buffers
     [channel, ...]]  [backlog, flags, num_buffers_total, num_bytes_total, segment, written, unread, state, ...]

`progress` counts in PROGRESS. `watermark` is milliseconds, or "none" or "end". `flags` adds 1 for
flush requested, 2 for blocked, 4 for finished. Each queued buffer is four numbers; `state` adds 1
for finished and 2 for event. `static/pipeline_map.js` reads the same layout.
"""

from __future__ import annotations

from typing import Any

from widgets.view_models import Model

__all__ = ["PROGRESS", "Frame", "pack"]

Frame = list[Any]

PROGRESS = ("made", "idle", "backpressured", "done", "lost")


def pack(model: Model) -> Frame:
    """The frame of a pipeline model."""
    return [
        model["num_steps"],
        model["time_ms"],
        model["num_free_segments"],
        model["action"],
        [_pack_task(task) for task in model["tasks"]],
        [_pack_output(output) for output in model["outputs"]],
        [_pack_channel(channel) for channel in model["channels"]],
    ]


def _pack_task(task: Model) -> list[Any]:
    watermark = task["watermark_ms"] if task["watermark_state"] == "set" else task["watermark_state"]
    return [PROGRESS.index(task["progress"]), task["num_records_in"], task["num_records_out"], watermark]


def _pack_output(output: Model) -> list[int]:
    return [
        output["size_buffers"],
        output["required_buffers"],
        output["home_buffers"],
        output["queued_buffers"],
        output["reading_buffers"],
        int(output["is_available"]),
    ]


def _pack_channel(channel: Model) -> list[int]:
    flags = channel["is_flush_requested"] + 2 * channel["is_blocked"] + 4 * channel["is_finished"]
    packed = [channel["backlog_buffers"], flags, channel["num_buffers_total"], channel["num_bytes_total"]]
    for entry in channel["queue"]:
        state = entry["is_finished"] + 2 * entry["is_event"]
        packed += [entry["segment_id"], entry["written_bytes"], entry["unread_bytes"], state]
    return packed
