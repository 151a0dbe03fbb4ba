"""The two-buffer ribbon: how records are cut, byte by byte and copy by copy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.records import SpanningRecordSerializer
from widgets.base import View, chosen_options, front_end
from widgets.ribbon_model import Step, ribbon_model, ribbon_model_of_steps, serializer_steps
from widgets.ribbon_svg import ribbon_svg
from widgets.svg import sendable
from widgets.text import fill_word, ribbon_status, ribbon_text
from widgets.view_models import Model

__all__ = ["TwoBufferRibbon", "ribbon"]


class TwoBufferRibbon(View):
    """Neighbouring buffers as byte cells, the answer of each copy, and the queue beside them.

    Lengths are hatched, payloads coloured and named by record, both as a receiver would read them. The
    slider goes copy by copy and needs no kernel.

    Options: `segment_size` in bytes (8); `serializer_factory`, whose product is driven over the records;
    `title`.

        TwoBufferRibbon([b"hello", b"hi"], segment_size=8)
        TwoBufferRibbon([b"hello"], segment_size=9, serializer_factory=MySerializer)

    `TwoBufferRibbon.of_model` shows what `ribbon_model_of_steps` made; `ribbon` sets yours beside Flink's.

    Raises:
        LocalUsageError: there is no such option, or `segment_size` is not positive.
        Whatever the serializer raises.
    """

    _esm = front_end("ribbon")

    def __init__(self, records: Sequence[bytes], **given: Any) -> None:
        options = chosen_options(
            "TwoBufferRibbon",
            given,
            segment_size=8,
            serializer_factory=SpanningRecordSerializer,
            title="Records in buffers",
        )
        if not isinstance(options["title"], str):
            raise LocalUsageError(f"title={options['title']!r} cannot work: a string")
        self._open(ribbon_model(records, options["segment_size"], options["serializer_factory"]), options["title"])

    @classmethod
    def of_model(cls, model: Model, title: str = "Records in buffers") -> TwoBufferRibbon:
        """The view of a ribbon model."""
        view = cls.__new__(cls)
        view._open(model, title)
        return view

    def _open(self, model: Model, title: str) -> None:
        self._model = model
        longest = max(len(lane["steps"]) for lane in model["lanes"])
        found = model["difference"]
        View.__init__(
            self,
            title=title,
            _mode="recorded",
            _frames=json.dumps([_frame(model, at) for at in range(longest + 1)], ensure_ascii=False),
            _at=found["step"] + 1 if found else longest,
            _picture=ribbon_svg(model, title),
        )

    def model(self) -> Model:
        """All lanes, steps and bytes as plain data."""
        return self._model

    def text(self) -> str:
        return str(sendable(ribbon_text(self._model, self.title)))

    def svg(self) -> str:
        return ribbon_svg(self._model, self.title)


def ribbon(
    records_hex: Sequence[str],
    segment_size: int,
    yours_steps: Sequence[Step] | None = None,
    flink_steps: Sequence[Step] | None = None,
    title: str = "Yours beside Flink's",
) -> TwoBufferRibbon:
    """Your copies above Flink's, the first difference marked: what `show("3.1")` opens.

    `records_hex` are the payloads, `segment_size` is in bytes. A step is one call of
    `copy_to_buffer_builder`: `{"buffer": 0, "bytes_hex": "0000000568656c6c", "result": "FULL_RECORD"}`,
    where `buffer` counts the buffers handed out, from 0, `bytes_hex` is what this call appended, and
    `result` is the name of the answer, or any words if there was none, such as `raised IndexError`.
    Without `flink_steps` the engine's own serializer makes them; without `yours_steps` there is one lane.

        ribbon(["68656c6c6f"], 8, yours_steps=[
            {"buffer": 0, "bytes_hex": "0000000568656c6c", "result": "PARTIAL_RECORD_MEMORY_SEGMENT_FULL"},
            {"buffer": 1, "bytes_hex": "000000056f", "result": "FULL_RECORD"},
        ])

    Raises:
        LocalUsageError: a step cannot be read, `segment_size` is not positive, or a record is no hex.
    """
    try:
        records = [bytes.fromhex(record) for record in records_hex]
    except (TypeError, ValueError) as error:
        raise LocalUsageError(f"records_hex={records_hex!r} cannot work, each is bytes in hex: {error}") from error
    flink = serializer_steps(records, segment_size) if flink_steps is None else flink_steps
    lanes = {"Flink": flink} if yours_steps is None else {"yours": yours_steps, "Flink": flink}
    return TwoBufferRibbon.of_model(ribbon_model_of_steps(records, segment_size, lanes), title)


def _frame(model: Model, at: int) -> dict[str, Any]:
    """What the browser shows after `at` copies: a sentence, the queue of each lane, and tables."""
    lanes = []
    for lane in model["lanes"]:
        step = lane["steps"][min(at, len(lane["steps"])) - 1] if at and lane["steps"] else None
        lanes.append(
            {
                "backlog": step["backlog_buffers"] if step else 0,
                "queue": [
                    [entry["written_bytes"] / entry["capacity_bytes"], entry["is_finished"], fill_word(entry)]
                    for entry in (step["queue"] if step else [])
                ],
            }
        )
    return {"status": ribbon_status(model, at), "lanes": lanes, "tables": _tables(model, at)}


def _tables(model: Model, at: int) -> list[Any]:
    head = ["copy", "buffer", "from byte", "bytes (hex)", "result", "backlog (buffers)"]
    return [
        [
            f"{lane['name']}, copies so far",
            head,
            [
                [
                    step["index"] + 1,
                    step["buffer"],
                    step["start_byte"],
                    step["bytes_hex"] or "(none)",
                    step["result"],
                    step["backlog_buffers"],
                ]
                for step in lane["steps"][:at]
            ],
        ]
        for lane in model["lanes"]
    ]
