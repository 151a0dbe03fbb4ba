"""The global pool and its local pools, step by step as `NetworkBufferPool` of Flink 1.11.4 and 2.2.1 did.

Buffers the script holds stay out when their pool is destroyed, as in Flink.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from refimpl.config import FlinkVersion
from refimpl.errors import InsufficientBuffersError
from refimpl.memory import Buffer, LocalBufferPool, MemorySegment, NetworkBufferPool

TOPIC = "pool"
BY_VERSION = True

SEGMENT_SIZE = 16


class Script:
    """A pool and what the script holds of it."""

    def __init__(self, case: dict, version: FlinkVersion) -> None:
        self.pool = NetworkBufferPool(case["total_segments"], SEGMENT_SIZE, version)
        self.pool.promises.visit = self.in_recorded_order
        self.order: list[str] = []
        self.pools: dict[str, LocalBufferPool] = {}
        self.held: dict[str, list[Buffer]] = {}
        self.drained: list[Buffer] = []
        self.unpooled: list[list[MemorySegment]] = []
        self.unpooled_per_request = case.get("unpooled_per_request", 1)
        self.error = ""

    def in_recorded_order(self, pools: Sequence[LocalBufferPool]) -> list[LocalBufferPool]:
        place = {name: index for index, name in enumerate(self.order)}
        return sorted(pools, key=lambda pool: place.get(pool.name, len(place)))

    def do(self, step: dict) -> object:
        """One operation; its result in the words of the vectors."""
        self.order = step["redistribution_order"]
        name = step.get("pool")
        match step["op"]:
            case "create":
                try:
                    self.pools[name] = LocalBufferPool(self.pool, step["min"], step["max"], name)
                except InsufficientBuffersError as error:
                    return self.failed(error)
                self.held[name] = []
                return "ok"
            case "destroy":
                self.pools.pop(name).destroy()
                self.drained += self.held.pop(name)
                return "ok"
            case "request":
                return self.request(name, step["count"])
            case "recycle":
                returned = self.held[name][: step["count"]]
                del self.held[name][: step["count"]]
                for buffer in returned:
                    buffer.recycle()
                return len(returned)
            case "take_unpooled":
                return self.take_unpooled()
            case "return_unpooled":
                self.pool.return_unpooled(self.unpooled.pop(0))
                return "ok"
        pytest.skip(f"operation {step['op']} is not described in the format")

    def request(self, name: str, count: int) -> int:
        num_got = 0
        while num_got < count and (buffer := self.pools[name].request_buffer()) is not None:
            self.held[name].append(buffer)
            num_got += 1
        return num_got

    def take_unpooled(self) -> str:
        try:
            segments = self.pool.request_unpooled(self.unpooled_per_request, "the script")
        except InsufficientBuffersError as error:
            return self.failed(error)
        if segments is None:
            # Flink waits here and gives up after a time; we say "not now" and the caller waits.
            self.error = "Timeout triggered when requesting exclusive buffers"
            return "IOException"
        self.unpooled.append(segments)
        return "ok"

    def failed(self, error: Exception) -> str:
        self.error = str(error)
        return "IOException"

    def state(self) -> dict:
        return {
            name: {
                "min": pool.num_required,
                "max": pool.num_max,
                "size": pool.snapshot().size,
                "in_use": len(self.held[name]),
            }
            for name, pool in self.pools.items()
        }


def test_pools_share_segments_as_flink_does(case: dict, version: FlinkVersion) -> None:
    script = Script(case, version)
    for number, step in enumerate(case["steps"]):
        what = f"step {number}: {step['op']} {step.get('pool', '')}"
        assert script.do(step) == step["result"], what
        if "error_message_start" in step:
            assert script.error.startswith(step["error_message_start"]), what
        assert script.state() == step["pools"], what
        assert script.pool.num_free == step["free_segments"], what
