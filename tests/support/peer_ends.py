"""Our ends of a conversation, each in a thread of this process, since a process takes a second to start.

consumed, produced = talk({"records": 100}, {"exclusive": 1})
"""

from __future__ import annotations

import argparse
import json
import queue
import socket
import threading
from typing import Any

from course.peer.command import add_arguments, run

__all__ = ["End", "check", "company", "counts_of", "offer_of", "sums_of", "talk"]

TIMEOUT_S = 120.0  # only so that a conversation that hangs fails; nothing waits for it

Event = dict[str, Any]


def words_of(options: dict[str, object]) -> list[str]:
    return [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", str(value))]


class End:
    """One end at work; `options` are those of the command, `string_pad=8` for `--string-pad 8`."""

    def __init__(self, mode: str, **options: object) -> None:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        arguments = parser.parse_args([mode, *words_of({"max_seconds": int(TIMEOUT_S), **options})])
        self.events: list[Event] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._status: list[int] = []
        self._thread = threading.Thread(target=self._run, args=(arguments,), daemon=True)
        self._thread.start()

    def _run(self, arguments: argparse.Namespace) -> None:
        try:
            self._status.append(run(arguments, self))
        finally:
            self._lines.put(None)

    def write(self, text: str) -> None:
        """For `run`: what it says."""
        if text.strip():
            self._lines.put(text)

    def flush(self) -> None: ...

    def next_event(self) -> Event:
        line = self._lines.get(timeout=TIMEOUT_S)
        assert line is not None, f"it has ended, having said {self.events}"
        self.events.append(json.loads(line))
        return self.events[-1]

    def end(self) -> int:
        """Wait for the end; return the exit status. All that was said is in `events` then."""
        while (line := self._lines.get(timeout=TIMEOUT_S)) is not None:
            self.events.append(json.loads(line))
        self._lines.put(None)  # for who asks next
        return self._status[0]

    def done(self, status: int = 0) -> Event:
        """Wait for the end; return the last event, having checked the exit status."""
        assert self.end() == status, self.events
        return self.events[-1]


def offer_of(listening: Event) -> dict[str, object]:
    """What a consumer must be told of a producer."""
    assert listening["event"] == "listening", listening
    ids = [f"{partition['partition_id']}:{partition['producer_id']}" for partition in listening["partitions"]]
    same = {name: listening[name] for name in ("port", "subpartitions", "type", "elements", "segment_size")}
    return {**same, "partitions": ",".join(ids)}


def company(offer: dict[str, object]) -> socket.socket:
    """Somebody who connects to a producer and asks for nothing, so that it does not think it was left."""
    return socket.create_connection(("127.0.0.1", offer["port"]))


def talk(producing: dict[str, object], consuming: dict[str, object] | None = None) -> tuple[Event, Event]:
    """Let a consumer read everything from a producer; return what both found out, which is checked."""
    producer = End("serve", **producing)
    consumer = End("consume", **{**offer_of(producer.next_event()), **(consuming or {})})
    consumed, produced = consumer.done(), producer.done()
    check(consumed, produced)
    assert counts_of(produced, "send") == counts_of(consumed, "recv")
    assert counts_of(produced, "recv") == counts_of(consumed, "send")
    return consumed, produced


def sums_of(done: Event) -> dict[tuple[int, int], int]:
    """CRC-32 by partition and subpartition."""
    return {
        (each.get("partition", each.get("partition_index")), each["subpartition"]): each["crc32"]
        for each in done["channels"]
    }


def check(consumed: Event, produced: Event) -> None:
    """What holds of every conversation that went to its end."""
    assert sums_of(consumed) == sums_of(produced)
    records = {channel["records"] for channel in (*produced["channels"], *consumed["channels"])}
    assert len(records) == 1, records
    for channel in consumed["channels"]:
        assert (channel["order_ok"], channel["order_error"], channel["end_of_partition"]) == (True, None, True), channel
        assert channel["max_queued"] >= 1, "an end came at least"
    assert (consumed["ok"], consumed["error"], consumed["connections_left"]) == (True, None, 0), consumed
    assert counts_of(consumed, "send")["CloseRequest"] == counts_of(produced, "recv")["CloseRequest"] == 1
    for done in (consumed, produced):
        assert done["pool_available_after"] == done["pool_total"]
        for receiver in done["frames"]["receivers"].values():
            assert receiver["lowest_balance"] >= 0, done["frames"]


def counts_of(done: Event, direction: str) -> dict[str, int]:
    """How many frames of each kind went in one direction, `recv` or `send`."""
    counts = done["frames"]["counts"]
    return {name.split(":")[1]: count for name, count in counts.items() if name.startswith(direction)}
