"""What a picture shows, as plain data: a snapshot goes in, a JSON-ready dict comes out.

Rules of this file:
- Pure functions. No picture, no text and no browser is known here; all of them are made from these dicts.
- A key that holds a number ends in its unit: `_bytes`, `_buffers`, `_ms`, `_segments`, or starts with `num_`.

The topology (which task reads which queue) never changes while a job runs, so it is found once and
handed back in with each further snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from graphlib import TopologicalSorter
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from refimpl.producer.buffer_writing import PartitionSnapshot
from refimpl.producer.subpartition_snapshot import QueuedBufferSnapshot, SubpartitionSnapshot
from refimpl.records import MAX_WATERMARK, MIN_TIMESTAMP
from refimpl.task.snapshot import TaskSnapshot

__all__ = [
    "Model", "entry_state", "event_time", "moment_of", "pipeline_model", "put_in_places", "subpartition_state",
    "topology",
]  # fmt: skip

Model = dict[str, Any]


def topology(snapshot: JobSnapshot) -> Model:
    """The parts of a job that never change, and where each task stands on the map.

    Tasks are numbered as the job lists them. `column` counts exchanges from the sources, `row` counts
    tasks from the top of a column. A channel belongs to one output and one consuming task.

    Raises:
        LocalUsageError: it is no snapshot of a job.
    """
    _check(snapshot)
    tasks = [
        {"name": task.name, "subtask": _subtask(task.name), "operators": list(task.operators)}
        for task in snapshot.tasks
    ]
    outputs = [
        {"name": partition.name, "task": _producer(partition, snapshot.tasks), "channels": len(partition.subpartitions)}
        for partition in snapshot.partitions
    ]
    readers = _readers(snapshot)
    channels = [
        {
            "name": f"{partition.name}[{sub.index}]",
            "output": number,
            "index": sub.index,
            "from_task": outputs[number]["task"],
            **_reader_of(readers.get((number, sub.index)), snapshot),
        }
        for number, partition in enumerate(snapshot.partitions)
        for sub in partition.subpartitions
    ]
    put_in_places(tasks, ((each["from_task"], each["to_task"]) for each in channels if each["to_task"] >= 0))
    return {
        "tasks": tasks,
        "outputs": outputs,
        "channels": channels,
        "segment_size_bytes": snapshot.task_managers[0].pool.segment_size_bytes,
        "num_total_segments": sum(each.pool.num_total for each in snapshot.task_managers),
    }


def pipeline_model(snapshot: JobSnapshot, known: Model | None = None, action: str = "") -> Model:
    """A whole job at one moment; `known` is its topology if that was found before, `action` what led here."""
    fixed = known or topology(snapshot)
    outputs = [
        {**place, **_output_state(partition)}
        for place, partition in zip(fixed["outputs"], snapshot.partitions, strict=True)
    ]
    subpartitions = [sub for partition in snapshot.partitions for sub in partition.subpartitions]
    channels = [
        {**place, **subpartition_state(sub)} for place, sub in zip(fixed["channels"], subpartitions, strict=True)
    ]
    tasks = [{**place, **_task_state(task)} for place, task in zip(fixed["tasks"], snapshot.tasks, strict=True)]
    is_lost = [each.is_lost for each in snapshot.task_managers for _ in each.tasks]
    for number, task in enumerate(tasks):
        word = "lost" if is_lost[number] else task["progress"]
        task["progress"] = _progress(number, word, outputs, channels)
    return {
        **moment_of("pipeline", snapshot, action),
        "num_free_segments": sum(each.pool.num_free for each in snapshot.task_managers),
        "num_total_segments": fixed["num_total_segments"],
        "tasks": tasks,
        "outputs": outputs,
        "channels": channels,
    }


def moment_of(kind: str, snapshot: JobSnapshot, action: str) -> Model:
    """What every model begins with."""
    _check(snapshot)
    return {
        "kind": kind,
        "action": action,
        "time_ms": round(snapshot.time_ms, 3),
        "num_steps": snapshot.num_steps,
        "segment_size_bytes": snapshot.task_managers[0].pool.segment_size_bytes,
    }


def _check(snapshot: object) -> None:
    if not isinstance(snapshot, JobSnapshot):
        raise LocalUsageError(f"a {type(snapshot).__name__} is no moment of a job; give a JobSnapshot")


def event_time(watermark: int) -> Model:
    """A watermark; the two ends of event time are words, since a browser's numbers end at 2**53."""
    is_number = MIN_TIMESTAMP < watermark < MAX_WATERMARK.timestamp
    return {
        "watermark_ms": watermark if is_number else None,
        "watermark_state": "set" if is_number else "none" if watermark <= MIN_TIMESTAMP else "end",
    }


# -- one thing at one moment -----------------------------------------------------------------------


def _task_state(task: TaskSnapshot) -> Model:
    return {
        "progress": task.progress.value,
        "num_records_in": task.num_records_in,
        "num_records_out": task.num_records_out,
        "rest_ms": task.rest_ms,
        **event_time(task.watermark),
    }


