"""What holds for every view: each is a row of a table, so a new view is tested by adding one."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from ipywidgets import Widget
from jupyter_client.session import json_packer

from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.state import MemoryStore
from refimpl.task import IterableReader
from tests.support.polling import until
from tests.support.small_clusters import small_cluster
from tests.support.small_races import small_race
from widgets import (
    AlignmentView,
    BytesBesideFlink,
    CheckpointView,
    ClusterView,
    CreditView,
    ExchangeView,
    JobView,
    PipelineMap,
    PoolView,
    QueueView,
    RaceView,
    Recording,
    SegmentView,
    TaskManagerView,
    ThroughputView,
    TimelineView,
    TwoBufferRibbon,
    WatermarkView,
)
from widgets.base import View
from widgets.facts import FactView

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Row:
    """A view; at least `share` of the steps of a job change its picture. `remembers`: it also shows what was before."""

    view: type[View]
    share: float = 0.0
    remembers: bool = False


JOB_VIEWS = [
    Row(PipelineMap, 0.5), Row(PoolView, 0.3), Row(QueueView, 0.3), Row(CreditView, 0.3), Row(SegmentView, 0.05),
    Row(JobView, 0.3), Row(ExchangeView, 0.3), Row(ThroughputView, 0.3, remembers=True),
    Row(WatermarkView, 0.0), Row(TimelineView, 0.5, remembers=True),
    Row(TaskManagerView, 0.3), Row(AlignmentView, 0.3), Row(CheckpointView, 0.1),
]  # fmt: skip
ALL_VIEWS = [*JOB_VIEWS, Row(TwoBufferRibbon), Row(BytesBesideFlink), Row(RaceView), Row(ClusterView)]

# What those show that show no job; made when it is asked for, since a race takes a second.
SOURCES: dict[type[View], Callable[[], tuple[Any, ...]]] = {
    TwoBufferRibbon: lambda: ([b"hello", b"to"],),
    BytesBesideFlink: lambda: (b"hello to all", b"hallo to me"),
    RaceView: lambda: (small_race(),),
    ClusterView: lambda: (small_cluster(),),
}

# Numbers that name something: they have no unit.
NAMES = {
    "index", "subtask", "task", "output", "from_task", "to_task", "to_channel", "gate", "input", "column", "row",
    "channels",
    "segment_id", "record", "buffer", "position", "step", "start_byte", "from_vertex", "to_vertex", "after", "edge",
    "from_subtask", "to_subtask", "channel", "sequence", "task_manager", "slot", "process", "checkpoint",
    "acked_checkpoint", "epoch", "attempt", "vertex",
}  # fmt: skip
CONSTANT = {"capacity_bytes", "segment_size_bytes", "num_shown_bytes"}  # as long as the job runs
UNITS = ("_bytes", "_buffers", "_segments", "_credits", "_ms", "_per_s")

job_views = pytest.mark.parametrize("row", JOB_VIEWS, ids=lambda row: row.view.__name__)
all_views = pytest.mark.parametrize("row", ALL_VIEWS, ids=lambda row: row.view.__name__)


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest) -> Recording:
    """A job on two TaskManagers, so that there is something to see of everything."""
    given = {"num_task_managers": 2, "max_delay_ms": 0.05, "step_ms": 0.1, "store": MemoryStore()}
    with Simulation(two_places(), seed=3, **given) as simulation:
        return Recording.of(simulation)


def two_places(num_records: int = 60) -> StreamEnvironment:
    config = Config(segment_size_bytes=64, num_buffers=24, source_batch=2, checkpoint_interval_ms=1)
    environment = StreamEnvironment(config, 2)
    environment.from_collection(range(num_records)).rebalance().map(str).rebalance().sink(bool)
    return environment


@pytest.fixture
def made(run: Recording) -> Iterator[Callable[..., Any]]:
    """Makes a view, of the recording or of another source, and closes it at the end."""
    views: list[View] = []

    def make(row: Row, source: Any = None, **options: Any) -> Any:
        sources = SOURCES.get(row.view, lambda: (run,))() if source is None else (source,)
        view = row.view(*sources, **options)
        views.append(view)
        return view

    yield make
    for view in views:
        view.close()


def numbers_in(model: Any, key: str = "") -> Iterator[str]:
    """The keys that hold a number, wherever they stand."""
    if isinstance(model, dict):
        for name, value in model.items():
            yield from numbers_in(value, name)
    elif isinstance(model, list):
        for value in model:
            yield from numbers_in(value, key)
    elif isinstance(model, int | float) and not isinstance(model, bool):
        yield key


def body_of(still: str) -> str:
    """What is to be seen: without the description, and the id that is made of the model."""
    return re.sub(r"<desc.*?</desc>|\b[a-z]+-[0-9a-f]{8}\b", "", still, flags=re.DOTALL)


@all_views
def test_the_model_is_json_and_says_its_units(row: Row, made: Any) -> None:
    model = made(row).model()
    assert json.loads(json.dumps(model)) == model
    keys = set(numbers_in(model))
    bare = {key for key in keys if not key.endswith(UNITS) and not key.startswith("num_")} - NAMES
    assert not bare, f"numbers without a unit: {bare}"


@all_views
def test_no_words_hold_an_address_of_memory(row: Row, made: Any) -> None:
    view = made(row)
    for words in (repr(view), view.svg(), json.dumps(view.model())):
        assert not re.search(r"object at 0x|0x[0-9a-f]{6}|<function", words)


@all_views
def test_the_words_are_what_a_notebook_stores(row: Row, made: Any) -> None:
    view = made(row, title="A & B")
    data, _metadata = view._repr_mimebundle_()
    assert data["text/plain"] == repr(view)
    assert repr(view).startswith("A & B")
    assert data["image/svg+xml"] == view.svg() == view._picture


@all_views
def test_the_still_is_named_described_and_whole(row: Row, made: Any) -> None:
    view = made(row, title="A <b> & 'c'")
    root = ET.fromstring(view.svg())
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "A <b> & 'c'"
    assert root.find(f"{SVG}desc").text == repr(view)
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r"url\(#([^)]+)\)", view.svg())) <= set(ids)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", view.svg())


@all_views
def test_an_unknown_option_is_refused_with_the_right_name(row: Row, made: Any) -> None:
    with pytest.raises(LocalUsageError, match=rf"{row.view.__name__} has no option 'titel'; did you mean 'title'\?"):
        made(row, titel="x")


@all_views
def test_the_module_is_self_contained(row: Row) -> None:
    module = row.view._esm
    assert not re.search(r"\bimport\b[^.]*['\"(]|https?:|fetch\(|XMLHttpRequest|WebSocket|eval\(", str(module))
    assert str(module).count("export default") == 1


@pytest.mark.sampled(one_in=3)
@job_views
def test_words_and_picture_change_with_the_state(row: Row, made: Any, run: Recording) -> None:
    view = made(row)
    models = [view.model_of(snapshot, "", view._known) for snapshot, _ in run.moments]
    for model in models:  # the step and the time would change with every step
        model["num_steps"], model["time_ms"] = 0, 0.0
    texts = [view.text_of(model, "A job", "") for model in models]
    stills = [body_of(view.svg_of(model, "A job", "")) for model in models]
    changed = [after != before for before, after in pairwise(stills)]
    told = [after != before for before, after in pairwise(texts)]
    assert sum(changed) > row.share * len(changed)
    silent = [n for n, (seen, said) in enumerate(zip(changed, told, strict=True)) if seen and not said]
    assert not silent, f"the picture changed and the words did not, after steps {silent[:5]}"


def others(model: Any, key: str = "") -> Iterator[str]:
    """Change each number and each yes or no of a model, one at a time; says which is changed just now.

    Of a queue only the tail: whatever stands before it is finished. What was received always is.
    """
    places = list(model.items() if isinstance(model, dict) else enumerate(model) if isinstance(model, list) else ())
    for place, value in places[-1:] if key in ("queue", "received") else places:
        name = place if isinstance(place, str) else key
        if (key, place) == ("received", "is_finished"):
            continue
        if isinstance(value, int | float) and name not in NAMES | CONSTANT:
            model[place] = not value if isinstance(value, bool) else 0 if value else 7
            yield name
            model[place] = value
        else:
            yield from others(value, name)


@job_views
def test_each_fact_that_is_drawn_is_said(row: Row, made: Any) -> None:
    view = made(row)
    model = view.model()
    text, still = view.text_of(model, "A job", ""), body_of(view.svg_of(model, "A job", ""))
    silent, drawn = set(), 0
    for name in others(model):
        if body_of(view.svg_of(model, "A job", "")) != still:
            drawn += 1
            if view.text_of(model, "A job", "") == text:
                silent.add(name)
    assert drawn > 10
    assert not silent, f"drawn and not said: {silent}"


@job_views
def test_why_a_job_failed_is_said_and_drawn(row: Row, made: Any) -> None:
    view = made(row)
    still = view.svg_of(view.model(), "A job", "ValueError: no <runway>")
    assert "✗ the job failed: ValueError: no &lt;runway&gt;" in still
    assert "✗ the job failed: ValueError: no <runway>" in view.text_of(view.model(), "A job", "ValueError: no <runway>")


@job_views
def test_a_frame_is_under_two_kilobytes(row: Row, made: Any, run: Recording) -> None:
    assert max(len(json.dumps(frame, separators=(",", ":"))) for frame in made(row)._all_frames()) < 2_000


@job_views
def test_a_recording_from_a_file_shows_the_same(row: Row, made: Any, run: Recording) -> None:
    again = made(row, Recording.from_json(run.to_json()))
    assert repr(again) == repr(made(row))
    assert again._frames == made(row)._frames


@job_views
def test_a_frame_that_is_not_there_is_refused(row: Row, made: Any, run: Recording) -> None:
    assert made(row, at=-1)._at == len(run) - 1
    for at in (len(run), -len(run) - 1, "3", 1.5, True):
        with pytest.raises(LocalUsageError, match=f"there are {len(run)} frames, from 0 to {len(run) - 1}"):
            made(row, at=at)


@job_views
@pytest.mark.parametrize("source", [None.__class__, 3, "job", object()], ids=["class", "number", "words", "object"])
def test_what_cannot_be_shown_is_refused(row: Row, made: Any, source: object) -> None:
    with pytest.raises(LocalUsageError, match="cannot be shown; give a Simulation"):
        made(row, source)


@job_views
def test_a_run_without_a_monitor_is_refused_but_its_moments_are_not(row: Row, made: Any) -> None:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=24))
    environment.from_collection(range(3)).rebalance().sink(bool)
    run = AsyncRun(environment)
    with pytest.raises(LocalUsageError, match="an AsyncRun moves on its event loop"):
        made(row, run)


@job_views
def test_a_simulation_is_stepped(row: Row, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(row.view, "send", lambda self, content, buffers=None: sent.append(content))
    with Simulation(two_places(), seed=3, num_task_managers=2) as simulation:
        view = made(row, simulation)
        view._on_message(view, {"type": "step", "n": 3}, None)
        assert (simulation.num_steps, len(sent[0]["frames"])) == (3, 3)
        assert sent[0]["frames"][-1][:2] == [simulation.snapshot().num_steps, round(simulation.time_ms, 3)]


@pytest.mark.sampled(one_in=3)
@job_views
def test_a_job_on_threads_is_live(row: Row, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(row.view, "send", lambda self, content, buffers=None: sent.append(content))
    run = ThreadedRun(two_places(2_000), num_task_managers=2)
    view = made(row, run)
    assert (view._mode, view._controls) == ("live", ["pause", "resume", "slow", "set_buffer_timeout", "swap"])
    view._on_message(view, {"type": "visible", "view": "a"}, None)
    run.run()
    view.sampler._thread.join(120)
    assert sent[-1]["done"]
    assert sent[-1]["frame"][2:] == view.frame_of(view.model())[2:]
    assert len({len(message["frame"]) for message in sent}) == 1


@pytest.fixture(scope="module")
def in_processes() -> Iterator[dict[type[View], tuple[View, str, ProcessRun]]]:
    """Every view of one job in processes, from before it starts; how each was then, and the run, which is over."""
    with ProcessRun(two_places(400)) as run:
        views = {row.view: row.view(run) for row in JOB_VIEWS}
        modes = {kind: view._mode for kind, view in views.items()}
        run.run()
        yield {kind: (view, modes[kind], run) for kind, view in views.items()}
        for view in views.values():
            view.close()


@pytest.mark.slow
@job_views
def test_a_job_in_processes_is_live(
    row: Row, made: Any, in_processes: dict[type[View], tuple[View, str, ProcessRun]]
) -> None:
    view, mode, run = in_processes[row.view]
    assert mode == "live"
    assert view.model()["num_steps"] > 0
    assert repr(view) == repr(view if row.remembers else made(row, run))


@job_views
def test_a_job_that_failed_can_still_be_looked_at(row: Row, made: Any) -> None:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=24), 2)
    environment.from_collection(range(9)).rebalance().map(lambda n: 1 // (n - 4)).sink(bool)
    run = ThreadedRun(environment, num_task_managers=2)
    view = made(row, run)
    with pytest.raises(UserCodeError):
        run.run()
    assert "ZeroDivisionError" in repr(view)


def odd_names(num_records: int) -> StreamEnvironment:
    """Names that hold half of a character (a lone surrogate), as `os.fsdecode` makes them; the last record fails."""
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=24, source_batch=2), 2)
    source = environment.source(lambda i, n: IterableReader(range(i, num_records, n)), name="in\ud800")
    source.rebalance().map(lambda n: fail("why \udc80") if n == num_records - 1 else n, name="\udc80x").sink(bool)
    return environment


def fail(why: str) -> None:
    raise OSError(why)


@job_views
def test_half_a_character_in_a_name_or_an_error_is_replaced_wherever_it_is_sent(
    row: Row, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that cannot be encoded would end the pump, and a trait the view."""
    messages: list[bytes] = []
    monkeypatch.setattr(Widget, "send", lambda _view, content, buffers=None: messages.append(json_packer(content)))
    views = []
    with Simulation(odd_names(40), num_task_managers=2) as simulation, suppress(UserCodeError):
        views.append(made(row, simulation, title="half \ud800"))
        views.append(made(row, Recording.of(simulation, 20)))
        simulation.run()
    with ThreadedRun(odd_names(2_000), num_task_managers=2) as threaded, suppress(UserCodeError):
        live = made(row, threaded)
        live._on_message(live, {"type": "visible", "view": "a"}, None)
        threaded.run()
    until(lambda: messages and json.loads(messages[-1])["done"])
    assert "why \N{REPLACEMENT CHARACTER}" in json.loads(messages[-1])["error"]
    for view in (*views, live):
        for words in (view.text(), repr(view), view.svg(), view.title, view._picture, view._frames, repr(view.error)):
            assert words.encode().decode() == words
        for content in ({**view._topology}, view._repr_mimebundle_()[0]):
            assert json.loads(json_packer(content)) == json.loads(json.dumps(content))
        assert "\N{REPLACEMENT CHARACTER}" in view.text()


