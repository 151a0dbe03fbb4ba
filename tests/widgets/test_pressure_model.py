"""Who holds a job back, as `JobView` says it: in numbers, as a sentence, and with the moment before."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from refimpl.cluster import BackPressureStats, Bottleneck, BottleneckKind
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Costs, PressureWatch
from refimpl.job import StreamEnvironment
from tests.support.drawings import words_in, words_on_words
from widgets import JobView, Recording, topology
from widgets.pressure_model import LookBack, bottleneck_words, load_words, loads_between, sampled_words

NAMES = {(0, 0): "source-0", (1, 0): "map-0", (1, 1): "map-1"}


def recorded(costs: dict[str, float], until_ms: float = 600.0) -> tuple[Recording, dict[str, float]]:
    """A timed run, and how much of its last part each task was held back, as the watch has it."""
    config = Config(source_batch=1, buffer_timeout_ms=0, segment_size_bytes=64, num_buffers=256)
    job = StreamEnvironment(config)
    source = job.from_collection(range(20_000), name="source")
    source.rebalance().map(lambda value: value, "map").rebalance().sink(bool, "sink")
    with Simulation(job, policy="timed", costs=Costs(costs), check_every=0) as run:
        recording = Recording(topology(run.snapshot()), 5_000)
        watch = PressureWatch(run)
        recording.add(run.snapshot())
        while run.time_ms < until_ms:
            assert run.step() is not None
            if run.num_steps % 20 == 0:
                recording.add(run.snapshot())
        recording.add(run.snapshot())
        names = {(each.vertex.id, each.subtask): each.name for each in run.graph.vertices}
        return recording, {names[place]: load.held_back for place, load in watch.loads().items()}


@pytest.mark.parametrize("culprit", ["map", "sink"])
def test_the_view_names_the_culprit_and_its_shares_are_those_of_the_watch(culprit: str) -> None:
    recording, held = recorded({"source": 0.1, "map": 0.1, "sink": 0.1, culprit: 1.0})
    view = JobView(recording, at=-1)
    model = view.model()
    assert model["bottleneck"] == f"bottleneck: {culprit}-0 has too much to do"
    assert model["bottleneck"] in view.text()
    assert model["bottleneck"] in view.svg()
    for name, share in held.items():
        assert model["loads"][name]["held_ms_per_s"] == pytest.approx(1_000 * share, abs=1)
        assert load_words(model["loads"][name]) in view.text()
    assert "busy 100 %" in view.svg()
    view.close()


def test_how_a_task_spends_its_time_lies_on_no_other_words() -> None:
    view = JobView(recorded({"source": 0.1, "map": 0.1, "sink": 1.0})[0], at=-1)
    drawn = ET.fromstring(view.svg())
    said = [words for words, _ in words_in(drawn)]
    assert "▲ backpressured" in said
    assert any(words.startswith("held back ") for words in said)
    assert not words_on_words(drawn)
    view.close()


def test_the_watch_and_the_view_count_the_same_unread_buffers() -> None:
    job = StreamEnvironment(Config(source_batch=1, buffer_timeout_ms=0, segment_size_bytes=64, num_buffers=256))
    job.from_collection(range(20_000), name="source").rebalance().map(bool, "map").rebalance().sink(bool, "sink")
    with Simulation(job, policy="timed", costs=Costs({"source": 0.1, "map": 1.0, "sink": 0.1}), check_every=0) as run:
        watch = PressureWatch(run)
        while run.time_ms < 300.0:
            run.step()
        shot = run.snapshot()
        loads = loads_between(None, shot)
        by_name = {each.name: (each.vertex.id, each.subtask) for each in run.graph.vertices}
        watched = watch.loads()
    unread = sum(channel.num_available for gate in shot.gates if gate.name == "map-0" for channel in gate.channels)
    assert unread > 1
    assert loads["map-0"].num_queued == watched[by_name["map-0"]].num_queued == unread
    assert loads["sink-0"].num_queued <= 1 < unread


def test_a_source_that_brings_no_more_is_said() -> None:
    view = JobView(recorded({"source": 1.0, "map": 0.1, "sink": 0.1})[0], at=-1)
    assert view.model()["bottleneck"] == "as fast as its source: source-0 brings no more"
    view.close()


def test_a_run_without_a_clock_says_nothing_of_it() -> None:
    job = StreamEnvironment(Config(segment_size_bytes=64))
    job.from_collection(range(20)).rebalance().sink(bool)
    with Simulation(job) as run:
        view = JobView(Recording.of(run))
    assert view.model()["bottleneck"] == ""
    assert "held back" not in view.text()
    view.close()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Bottleneck(BottleneckKind.SKEW, (1, 1)), "bottleneck: map-1 has more to do than its siblings"),
        (
            Bottleneck(BottleneckKind.EXCHANGE, (1, 0), (0, 0)),
            "bottleneck: between source-0 and map-0: credit, buffers or a slow link",
        ),
        (Bottleneck(BottleneckKind.ALIGNING, (1, 0)), "aligning: map-0 waits for a barrier"),
        (Bottleneck(BottleneckKind.NOTHING), "nothing holds the job back"),
    ],
    ids=lambda each: each.kind.name if isinstance(each, Bottleneck) else "",
)
def test_each_kind_has_its_sentence(found: Bottleneck, words: str) -> None:
    assert bottleneck_words(found, NAMES) == words


def test_samples_are_a_level_and_the_worst_ratio() -> None:
    assert sampled_words(BackPressureStats((0.0, 0.07), 0.0)) == "OK, 0.07"
    assert sampled_words(BackPressureStats((0.3, 0.5), 0.0)) == "LOW, 0.50"
    assert sampled_words(BackPressureStats((0.51,), 0.0)) == "HIGH, 0.51"
    assert sampled_words(None) == ""


def test_a_moment_is_compared_with_one_a_second_older_or_the_oldest_there_is() -> None:
    looks = LookBack()
    moments = [SimpleNamespace(time_ms=float(time_ms)) for time_ms in range(0, 3_000, 250)]
    before = [looks.before(each) for each in moments]  # type: ignore[arg-type]
    assert before[0] is None
    assert before[3] is moments[0]
    assert before[4] is moments[0]
    assert [before[number] for number in range(5, 12)] == [moments[number - 4] for number in range(5, 12)]
