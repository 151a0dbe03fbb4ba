"""What TaskManagers say to one another about checkpoints, as text: JSON, never an object.

to number 0      what a task has done of a checkpoint, or that it has ended well
from number 0    a word to a task: a barrier, or what became of a checkpoint
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from refimpl.consumer.barrier_handler import AbortReason
from refimpl.drivers.processes.messages import TaskSaid, TellTask, Verdict
from refimpl.records.events import Alignment, CheckpointBarrier, CheckpointType, SavepointFormat
from refimpl.state.manifest import StateFile, StateRecord
from refimpl.task.checkpoint_reports import Declined, Report, Snapshotted, Unwanted

__all__ = ["said_as_words", "said_in", "tell_as_words", "tell_in"]


def said_as_words(said: TaskSaid) -> bytes:
    """What a task says, to be sent."""
    values: dict[str, Any] = {}
    if said.report is not None:
        values = asdict(said.report) | {"is": type(said.report).__name__}
    if isinstance(said.report, Declined):
        values["reason"] = said.report.reason.value
    return json.dumps([said.generation, said.task, values]).encode()


def said_in(words: bytes) -> TaskSaid:
    """What `said_as_words` made words of.

    Raises:
        ValueError: these words are none of it.
    """
    try:
        generation, task, values = json.loads(words)
        return TaskSaid(int(generation), str(task), _report(values) if values else None)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no report of a task: {words[:60]!r}: {error}") from None


def tell_as_words(tell: TellTask) -> bytes:
    """A word to a task, to be sent."""
    what = tell.what
    if isinstance(what, Verdict):
        values = asdict(what)
    else:
        location = None if what.location is None else what.location.hex()
        values = {
            "checkpoint_id": what.checkpoint_id, "timestamp": what.timestamp, "type": what.type.value,
            "location": location, "alignment": what.alignment.value,
            "savepoint_format": None if what.savepoint_format is None else what.savepoint_format.value,
            "alignment_timeout_ms": what.alignment_timeout_ms,
        }  # fmt: skip
    return json.dumps([tell.generation, tell.task, values]).encode()


def tell_in(words: bytes) -> TellTask:
    """What `tell_as_words` made words of.

    Raises:
        ValueError: these words are none of it.
    """
    try:
        generation, task, values = json.loads(words)
        what: Verdict | CheckpointBarrier
        if "is_complete" in values:
            what = Verdict(**values)
        else:
            location = None if values["location"] is None else bytes.fromhex(values["location"])
            kind, alignment = CheckpointType(values["type"]), Alignment(values["alignment"])
            layout = None if values["savepoint_format"] is None else SavepointFormat(values["savepoint_format"])
            what = CheckpointBarrier(
                values["checkpoint_id"], values["timestamp"], kind, location, alignment, layout,
                values["alignment_timeout_ms"],
            )  # fmt: skip
        return TellTask(int(generation), str(task), what)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no word to a task: {words[:60]!r}: {error}") from None


def _report(values: dict[str, Any]) -> Report:
    match values.pop("is"):
        case "Snapshotted":
            file, states = values.pop("file"), values.pop("states")
            records = {uid: tuple(StateRecord(**each) for each in several) for uid, several in states.items()}
            return Snapshotted(file=None if file is None else StateFile(**file), states=records, **values)
        case "Declined":
            return Declined(values["checkpoint_id"], AbortReason(values["reason"]), values["detail"])
        case "Unwanted":
            return Unwanted(**values)
        case other:
            raise ValueError(f"a task reports no {other}")