def _progress(number: int, word: str, outputs: list[Model], channels: list[Model]) -> str:
    """How a task stands: `made` if it moves, `idle` without input, `backpressured` without room, `done` or `lost`.

    The engine's word tells how the last step went. A driver does not step a task that cannot move, so
    that word would stay what it was; what the task waits for is read from its outputs and its queues.
    """
    if word in ("done", "lost"):
        return word
    if any(output["task"] == number and not output["is_available"] for output in outputs):
        return "backpressured"
    inputs = [channel for channel in channels if channel["to_task"] == number]
    if not inputs or word == "backpressured":  # a record in hand may wait for a buffer that is just coming home
        return word
    return "made" if any(_has_data(channel) for channel in inputs) else "idle"


def _has_data(channel: Model) -> bool:
    """Whether a consumer would get something from this queue now."""
    queue = channel["queue"]
    return bool(queue) and (channel["is_flush_requested"] or queue[0]["is_finished"])


def subpartition_state(sub: SubpartitionSnapshot) -> Model:
    """A queue at its producer, the head first."""
    return {
        "queue": [entry_state(entry) for entry in sub.queue],
        "backlog_buffers": sub.backlog,
        "is_flush_requested": sub.is_flush_requested,
        "is_blocked": sub.is_blocked,
        "is_finished": sub.is_finished,
        "num_buffers_total": sub.num_buffers_total,
        "num_bytes_total": sub.num_bytes_total,
    }


def entry_state(entry: QueuedBufferSnapshot) -> Model:
    """A buffer or an event that waits in a queue."""
    return {
        "segment_id": entry.segment_id,
        "is_event": not entry.data_type.is_buffer,
        "written_bytes": entry.written_bytes,
        "unread_bytes": entry.unread_bytes,
        "capacity_bytes": entry.capacity_bytes,
        "is_finished": entry.is_finished,
    }


def _output_state(partition: PartitionSnapshot) -> Model:
    """Where the buffers of an output are: at home, in line, or out at a consumer that reads them."""
    pool = partition.pool
    # A broadcast buffer stands in several queues and is still one buffer.
    queued = {entry.segment_id for sub in partition.subpartitions for entry in sub.queue if entry.data_type.is_buffer}
    return {
        "size_buffers": pool.size,
        "required_buffers": pool.num_required,
        "home_buffers": pool.num_idle,
        "queued_buffers": len(queued),
        "reading_buffers": max(0, pool.num_in_use - len(queued)),
        "is_available": pool.is_available,
    }


# -- who is who ------------------------------------------------------------------------------------


def _subtask(task_name: str) -> int:
    return int(task_name.rpartition("-")[2])


def _producer(partition: PartitionSnapshot, tasks: Sequence[TaskSnapshot]) -> int:
    """The task a partition belongs to: it is called `operator-subtask → consumer`, and a name may hold an arrow too.

    Raises:
        ValueError: it belongs to none of the tasks.
    """
    found = [
        (len(operator), operator == task.operators[-1], -number)
        for number, task in enumerate(tasks)
        for operator in task.operators
        if partition.name.startswith(f"{operator}-{_subtask(task.name)} → ")
    ]
    # Two chains may hold operators of one name; the one that ends with it is the likelier to emit.
    return -max(found)[2]


def _reader_of(gate_and_input: tuple[int, int] | None, snapshot: JobSnapshot) -> Model:
    """Who reads a channel: the task, which of its channels it is, and the input of its gate; -1 stands for nobody."""
    if gate_and_input is None:
        return {"to_task": -1, "to_channel": -1, "gate": -1, "input": -1, "is_remote": False}
    gate, number = gate_and_input
    reading = snapshot.gates[gate]
    task = [task.name for task in snapshot.tasks].index(reading.name)
    before = sum(len(each.channels) for each in snapshot.gates[:gate] if each.name == reading.name)
    is_remote = bool(reading.channels[number].receiver)
    return {"to_task": task, "to_channel": before + number, "gate": gate, "input": number, "is_remote": is_remote}


def _readers(snapshot: JobSnapshot) -> dict[tuple[int, int], tuple[int, int]]:
    """For each (partition, subpartition) the gate, and its channel, that read it; each is read once."""
    waiting: dict[str, list[tuple[int, int]]] = {}
    for number, partition in enumerate(snapshot.partitions):
        for sub in partition.subpartitions:
            waiting.setdefault(f"{partition.name}[{sub.index}]", []).append((number, sub.index))
    return {
        waiting[channel.producer].pop(0): (number, channel.index)
        for number, gate in enumerate(snapshot.gates)
        for channel in gate.channels
    }


def put_in_places(nodes: Sequence[Model], edges: Iterable[tuple[int, int]]) -> None:
    """Give each node a `column`, which counts edges from the sources, and a `row`, so that edges cross little.

    Lines then run left to right. An edge is (from, to), numbers of nodes.
    """
    before: dict[int, set[int]] = {number: set() for number in range(len(nodes))}
    for source, target in edges:
        before[target].add(source)
    rows: dict[int, float] = {}

    def from_the_left(number: int) -> tuple[float, int]:
        found = [rows[other] for other in before[number]]
        return (sum(found) / len(found) if found else 0.0, number)

    for column, numbers in enumerate(_columns(before)):
        for row, number in enumerate(sorted(numbers, key=from_the_left)):
            rows[number] = row
            nodes[number] |= {"column": column, "row": row}


def _columns(before: dict[int, set[int]]) -> Iterator[tuple[int, ...]]:
    """The numbers in the order of their edges: first those that have none `before` them, then what follows them."""
    sorter = TopologicalSorter(before)
    sorter.prepare()
    while ready := sorter.get_ready():
        yield ready
        sorter.done(*ready)
