"""The race: each second says what the runs did in it, curves and words alike, and who wins."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from refimpl.errors import LocalUsageError
from refimpl.rivals import INNOCENT, measure, wins
from tests.support.small_races import small_race
from widgets import RaceView


@pytest.fixture
def view():
    view = RaceView(small_race())
    yield view
    view.close()


def test_each_second_says_what_each_system_did_in_it(view):
    for second, (moment, _) in enumerate(view.recording.moments):
        model = view.model_of(moment, "", view._known)
        facts, words = view.facts(model), view.text_of(model, "A race", "")
        for number, run in enumerate(small_race()):
            source, innocent = run.rates()[second], run.rates(INNOCENT, of_sink=True)[second]
            assert facts[f"{number} source"].startswith(f"source {source:g} /s")
            assert facts[f"{number} innocent"] == f"innocent {innocent:g} /s"
            inside = run.samples[10 * second + 9].num_inside
            assert facts[f"{number} inside"] == f"{inside} inside"
            assert f"source {source:g} /s" in words
            assert f"{inside} inside" in words


def test_the_curves_are_the_rates_of_the_runs(view):
    model = view.model()
    heights = [
        re.findall(r"[ML][\d.]+ ([\d.]+)", path)
        for path in re.findall(r'<path d="([^"]+)" class="rate s0"', view.svg())
    ]
    curves = [each for each in heights if len(each) > 2]  # the key has a short line
    assert len(curves) == len(small_race())
    for drawn, run in zip(curves, small_race(), strict=True):
        heights_px = [round(52 * min(1.1, rate / model["most_per_s"])) for rate in run.rates()]
        assert len({float(top) + height for top, height in zip(drawn, heights_px, strict=True)}) == 1
    assert model["allowed_per_s"] == [200] * 2 + [50] * 10 + [200] * 4


def test_the_cursor_goes_with_the_second_and_the_view_begins_in_the_worst_phase(view):
    assert view.model()["phase"] == "held"
    first, last = (view.facts(view.model_of(view.recording.moments[at][0], "", view._known)) for at in (0, -1))
    assert (first["second"], last["second"]) == (0, 15)


def test_who_wins_is_said_in_words_and_in_the_picture(view):
    found = wins({run.name: measure(run) for run in small_race()})
    assert [win.names for win in found if win.what == "has the least inside"] == [("ATM, per link",)]
    for win in found:
        assert f"{win.what}: {' · '.join(win.names) or 'nobody'} ({win.words})" in view.text()
    assert "has the least inside: ATM, per link" in view.svg()


def test_what_nobody_ever_does_nobody_wins():
    one = measure(small_race()[0])
    phases = tuple(replace(phase, reaction_s=float("inf")) for phase in one.phases)
    (win,) = [each for each in wins({"one": replace(one, phases=phases)}) if each.what == "reacts first"]
    assert (win.names, win.words) == ((), "never")


def test_a_race_its_runs_and_one_run_alone_can_be_given():
    runs = small_race()
    alone = RaceView(runs[:1])
    assert alone.model()["wins"] == []
    assert RaceView(SimpleNamespace(runs={run.name: run for run in runs})).text() == RaceView(list(runs)).text()


@pytest.mark.parametrize("given", [[], {}, 3, "race", [1]], ids=str)
def test_what_is_no_race_is_refused(given):
    with pytest.raises(LocalUsageError, match="is no race"):
        RaceView(given)


def test_runs_of_different_workloads_are_no_race():
    one, other = small_race()
    with pytest.raises(LocalUsageError, match="different phases"):
        RaceView([one, replace(other, phases=other.phases[:2])])
