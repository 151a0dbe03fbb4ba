"""What the browser may ask of a live job, and what it is told when that cannot be."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import SpanningRecordSerializer
from widgets import JobView, PipelineMap

DEADLINE_S = 120.0


class Mine(SpanningRecordSerializer):
    """Somebody's part."""


class Box:
    """What a view sends, and a wait for some of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, view: type) -> None:
        self._arrived = threading.Condition()
        self.messages: list[dict[str, Any]] = []
        monkeypatch.setattr(view, "send", lambda _view, content, buffers=None: self._put(content))

    def _put(self, content: dict[str, Any]) -> None:
        with self._arrived:
            self.messages.append(content)
            self._arrived.notify_all()

    def answer_to(self, view: Any, **content: Any) -> str:
        """What comes back to a wish, in words; "" is yes."""
        before = len(self.messages)
        view._on_message(view, content, None)
        with self._arrived:
            found = lambda: [m["words"] for m in self.messages[before:] if m["type"] == "refused"]  # noqa: E731
            assert self._arrived.wait_for(lambda: bool(found()), DEADLINE_S)
            return found()[0]


@pytest.fixture
def run():
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=40, source_batch=2), 2)
    environment.from_collection(range(10**6)).rebalance().map(str).rebalance().sink(bool)
    with ThreadedRun(environment) as run:
        yield run.start()


@pytest.fixture
def box(monkeypatch):
    return Box(monkeypatch, JobView)


@pytest.fixture
def view(run, box):
    view = JobView(run, swaps={"mine": {"SpanningRecordSerializer": Mine}, "none": {"Nothing": Mine}})
    view._on_message(view, {"type": "visible", "view": "a"}, None)
    yield view
    view.close()


def test_what_can_be_changed_is_offered(view):
    control = view._topology["control"]
    assert control["names"] == ["source", "map", "sink", "source-0", "map-0", "map-1", "sink-0", "sink-1"]
    assert (control["timeout_ms"], control["swaps"]) == (100, ["mine", "none"])


def test_a_task_is_slowed_and_the_picture_and_the_words_say_so(view, run, box):
    assert box.answer_to(view, type="slow", name="sink", ms=50) == ""
    assert [task.rest_ms for task in run.snapshot().tasks] == [0, 0, 0, 50, 50]
    assert "rests 50 ms" in repr(view)
    assert "rests 50 ms" in view.svg()
    other = PipelineMap(run)
    assert "rests 50 ms" in repr(other)
    other.close()


def test_a_timeout_is_changed_and_a_part_swapped(view, run, box):
    assert box.answer_to(view, type="set_buffer_timeout", ms=7) == ""
    assert {partition.flusher.timeout_ms for partition in run.deployment.partitions} == {7}
    assert box.answer_to(view, type="swap", name="mine") == ""
    assert run.deployment.parts.SpanningRecordSerializer is Mine


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"type": "slow", "name": "snik", "ms": 5}, "no task and no operator 'snik'"),
        ({"type": "slow", "name": "sink", "ms": "fast"}, "rest_ms='fast' cannot work"),
        ({"type": "slow"}, "no task and no operator 'None'"),
        ({"type": "set_buffer_timeout", "ms": 0}, "buffer_timeout_ms=0"),
        ({"type": "swap", "name": "none"}, "Nothing"),
        ({"type": "swap", "name": "mien"}, "nothing to swap in called 'mien'. There is: mine, none"),
    ],
)
def test_what_cannot_be_is_answered_and_the_pump_goes_on(view, box, wish, words):
    if wish == {"type": "slow"}:
        words = "cannot work"
    assert words in box.answer_to(view, **wish)
    assert view.sampler.is_alive
    assert box.answer_to(view, type="slow", name="sink", ms=0) == ""


@pytest.mark.parametrize("swaps", [["mine"], {"mine": 5}, "mine", 5, {5: {}}, {"mine": {5: Mine}}, {"mine": ["a"]}])
def test_swaps_of_another_shape_are_refused_at_once(run, swaps):
    with pytest.raises(LocalUsageError, match=r"^swaps=.* cannot work: parts by the names .* such as \{\"mine\""):
        JobView(run, swaps=swaps)


def test_whatever_a_note_raises_is_a_refusal_and_the_pump_goes_on(view, run, box, monkeypatch):
    def do(_command):
        raise AttributeError("no such thing")

    with monkeypatch.context() as patched:
        patched.setattr(run, "do", do)
        assert box.answer_to(view, type="slow", name="sink", ms=5) == "AttributeError: no such thing"
        assert view.sampler.is_alive
    assert box.answer_to(view, type="set_buffer_timeout", ms=7) == ""


def test_a_name_that_holds_half_a_character_is_found_by_what_the_browser_knows_of_it(box):
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=40, source_batch=2))
    environment.from_collection(range(10**6)).rebalance().map(str, name="half \ud800").rebalance().sink(bool)
    with ThreadedRun(environment) as run:
        view = JobView(run.start())
        view._on_message(view, {"type": "visible", "view": "a"}, None)
        name = view._topology["control"]["names"][1]
        assert name == "half \N{REPLACEMENT CHARACTER}"
        assert box.answer_to(view, type="slow", name=name, ms=50) == ""
        assert [task.rest_ms for task in run.snapshot().tasks] == [0, 50, 0]
        view.close()
