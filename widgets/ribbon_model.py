"""Records cut into buffers, copy by copy: what a serializer did, and what a receiver would make of it.

A step is one call of `copy_to_buffer_builder`:

    {"buffer": 0, "bytes_hex": "0000000568656c6c", "result": "PARTIAL_RECORD_MEMORY_SEGMENT_FULL"}

`buffer` counts from 0, `bytes_hex` is what the call appended to it, `result` what it returned, or in
words what happened instead. The steps are replayed into real buffers and a real queue. Bytes are
named as a receiver names them: four of a length, then as many of a payload. It knows no other marks, so a
length in the wrong place shows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.memory.builder import BufferBuilder
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.records import LENGTH_BYTES, RecordSerializer, SpanningRecordSerializer
from widgets.copies import check_segment_size, copies_of
from widgets.view_models import Model

__all__ = ["Step", "first_difference", "read_stream", "ribbon_model", "ribbon_model_of_steps", "serializer_steps"]

Step = dict[str, Any]

_MAX_STEPS = 400
_MAX_LENGTH = 2**31


def ribbon_model(
    records: Sequence[bytes],
    segment_size: int,
    serializer_factory: Callable[[], RecordSerializer] = SpanningRecordSerializer,
    name: str = "",
) -> Model:
    """Drive a serializer over `records` with real buffers of `segment_size` bytes, and show every copy."""
    steps = serializer_steps(records, segment_size, serializer_factory)
    return ribbon_model_of_steps(
        records, segment_size, {name or getattr(serializer_factory, "__name__", "serializer"): steps}
    )


def serializer_steps(
    records: Sequence[bytes],
    segment_size: int,
    serializer_factory: Callable[[], RecordSerializer] = SpanningRecordSerializer,
) -> list[Step]:
    """What a serializer does with `records`: one step for each copy, at most 400.

    Raises:
        LocalUsageError: `segment_size` is not positive, or a record is not bytes.
        Whatever the serializer raises.
    """
    check_segment_size(segment_size)
    return [
        {"buffer": copy.buffer, "bytes_hex": copy.written.hex(), "result": copy.result.value}
        for copy in islice(copies_of(records, segment_size, serializer_factory), _MAX_STEPS)
    ]


def ribbon_model_of_steps(records: Sequence[bytes], segment_size: int, lanes: Mapping[str, Sequence[Step]]) -> Model:
    """The same from recorded steps; with two lanes the first difference is found, the second lane being right.

    Raises:
        LocalUsageError: `segment_size` is not positive, there is no lane, or a step cannot be read.
    """
    check_segment_size(segment_size)
    if not 1 <= len(lanes) <= 2:
        raise LocalUsageError(f"a ribbon shows one lane or two, not {len(lanes)}")
    for name, steps in lanes.items():
        if not isinstance(steps, Sequence):
            raise LocalUsageError(f"{name}: {steps!r} are no steps; give a list of them")
    shown = [_lane(name, [_checked(step, name) for step in steps], segment_size) for name, steps in lanes.items()]
    return {
        "kind": "ribbon",
        "segment_size_bytes": segment_size,
        "records": [{"payload_bytes": len(record), "payload_hex": bytes(record).hex()} for record in records],
        "lanes": shown,
        "difference": first_difference(*shown) if len(shown) == 2 else None,
    }


def read_stream(stream: bytes) -> list[tuple[str, int, int]]:
    """For each byte what a receiver takes it for: (`length` or `payload` or `lost`, record, record's length).

    A length of half a header is -1. After a negative length nothing can be read: the rest is lost.
    """
    parts: list[tuple[str, int, int]] = []
    record = 0
    while len(parts) < len(stream):
        start = len(parts)
        header = stream[start : start + LENGTH_BYTES]
        length = int.from_bytes(header, "big") if len(header) == LENGTH_BYTES else -1
        if length >= _MAX_LENGTH:
            return parts + [("lost", record, -1)] * (len(stream) - start)
        parts += [("length", record, length)] * len(header)
        parts += [("payload", record, length)] * min(max(length, 0), len(stream) - len(parts))
        record += 1
    return parts


def first_difference(yours: Model, flink: Model) -> Model | None:
    """Where two lanes part: the copy, the byte of the buffer if bytes differ, and a sentence."""
    for index in range(max(len(yours["steps"]), len(flink["steps"]))):
        if index >= len(yours["steps"]):
            return _difference(index, f"{flink['name']} copies once more; {yours['name']} has stopped")
        if index >= len(flink["steps"]):
            return _difference(index, f"{yours['name']} copies once more; {flink['name']} is done")
        mine, theirs = yours["steps"][index], flink["steps"][index]
        if mine["buffer"] != theirs["buffer"]:
            words = f"copy {index + 1} is in buffer {mine['buffer']}, {flink['name']}'s in buffer {theirs['buffer']}"
            return _difference(index, words)
        if mine["bytes_hex"] != theirs["bytes_hex"]:
            return _byte_difference(index, mine, theirs, (yours["name"], flink["name"]))
        if mine["result"] != theirs["result"]:
            words = f"copy {index + 1} has the same bytes, but says {mine['result']}, not {theirs['result']}"
            return _difference(index, words)
    return None


# -- one lane --------------------------------------------------------------------------------------


def _lane(name: str, steps: Sequence[Step], segment_size: int) -> Model:
    """Replay the steps into real buffers behind a real queue, and keep what stood there after each."""
    num_buffers = max((step["buffer"] for step in steps), default=-1) + 1
    pool = NetworkBufferPool(max(1, num_buffers), segment_size)
    lender = LocalBufferPool(pool, 0, max(1, num_buffers), name)
    lender.set_num_buffers(max(1, num_buffers))
    queue = PipelinedSubpartition(0, name)
    builders: list[BufferBuilder] = []
    shown: list[Model] = []
    try:
        for index, step in enumerate(steps):
            while len(builders) <= step["buffer"]:
                if builders:
                    builders[-1].finish()
                builder = lender.request_builder()
                assert builder is not None, f"{num_buffers} buffers were promised"
                queue.add(builder.create_consumer_from_beginning())
                builders.append(builder)
            builder = builders[step["buffer"]]
            start, data = builder.written_bytes, bytes.fromhex(step["bytes_hex"])
            copied = 0 if builder.is_finished else builder.append_and_commit(data)
            shown.append({**step, "index": index, "start_byte": start, "num_bytes": copied, **_queue_state(queue)})
    finally:
        for builder in builders:
            builder.finish()
        queue.release()
        lender.destroy()
        pool.destroy()
    return {"name": name, "steps": shown, "num_buffers": num_buffers, "cells": _cells(shown)}


def _queue_state(queue: PipelinedSubpartition) -> Model:
    snapshot = queue.snapshot()
    return {
        "queue": [
            {
                "segment_id": entry.segment_id,
                "is_event": False,
                "written_bytes": entry.written_bytes,
                "unread_bytes": entry.unread_bytes,
                "capacity_bytes": entry.capacity_bytes,
                "is_finished": entry.is_finished,
            }
            for entry in snapshot.queue
        ],
        "backlog_buffers": snapshot.backlog,
    }


def _cells(steps: Sequence[Model]) -> list[Model]:
    """Every byte of the stream: where it lies, who put it there, what a receiver takes it for."""
    placed = sorted(
        (step["buffer"], step["start_byte"] + offset, step["index"], value)
        for step in steps
        for offset, value in enumerate(bytes.fromhex(step["bytes_hex"])[: step["num_bytes"]])
    )
    parts = read_stream(bytes(value for *_, value in placed))
    return [
        {
            "buffer": buffer,
            "position": position,
            "step": step,
            "hex": f"{value:02x}",
            "part": part,
            "record": record,
            "length_bytes": length,
        }
        for (buffer, position, step, value), (part, record, length) in zip(placed, parts, strict=True)
    ]


# -- differences and checks ------------------------------------------------------------------------


def _difference(step: int, sentence: str) -> Model:
    return {"step": step, "buffer": None, "position": None, "sentence": sentence}


def _byte_difference(index: int, mine: Model, theirs: Model, names: tuple[str, str]) -> Model:
    yours, flinks = bytes.fromhex(mine["bytes_hex"]), bytes.fromhex(theirs["bytes_hex"])
    same = 0
    while same < min(len(yours), len(flinks)) and yours[same] == flinks[same]:
        same += 1
    got, wanted = (f"{b[same]:02x}" if same < len(b) else "nothing" for b in (yours, flinks))
    position = mine["start_byte"] + same
    sentence = (
        f"copy {index + 1}, buffer {mine['buffer']}, byte {position}: {names[0]} has {got}, {names[1]} has {wanted}"
    )
    return {"step": index, "buffer": mine["buffer"], "position": position, "sentence": sentence}


def _checked(step: Step, lane: str) -> Step:
    try:
        buffer = int(step["buffer"])
        if buffer < 0 or buffer >= _MAX_STEPS:
            raise ValueError(f"buffer {buffer} is not between 0 and {_MAX_STEPS - 1}")
        bytes.fromhex(step["bytes_hex"])
        return {"buffer": buffer, "bytes_hex": step["bytes_hex"].lower(), "result": str(step["result"])}
    except (KeyError, TypeError, ValueError) as error:
        raise LocalUsageError(f"{lane}: {step!r} is not a step: {error!r}") from error