@pytest.mark.parametrize("row", [row for row in JOB_VIEWS if issubclass(row.view, FactView)], ids=lambda r: r.view.kind)
def test_every_moment_has_the_same_facts_and_the_drawing_follows_them(row: Row, made: Any, run: Recording) -> None:
    view = made(row)
    names = {tuple(view.facts(view.model_of(*moment, view._known))) for moment in run.moments}
    assert len(names) == 1
    followed = set(re.findall(r'data-fact="(\d+)"', view.svg()))
    tables = view._topology["tables"]
    in_tables = {str(cell[0]) for _, _, rows in tables for r in rows for cell in r if isinstance(cell, list)}
    assert {name for n, name in enumerate(*names) if str(n) not in followed | in_tables} == {"status"}


@pytest.mark.parametrize("row", [row for row in JOB_VIEWS if issubclass(row.view, FactView)], ids=lambda r: r.view.kind)
def test_what_changed_is_enough_to_have_every_frame(row: Row, made: Any) -> None:
    view = made(row)
    stored = json.loads(view._frames)
    frames = [stored["first"]]
    for change in stored["changes"]:
        frame = list(frames[-1])
        for place, value in zip(change[::2], change[1::2], strict=True):
            frame[place] = value
        frames.append(frame)
    assert frames == view._all_frames()


@pytest.mark.parametrize(
    ("view_class", "caption", "num_rows"),
    [(JobView, "Subtasks", 21), (WatermarkView, "Watermarks of channels", 110), (AlignmentView, "Channels", 110)],
)
def test_of_more_than_a_picture_holds_the_table_has_all(view_class: Any, caption: str, num_rows: int) -> None:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=600), 10)
    environment.from_collection(range(40)).rebalance().map(str).rebalance().sink(bool)
    with Simulation(environment) as simulation:
        view = view_class(simulation.run(max_steps=30).snapshot())
    (rows,) = [rows for found, _, rows in view._topology["tables"] if found == caption]
    assert len(rows) == num_rows
    facts, model = list(view.facts(view.model()).values()), view.model()
    words = view.text_of(model, "", "")
    for row in rows:
        assert row[0] in words
        said = [facts[cell[0]] for cell in row if isinstance(cell, list) and len(cell) == 1]
        assert all(str(value) in words for value in said)
    view.close()
