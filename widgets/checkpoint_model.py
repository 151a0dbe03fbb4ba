"""A checkpoint as plain data and in words, for the views that tell of one."""

from __future__ import annotations

from math import inf

from refimpl.checkpoint import (
    CheckpointStats,
    CheckpointStatus,
    SubtaskStats,
    duration_words,
    reason_words,
    size_words,
)
from refimpl.job import JobSnapshot
from widgets.letters import fitting
from widgets.view_models import Model

__all__ = [
    "STATES", "SYMBOLS", "WORDS", "acks_words", "checkpoint_model", "in_flight_bytes", "newest_of", "newest_words",
    "result_words", "since_trigger", "title_of",
]  # fmt: skip

STATES = ("progress", "writing", "completed", "failed")
SYMBOLS = dict(zip(STATES, "▶▶✓✗", strict=True))
WORDS = dict(zip(STATES, ("in progress", "writes its manifest", "completed", "failed"), strict=True))


def checkpoint_model(stats: CheckpointStats, now_ms: float) -> Model:
    """A checkpoint at one moment; `triggered_ms` is on the driver's clock, the other times count from then on."""
    state = "writing" if stats.is_writing else "progress"
    if stats.status is not CheckpointStatus.IN_PROGRESS:
        state = stats.status.value
    acknowledged = stats.acknowledged
    last = acknowledged[-1] if acknowledged else None
    return {
        "checkpoint": stats.checkpoint_id,
        "kind": stats.kind.value,
        "name": stats.name,
        "state": state,
        "triggered_ms": round(stats.triggered_ms, 3),
        "duration_ms": round(stats.duration_ms(now_ms), 3),
        "state_bytes": stats.state_bytes,
        "num_subtasks": len(stats.subtasks),
        "num_acknowledged": len(acknowledged),
        "last": "" if last is None else last.task,
        "last_acked_ms": None if last is None else since_trigger(stats, last),
        "is_unaligned": stats.is_unaligned,
        "missing": [each.task for each in stats.subtasks if each.acked_ms is None],
        "why": "" if stats.reason is None else reason_words(stats.reason),
        "cause": "" if stats.reason is None else stats.reason.value,
        "detail": stats.detail,
        "is_discarded": stats.is_discarded,
        "num_restores": stats.num_restores,
    }


def since_trigger(stats: CheckpointStats, done: SubtaskStats) -> float:
    """When a subtask acknowledged; of a FINAL checkpoint that may be before it began, and counts as at once."""
    return round(max(0.0, (done.acked_ms or 0.0) - stats.triggered_ms), 3)


def newest_of(snapshot: JobSnapshot) -> Model | None:
    """The newest checkpoint that the run knows of, and what waits in the channels meanwhile."""
    history = () if snapshot.checkpoints is None else snapshot.checkpoints.history
    if not history:
        return None
    return {**checkpoint_model(history[-1], snapshot.time_ms), "in_flight_bytes": in_flight_bytes(snapshot)}


def newest_words(newest: Model) -> str:
    """The newest checkpoint in a line."""
    words = f"{title_of(newest)}: {result_words(newest)} · {acks_words(newest, inf)}"
    return words + f" · {size_words(newest['in_flight_bytes'])} in channels"


def in_flight_bytes(snapshot: JobSnapshot) -> int:
    """How much waits in all channels, at their producers and at their consumers: what barriers stand between."""
    queues = [sub.queue for partition in snapshot.partitions for sub in partition.subpartitions]
    queues += [channel.queue for gate in snapshot.gates for channel in gate.channels]
    return sum(entry.unread_bytes for queue in queues for entry in queue if entry.data_type.is_buffer)


# -- words -----------------------------------------------------------------------------------------


def title_of(each: Model) -> str:
    """Its kind, its number, and the name of a savepoint."""
    kind = "FINAL" if each["kind"] == "final" else each["kind"]
    return f"{kind} {each['checkpoint']}" + (f" ({each['name']})" if each["name"] else "")


def result_words(each: Model) -> str:
    """How it stands, in a line."""
    took, size = duration_words(each["duration_ms"]), size_words(each["state_bytes"])
    size += " · barriers have overtaken" if each["is_unaligned"] else ""
    match each["state"]:
        case "completed":
            return f"completed in {took} · {size}" + (" · files deleted" if each["is_discarded"] else "")
        case "failed":
            return f"failed after {took}: {each['why']}"
        case "writing":
            return f"writes its manifest, for {took} · {size}"
    return f"in progress for {took} · {size}"


def acks_words(each: Model, room: float) -> str:
    """Who has acknowledged; the name of the last takes at most `room` pixels."""
    words = f"acknowledged by {each['num_acknowledged']} of {each['num_subtasks']}"
    if each["last_acked_ms"] is None:
        return words
    return f"{words}, last {fitting(each['last'], room, 'small')} after {duration_words(each['last_acked_ms'])}"
