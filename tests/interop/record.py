"""Records what Flink's end says, for the tests of ours that run without it: `python -m tests.interop.record`.

Two conversations: one with barriers and watermarks, and one about a partition that is not there. `test_both_ways.py`
sees whether Flink's end still says the same.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from course.peer.process import ROOT, Peer

__all__ = ["CONSUMING", "FOR_LEARNERS", "LEARNERS", "PRODUCING", "RECORDED", "converse", "for_learners", "not_found"]

RECORDED = ROOT / "tests" / "course" / "peer" / "flink_peer.json"

PRODUCING = {
    "records": 12, "partitions": 2, "elements": "stream", "watermark_every": 6, "barrier_every": 6, "segment_size": 64,
    "flush_ms": -1,  # so that where buffers end is no matter of time
}  # fmt: skip
CONSUMING = {"exclusive": 1, "floating": 2}

FOR_LEARNERS = ROOT / "course" / "flink" / "conversation.json"
LEARNERS = {**PRODUCING, "records": 200, "watermark_every": 50, "barrier_every": 50, "segment_size": 96}
"""What lesson 18 has on machines without Flink; a frame must fit what a trace keeps of one."""

_SHOWN = ("PartitionRequest", "AddCredit", "ResumeConsumption", "BufferResponse")

Said = dict[str, list[dict[str, Any]]]


def converse(producing: str, consuming: str, folder: Path) -> Said:
    """The lines that a producer and a consumer of these kinds print and trace."""
    traces = {mode: folder / f"{mode}.jsonl" for mode in ("serve", "consume")}
    with (
        Peer(producing, "serve", trace=traces["serve"], **PRODUCING) as producer,
        Peer(consuming, "consume", trace=traces["consume"], **CONSUMING, **producer.offer()) as consumer,
    ):
        consumer.done()
        producer.done()
        said = {"serve": producer.events, "consume": consumer.events}
    return said | {f"{mode} --trace": _lines(path) for mode, path in traces.items()}


def not_found(producing: str, consuming: str) -> Said:
    """What a consumer prints that asks for what the producer does not have."""
    with Peer(producing, "serve", **PRODUCING) as producer:
        offer = producer.offer()
        missing = f"{offer.pop('partitions').split(':')[0]}:{'ee' * 16}"
        with Peer(consuming, "consume", partitions=missing, retriggers=0, **offer) as consumer:
            done = consumer.done(exit_code=1)
    return {"consume not found": [{**done, "error": done["error"].splitlines()[0]}]}


def for_learners(producing: str, consuming: str, folder: Path) -> dict[str, Any]:
    """All frames that a producer sends, for each channel, with an empty receiver; and what the records come to."""
    trace = folder / "serve.jsonl"
    with (
        Peer(producing, "serve", trace=trace, **LEARNERS) as producer,
        Peer(consuming, "consume", **CONSUMING, **producer.offer()) as consumer,
    ):
        consumer.done()
        sums = {each["partition"]: each["crc32"] for each in producer.done()["channels"]}
        partitions = producer.wait_for("listening")["partitions"]
    lines = _lines(trace)
    receivers = {each["partition_id"]: each["receiver"] for each in lines if each["msg"] == "PartitionRequest"}
    channels = []
    for number, partition in enumerate(partitions):
        receiver = receivers[partition["partition_id"]]
        sent = [each for each in lines if each["dir"] == "send" and each["receiver"] == receiver]
        assert all(len(each["head_hex"]) == 2 * each["len"] for each in sent), "a frame is longer than what is kept"
        frames = [each["head_hex"].replace(receiver, "00" * 16, 1) for each in sent]
        channels.append({**partition, "crc32": sums[number], "frames": frames})
    said = {each["msg"]: each["head_hex"] for each in reversed(lines) if each["msg"] in _SHOWN}
    return {"flink": "1.11.4", "options": LEARNERS, "said": said, "channels": channels}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        said = converse("flink", "flink", Path(folder)) | not_found("flink", "flink")
        learners = for_learners("flink", "flink", Path(folder))
    FOR_LEARNERS.write_text(json.dumps(learners, indent=1) + "\n", encoding="utf-8")
    lines = ",\n".join(
        f" {json.dumps(name)}: [\n  " + ",\n  ".join(map(json.dumps, events)) + "\n ]" for name, events in said.items()
    )
    RECORDED.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
