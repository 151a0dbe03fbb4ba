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

__all__ = ["PROGRESS", "Frame", "pack", "unpack"]

Frame = list[Any]

PROGRESS = ("made", "idle", "backpressured", "done")


def pack(model: Model) -> Frame:
    """The frame of a pipeline model."""
    return [
        model["num_steps"], model["time_ms"], model["num_free_segments"], model["action"],
        [_pack_task(task) for task in model["tasks"]],
        [_pack_output(output) for output in model["outputs"]],
        [_pack_channel(channel) for channel in model["channels"]],
    ]  # fmt: skip


def unpack(known: Model, frame: Frame) -> Model:
    """The pipeline model a frame was packed from; `known` is the topology of the job."""
    num_steps, time_ms, num_free_segments, action, tasks, outputs, channels = frame
    size = known["segment_size_bytes"]
    return {
        "kind": "pipeline",
        "action": action,
        "time_ms": time_ms,
        "num_steps": num_steps,
        "num_free_segments": num_free_segments,
        "num_total_segments": known["num_total_segments"],
        "segment_size_bytes": size,
        "tasks": [{**place, **_unpack_task(t)} for place, t in zip(known["tasks"], tasks, strict=True)],
        "outputs": [{**place, **_unpack_output(o)} for place, o in zip(known["outputs"], outputs, strict=True)],
        "channels": [
            {**place, **_unpack_channel(c, size)} for place, c in zip(known["channels"], channels, strict=True)
        ],
    }


def _pack_task(task: Model) -> list[Any]:
    watermark = task["watermark_ms"] if task["watermark_state"] == "set" else task["watermark_state"]
    return [PROGRESS.index(task["progress"]), task["num_records_in"], task["num_records_out"], watermark]


def _unpack_task(packed: list[Any]) -> Model:
    is_word = isinstance(packed[3], str)
    return {
        "progress": PROGRESS[packed[0]],
        "num_records_in": packed[1],
        "num_records_out": packed[2],
        "watermark_ms": None if is_word else packed[3],
        "watermark_state": packed[3] if is_word else "set",
    }


def _pack_output(output: Model) -> list[int]:
    return [
        output["size_buffers"], output["required_buffers"], output["home_buffers"], output["queued_buffers"],
        output["reading_buffers"], int(output["is_available"]),
    ]  # fmt: skip


def _unpack_output(packed: list[int]) -> Model:
    size, required, home, queued, reading, is_available = packed
    return {
        "size_buffers": size,
        "required_buffers": required,
        "home_buffers": home,
        "queued_buffers": queued,
        "reading_buffers": reading,
        "is_available": bool(is_available),
    }


def _pack_channel(channel: Model) -> list[int]:
    flags = channel["is_flush_requested"] + 2 * channel["is_blocked"] + 4 * channel["is_finished"]
    packed = [channel["backlog_buffers"], flags, channel["num_buffers_total"], channel["num_bytes_total"]]
    for entry in channel["queue"]:
        state = entry["is_finished"] + 2 * entry["is_event"]
        packed += [entry["segment_id"], entry["written_bytes"], entry["unread_bytes"], state]
    return packed


def _unpack_channel(packed: list[int], segment_size_bytes: int) -> Model:
    backlog, flags, num_buffers, num_bytes, *entries = packed
    queue = []
    for segment_id, written, unread, state in zip(*[iter(entries)] * 4, strict=True):
        is_event = bool(state & 2)
        queue.append(
            {
                "segment_id": segment_id,
                "is_event": is_event,
                "written_bytes": written,
                "unread_bytes": unread,
                # An event lies in a segment of its own size, outside every pool.
                "capacity_bytes": written if is_event else segment_size_bytes,
                "is_finished": bool(state & 1),
            }
        )
    return {
        "queue": queue,
        "backlog_buffers": backlog,
        "is_flush_requested": bool(flags & 1),
        "is_blocked": bool(flags & 2),
        "is_finished": bool(flags & 4),
        "num_buffers_total": num_buffers,
        "num_bytes_total": num_bytes,
    }
