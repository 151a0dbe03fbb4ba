"""The visible vectors are all there and none of them is skipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

VECTORS = Path(__file__).parent / "vectors"
TOPICS = [
    "spanning", "stream_elements", "events", "keygroups", "pool", "selectors", "valve", "alignment", "netty", "credit",
    "timers", "windows",
    "decider", "restart",
]  # fmt: skip


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_has_its_vectors_and_its_test(topic: str) -> None:
    content = json.loads((VECTORS / f"{topic}.json").read_text(encoding="utf-8"))
    assert (content["format"], content["file"]) == ("flink-vectors/1", topic)
    assert len(content["cases"]) == content["case_count"] > 0
    tests = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob(f"test_{topic}*.py")]
    assert tests
    assert all(f'TOPIC = "{topic}"' in test for test in tests)
