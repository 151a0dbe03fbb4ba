"""Barriers of several channels become one, as Flink's `CheckpointedInputGate` had it."""

from __future__ import annotations

from collections import deque

from refimpl.config import CheckpointingMode, FlinkVersion
from refimpl.consumer import (
    Abort,
    AlternatingBarrierHandler,
    Captured,
    Complete,
    InputCapture,
    ResumeChannel,
    StartCapture,
    barrier_handler,
)
from refimpl.records import Alignment, CancelCheckpointMarker, CheckpointBarrier, EndOfPartition

TOPIC = "alignment"
BY_VERSION = True


class ScriptedGate:
    """Hands out the oldest item whose channel is not blocked, and does what the handler decides."""

    def __init__(self, mode: CheckpointingMode, num_channels: int, version: FlinkVersion) -> None:
        self.handler = barrier_handler(mode, num_channels, version)
        self.blocked: set[int] = set()
        self._alignment = Alignment.ALIGNED if mode is CheckpointingMode.EXACTLY_ONCE else Alignment.AT_LEAST_ONCE
        self._waiting: deque[list] = deque()

    def add(self, item: list) -> list[list]:
        self._waiting.append(item)
        out: list[list] = []
        while (ready := next((each for each in self._waiting if each[1] not in self.blocked), None)) is not None:
            self._waiting.remove(ready)
            out += self._hand_out(*ready)
        return out

    def _hand_out(self, kind: str, channel: int, value: object = None) -> list[list]:
        match kind:
            case "data":
                return [[kind, channel, value]]
            case "barrier":
                if self._alignment is Alignment.ALIGNED:
                    self.blocked.add(channel)
                event = CheckpointBarrier(value, 0, alignment=self._alignment)
            case "cancel":
                event = CancelCheckpointMarker(value)
            case "end_of_partition":
                event = EndOfPartition()
        out = [self._done(decision) for decision in self.handler.on_event(channel, event)]
        if kind != "cancel":
            out.append([kind, channel, value] if kind == "barrier" else [kind, channel])
        return out

    def _done(self, decision: ResumeChannel | Complete | Abort) -> list:
        match decision:
            case ResumeChannel(channel):
                self.blocked.remove(channel)
                return ["resume", channel]
            case Complete(barrier):
                return ["checkpoint", barrier.checkpoint_id]
            case Abort(checkpoint_id, reason):
                return ["abort", checkpoint_id, reason.value]


class CapturingGate:
    """Hands out each item as it comes, and copies what is to be captured; all that came before has been processed."""

    def __init__(self, num_channels: int, version: FlinkVersion) -> None:
        self.handler = AlternatingBarrierHandler(num_channels, version)
        self.capture = InputCapture(num_channels, lambda: None)

    def add(self, kind: str, channel: int, value: object = None) -> tuple[list[list], list[list]]:
        """What comes of an item: what is handed out and decided, and what of it was captured."""
        if kind == "data":
            if not self.capture.channels[channel].is_copying:
                return [[kind, channel, value]], []
            self.capture.channels[channel].copy(str(value).encode())
            return [[kind, channel, value]], [[channel, self.capture.channels[channel].copies[-1].decode()]]
        if kind == "barrier":
            self.capture.channels[channel].note_barrier(value)
            event = CheckpointBarrier(value, 0, alignment=Alignment.UNALIGNED)
        else:
            event = CancelCheckpointMarker(value) if kind == "cancel" else EndOfPartition()
        out = [self._done(decision) for decision in self.handler.on_event(channel, event)]
        if kind != "cancel":
            out.append([kind, channel, value] if kind == "barrier" else [kind, channel])
        return out, []

    def _done(self, decision: StartCapture | Captured | Abort) -> list:
        match decision:
            case StartCapture(barrier):
                self.capture.begin(barrier.checkpoint_id)
                for channel in self.capture.channels:
                    channel.begin(barrier.checkpoint_id)
                return ["checkpoint", barrier.checkpoint_id]
            case Captured(checkpoint_id):
                self.capture.note_delivered(checkpoint_id)
                self.capture.take(checkpoint_id)
                return ["captured", checkpoint_id]
            case Abort(checkpoint_id, reason):
                for each in range(checkpoint_id + 1):
                    self.capture.drop(each)
                return ["abort", checkpoint_id, reason.value]


def in_any_order_where_flink_has_none(out: list[list]) -> list[list]:
    """Consecutive resumes come from a hash map."""
    shown: list[list] = []
    for item in out:
        if item[0] == "resume" and shown and shown[-1][0] == "resume":
            shown[-1] = ["resume", *sorted([*shown[-1][1:], item[1]])]
        else:
            shown.append(item)
    return shown


def test_an_input_decides_as_flinks_did(case: dict, version: FlinkVersion) -> None:
    if case["mode"] == "unaligned":
        check_unaligned(case, CapturingGate(case["channels"], version))
        return
    gate = ScriptedGate(CheckpointingMode[case["mode"].upper()], case["channels"], version)
    for number, step in enumerate(case["steps"]):
        out = gate.add(step["in"])
        assert in_any_order_where_flink_has_none(out) == in_any_order_where_flink_has_none(step["out"]), (
            f"step {number}: {step['in']}"
        )
        assert sorted(gate.blocked) == step["blocked_after"], f"step {number}: {step['in']}"
    assert gate.handler.latest_checkpoint_id == case["latest_checkpoint_id"]


def check_unaligned(case: dict, gate: CapturingGate) -> None:
    """Steps of the mode `unaligned` say what was `captured` of what came, as channel and value."""
    for number, step in enumerate(case["steps"]):
        out, captured = gate.add(*step["in"])
        assert out == step["out"], f"step {number}: {step['in']}"
        assert captured == step["captured"], f"step {number}: {step['in']}"
    assert gate.handler.latest_checkpoint_id == case["latest_checkpoint_id"]
