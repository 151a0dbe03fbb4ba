"""Figures for paper say in words what they draw, and stand on light and on dark pages."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import LONG
from refimpl.task import IterableReader
from widgets import Curve, Panel, PaperFigure, Recording, ThroughputView, throughput_by_timeout

SVG = "{http://www.w3.org/2000/svg}"


def two_panels(**changes):
    curves = [
        Curve("old <way>", [1, 10, 100], [5, None, 2_500], [4, 4, 2_000], [6, 6, 3_000]),
        Curve("new way", [1, 10, 100], [9, 8, 7], look=1),
    ]
    first = Panel("buffers", "records a second", curves, "Before", is_log_x=True, marks=[(10, "slow")])
    second = Panel("seconds", "ms", [Curve("late", [0, 1], [3, 4])], is_log_y=True)
    return PaperFigure(**{"title": "Two & ways", "panels": [first, second], **changes})


def test_the_words_have_the_ends_the_extremes_and_the_marks_of_every_curve():
    assert str(two_panels()).splitlines() == [
        "Two & ways",
        "Before: records a second, by buffers",
        "  old <way>: from 5 at 1 to 2,500 at 100, between 5 and 2,500",
        "  new way: from 9 at 1 to 7 at 100, between 7 and 9",
        "  at 10: slow",
        "ms, by seconds",
        "  late: from 3 at 0 to 4 at 1, between 3 and 4",
    ]


def test_the_drawing_is_named_described_and_self_contained():
    svg = two_panels().svg()
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "Two & ways"
    assert root.find(f"{SVG}desc").text == two_panels().alt
    assert not re.search(r"(href|url\()=?[\"']?https?:", svg)
    assert two_panels().svg() == svg
    identity = root.get("id")
    assert all(rule.lstrip().startswith((f"#{identity}", "@media")) for rule in re.findall(r"[^{};]+\{", root[2].text))


def test_without_a_theme_it_follows_the_page_and_with_one_it_does_not():
    follows, light, dark = (two_panels().svg(theme) for theme in (None, "light", "dark"))
    assert "prefers-color-scheme:dark" in follows
    drawn = follows[follows.index("</style>") :]
    assert not re.findall(r"(?:fill|stroke): ?#[0-9a-f]{6}", drawn)
    assert {"--ink", "--blue", "--red", "--paper"} <= set(re.findall(r"var\((--\w+)\)", drawn))
    assert "var(" not in light + dark
    assert "#ffffff" in light
    assert "#ffffff" not in dark


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_on_the_ground_have_contrast(theme):
    figure = two_panels().figure(theme)
    axes = figure.axes[0]
    words = [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels(), *axes.get_legend().get_texts()]
    ground = _luminance(figure.get_facecolor())
    for each in words:
        light, dark = sorted([_luminance(each.get_color()), ground], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, each
    assert len({line.get_linestyle() for line in axes.get_lines()[:2]}) == 2  # told apart without colour


def _luminance(color):
    from matplotlib.colors import to_rgb

    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_what_is_drawn_is_what_was_given():
    first, second = two_panels().figure().axes
    assert [list(line.get_xdata()) for line in first.get_lines()[:2]] == [[1, 10, 100]] * 2
    assert list(first.get_lines()[1].get_ydata()) == [9, 8, 7]
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["old <way>", "new way"]
    assert (first.get_xscale(), second.get_yscale()) == ("log", "log")


def test_curves_of_one_name_are_named_once():
    curves = [Curve("others", [0, 1], [1, n]) for n in range(3)]
    figure = PaperFigure("Readers", [Panel("s", "buffers", [*curves, Curve("slow", [0, 1], [1, 0], look=1)])])
    assert [text.get_text() for text in figure.figure().axes[0].get_legend().get_texts()] == ["others", "slow"]


@pytest.mark.parametrize(("name", "head"), [("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")])
def test_it_is_saved_with_its_words(name, head, tmp_path):
    two_panels().save(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    assert data.startswith(head)
    assert b"Two " in data


def test_wrong_use_is_refused(tmp_path):
    with pytest.raises(LocalUsageError, match=r"a figure is saved as \.svg, \.png, \.pdf"):
        two_panels().save(tmp_path / "a.gif")
    with pytest.raises(LocalUsageError, match="theme='drak': it is one of 'light', 'dark'"):
        two_panels().save(tmp_path / "a.png", theme="drak")
    with pytest.raises(LocalUsageError, match="there is no curve to draw"):
        PaperFigure("Nothing", [Panel("x", "y", [])])
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_keeps_words_and_drawing():
    assert two_panels()._repr_mimebundle_() == {"text/plain": two_panels().alt, "image/svg+xml": two_panels().svg()}


# -- what is put on paper ----------------------------------------------------------------------------


def numbers(timeout_ms=100, count=None):
    environment = StreamEnvironment(Config(segment_size_bytes=256, num_buffers=60, buffer_timeout_ms=timeout_ms), 2)
    values = itertools.count() if count is None else range(count)
    environment.source(lambda i, _: IterableReader(values if i else ()), "numbers", LONG).rebalance().sink(bool, "sink")
    return environment


def test_the_rates_of_a_view_are_put_on_paper():
    with Simulation(numbers(count=300), seed=1) as simulation:
        view = ThroughputView(Recording.of(simulation), title="Numbers")
    figure, series = view.paper(), view.model()["series"]
    assert [curve.name for curve in figure.panels[0].curves] == [each["name"] for each in series] == ["numbers", "sink"]
    assert [list(curve.ys) for curve in figure.panels[0].curves] == [each["rates_per_s"] for each in series]
    assert figure.alt.startswith("Numbers\nrecords a second, by seconds\n  numbers: from ")
    view.close()


@pytest.mark.slow
def test_throughput_is_measured_for_every_timeout():
    said = []
    figure = throughput_by_timeout(numbers, "sink", (1, 20), seconds=0.1, rounds=2, say=said.append)
    (curve,) = figure.panels[0].curves
    assert (curve.name, list(curve.xs)) == ("sink", [1, 20])
    assert all(0 < low <= middle <= high for low, middle, high in zip(curve.lows, curve.ys, curve.highs, strict=True))
    assert said == [f"buffer timeout {ms} ms, round {n} of 2" for n in (1, 2) for ms in (1, 20)]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"timeouts_ms": ()}, "at least one of each"), ({"rounds": 0}, "at least one of each"),
        ({"seconds": 0}, "at most 600 seconds"), ({"name": "snik"}, "no operator 'snik'; there are numbers, sink"),
        ({"make_job": lambda ms: numbers(ms, 10), "seconds": 1.0}, "the job ended in less than 1.5 s"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused(arguments, complaint):
    given = {"make_job": numbers, "name": "sink", "seconds": 0.02, "say": lambda _: None, **arguments}
    with pytest.raises(LocalUsageError, match=re.escape(complaint)):
        throughput_by_timeout(**given)


def test_half_a_character_in_a_name_is_replaced(tmp_path):
    curve = Curve("half \ud800", [1, 2], [3, 4])
    figure = PaperFigure("why \udc80", [Panel("x \ud800", "y \ud800", [curve], marks=[(1, "\ud800")])])
    assert "half \N{REPLACEMENT CHARACTER}: from" in figure.alt.encode().decode()
    for name in ("a.svg", "a.png", "a.pdf"):
        figure.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1_000


@pytest.mark.parametrize(
    ("title", "panels", "message"),
    [
        (5, [], "title=5 cannot work: a string"),
        ("t", 5, "panels=5 cannot work: a list of `Panel`"),
        ("t", [5], r"panels=\[5\] cannot work"),
        ("t", [Panel("x", "y", [Curve("a", [1, 2], [1])])], "curve 'a' has 2 xs and 1 ys"),
        ("t", [Panel("x", "y", [Curve("a", [1], [1], [1, 2], [1])])], "curve 'a' has .* other lows"),
    ],
)
def test_what_cannot_be_drawn_is_refused(title, panels, message):
    with pytest.raises(LocalUsageError, match=message):
        PaperFigure(title, panels)


def test_a_panel_without_curves_stands_empty_and_a_dollar_is_a_dollar():
    curves = [Curve(r"$\frac$", [1, 2], [3, 4]), Curve("b", [1, 2], [3, 4])]
    figure = PaperFigure("t", [Panel("x", "y", [], is_log_x=True), Panel("in $", "of $", curves)])
    assert r"$\frac$" in figure.svg().partition("</desc>")[2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"make_job": 5}, "make_job=5 makes no job"),
        ({"make_job": str}, r"make_job\(1\) gave a str, and not a StreamEnvironment"),
        ({"timeouts_ms": 5}, "timeouts_ms=5, .*at least one of each"),
        ({"timeouts_ms": ["x"]}, "timeouts_ms='x' cannot work"),
        ({"seconds": "x"}, "seconds='x': at least"),
        ({"rounds": "x"}, "rounds='x', .*at least one of each"),
        ({"num_task_managers": 0}, "num_task_managers=0 cannot work"),
    ],
)
def test_a_measurement_that_cannot_be_is_refused(given, message):
    with pytest.raises(LocalUsageError, match=message):
        throughput_by_timeout(**{"make_job": str, "name": "sink", "timeouts_ms": (1,), "say": len, **given})
