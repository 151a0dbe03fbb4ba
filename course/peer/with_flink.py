"""A part at one end of a connection, and a real Flink at the other.

    with a Flink on this machine    it produces, in a process of its own; both ends on the loopback address
    without                         what a real one sent once is sent again, by its rules (course/flink/recorded.py)

Two conversations: records, watermarks and barriers over two channels; and a partition that nobody has, which is asked
for again and again until its channel is told.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from course.flink.recorded import RecordedFlink, conversation
from course.peer.command import add_arguments
from course.peer.consuming import OURS, Consuming, Parts
from course.peer.host import Host, Speaker, TimeLimitError
from course.peer.process import Peer, missing
from course.peer.tap import Tap
from refimpl.config import Config

__all__ = ["FlinkReport", "consume_from_flink", "is_live", "talk_to_flink", "which_flink"]

_SECONDS = 20
_WAITS_MS = (10, 40)
_NOBODY_HAS = "ee" * 16


def is_live() -> bool:
    """Whether a real Flink is on this machine."""
    return missing() is None


def which_flink() -> str:
    """What is at the other end on this machine, in one line."""
    if is_live():
        return "At the other end: a real Flink 1.11.4, in a process of its own on this machine."
    return "At the other end: what a Flink 1.11.4 once sent, recorded (a real one: `sluice flink fetch`, 205 MB)."


@dataclass(frozen=True, slots=True)
class FlinkReport:
    """What came over the connection.

    `channels` are what each of them got, as `sluice peer consume` says it, and `sums` what Flink sent to each; `told`
    is what the channel was told whose partition nobody has, after so many requests; `error` what ended a conversation.
    """

    part_name: str
    is_learners: bool
    channels: tuple[Mapping[str, Any], ...]
    sums: tuple[int, ...]
    num_asked: int
    told: str
    error: str = ""
    taken_out: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether every channel got what Flink sent, to its end."""
        got = tuple(each["crc32"] for each in self.channels if each["order_ok"] and each["end_of_partition"])
        return not self.error and got == self.sums

    def __repr__(self) -> str:
        whose = "your part" if self.is_learners else "our part (yours goes in when it passes its check)"
        lines = [f"{whose}: {self.part_name}, and Flink 1.11.4 at the other end"]
        if self.taken_out:
            lines.append(f"✗ taken out again: {self.taken_out[0]}")
            lines += [f"    {line}" for line in self.taken_out[1:]]
            lines.append("  ours went on where it stopped")
        for channel in self.channels:
            lines.append(
                f"  channel {channel['partition_index']}   {channel['records']} records in {channel['data_buffers']} "
                f"buffers, {channel['watermarks']} watermarks, {len(channel['barriers'])} barriers, "
                f"{'and its end' if channel['end_of_partition'] else 'and NO end'}"
            )
        if self.error:
            lines.append(f"✗ the conversation ended: {self.error}")
        else:
            same = "what Flink sent, byte for byte" if self.is_equal else "NOT what Flink sent"
            lines.append(f"{'✓' if self.is_equal else '✗'} {same}")
        first, longest = _WAITS_MS
        lines.append(f"  a partition that nobody has, with waits from {first} to {longest} ms:")
        lines.append(f"  its channel was told: {self.told or 'nothing'}")
        return "\n".join(lines)


def talk_to_flink(name: str = "the engine's", parts: Parts = OURS, *, is_learners: bool = False) -> FlinkReport:
    """Talk to a Flink with these parts, of which one bears this name."""
    sums = tuple(each["crc32"] for each in conversation()["channels"])
    with _flink() as offer:
        nobody = {**offer, "partitions": f"{offer['partitions'].split(':')[0]}:{_NOBODY_HAS}", "retriggers": 99}
        missed = _consume(nobody, parts)  # first: a producer ends when all that it has is read
        done = _consume(offer, parts)
    return FlinkReport(
        name, is_learners, tuple(done.get("channels", ())), sums, missed.get("partition_not_found", 0),
        _last_line(missed.get("error")), _last_line(done.get("error")),
    )  # fmt: skip


@contextmanager
def _flink() -> Iterator[dict[str, Any]]:
    """A producer that waits for us, and what we must know of it."""
    if is_live():
        with Peer("flink", "serve", seconds=2 * _SECONDS, **conversation()["options"]) as flink:
            offer = flink.offer()
            # It would end if nobody were connected between the one conversation and the next.
            with socket.create_connection(("127.0.0.1", offer["port"])):
                yield offer
    else:
        with RecordedFlink() as recorded:
            yield recorded.offer()


def consume_from_flink(parts: Parts) -> dict[str, Any]:
    """Read what a Flink has; the last that `sluice peer consume` would have said."""
    with _flink() as offer:
        return _consume(offer, parts)


def _consume(offer: Mapping[str, Any], parts: Parts) -> dict[str, Any]:
    """Read what is offered; the last that `sluice peer consume` would have said."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    words = [word for name, value in offer.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    options = parser.parse_args(["consume", "--exclusive", "2", "--floating", "3", *words])
    first, longest = _WAITS_MS
    config = Config(
        segment_size_bytes=options.segment_size, request_backoff_initial_ms=first, request_backoff_max_ms=longest
    )
    out = io.StringIO()
    try:
        with Host(Tap(None), Speaker(out), _SECONDS) as host:
            Consuming(options, host, parts, config).run()
    except TimeLimitError:
        return {"error": f"nothing moved for {_SECONDS} s", "channels": []}
    done: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
    return done


def _last_line(error: object) -> str:
    """What an exception says, without its type, without advice, and without ids that mean nothing to anybody."""
    if not error:
        return ""
    words = str(error).strip().splitlines()[-1].split(": ", 1)[-1].split("; ")[0]
    return re.sub(r"^Partition \S+ not found", "not found", words)
