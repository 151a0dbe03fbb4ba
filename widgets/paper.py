"""Figures for paper: the curves of an experiment that is over, drawn by matplotlib, and the same numbers in words.

For what moves there are the views; matplotlib is too slow for them, and holds the interpreter while it draws. A figure
here is made once, when all is measured. It has a light and a dark form in the colours of the views, or, as SVG, follows
the page it stands on. Curves differ in colour and dash, and are named.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refimpl.errors import LocalUsageError
from widgets.base import path_of, whole_number
from widgets.svg import allowed, escape, picture_id, sendable, static_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "Curve", "Panel", "PaperFigure"]

_THEMES = ("light", "dark")
FORMATS = (".svg", ".png", ".pdf")
_LOOKS = (
    ("blue", "-", "o"), ("red", (0, (9, 4)), "s"), ("green", (0, (3, 3)), "^"), ("purple", (0, (12, 3, 3, 3)), "D"),
    ("ink", (0, (1, 2)), "v"), ("orange", (0, (6, 6)), "P"),
)  # fmt: skip
_FEW_POINTS = 6


@dataclass(frozen=True, slots=True)
class Curve:
    """Values `ys` at `xs`; `lows` and `highs` are the middle half of what was measured, if it was more than once.

    A `None` among `ys` is a gap. `look` is the number of a colour and dash; curves of one look are named once.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float | None]
    lows: Sequence[float] | None = None
    highs: Sequence[float] | None = None
    look: int = 0


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves over one axis; `marks` are moments with a word, as (x, word)."""

    x_label: str
    y_label: str
    curves: Sequence[Curve]
    title: str = ""
    is_log_x: bool = False
    is_log_y: bool = False
    marks: Sequence[tuple[float, str]] = ()


class PaperFigure:
    """Panels side by side, `columns` in a row; `is_y_shared` gives all the same height of values.

    In a notebook it shows itself; `alt` says in words what is to be seen, and goes into every file it is saved to.

        figure.save("rates.svg"); figure.save("rates.pdf"); figure.save("slide.png", theme="dark")

    Raises:
        LocalUsageError: there is nothing to draw, or it cannot be drawn.
    """

    def __init__(self, title: str, panels: Sequence[Panel], columns: int = 3, is_y_shared: bool = False) -> None:
        _check(title, panels)
        if not any(curve.xs for panel in panels for curve in panel.curves):
            raise LocalUsageError(f"{title}: there is no curve to draw; measure something first")
        self.title = str(sendable(title))
        self.panels = tuple(panels)
        self._columns = min(whole_number("columns", columns, 1, 1_000), len(panels))
        self._is_y_shared = is_y_shared

    @property
    def alt(self) -> str:
        """The figure in words."""
        return str(sendable("\n".join([self.title, *(line for panel in self.panels for line in _words(panel))])))

    def __repr__(self) -> str:
        return self.alt

    def figure(self, theme: str = "light") -> Figure:
        """The figure of matplotlib, in the colours of a theme.

        Raises:
            LocalUsageError: the theme is neither "light" nor "dark".
        """
        import matplotlib as mpl
        from matplotlib.figure import Figure

        if theme not in _THEMES:
            raise LocalUsageError(f"theme={theme!r}: it is one of {', '.join(map(repr, _THEMES))}")
        colors = _colors()[theme]
        rows = -(-len(self.panels) // self._columns)
        with mpl.rc_context({"font.size": 9}):
            figure = Figure(figsize=(3.6 * self._columns, 2.7 * rows), layout="constrained", facecolor=colors["paper"])
            grid = figure.subplots(rows, self._columns, squeeze=False, sharey=self._is_y_shared)
            for axes, panel in zip(grid.flat, self.panels, strict=False):
                _draw(axes, panel, colors)
            for axes in list(grid.flat)[len(self.panels) :]:
                axes.set_visible(False)
        return figure

    def svg(self, theme: str | None = None) -> str:
        """One SVG document, named and described; without a theme it follows the page."""
        id_ = picture_id("paper", self.alt)
        drawn = _svg_of(self.figure(theme or "light"), id_)
        styles = f"#{id_} *{{stroke-linejoin:round;stroke-linecap:butt}}"
        if theme is None:
            for name, value in _colors()["light"].items():
                drawn = drawn.replace(value, f"var(--{name})")
            styles += "".join(_variables()).replace("#ID", f"#{id_}")
        head = (
            f'id="{id_}" role="img" aria-labelledby="{id_}-title {id_}-desc"><title id="{id_}-title">'
            f'{escape(self.title)}</title><desc id="{id_}-desc">{escape(self.alt)}</desc><style>{styles}</style>'
        )
        return re.sub(r"(<svg [^>]*)>", lambda found: f"{found[1]} {head}", drawn, count=1)

    def save(self, path: str | Path, theme: str | None = None) -> None:
        """Write it as .svg, .png or .pdf. Without a theme SVG follows the page it is on, the others are light.

        Raises:
            LocalUsageError: no such theme, or another kind of file.
        """
        path = path_of(path)
        if path.suffix not in FORMATS:
            raise LocalUsageError(f"{path.name}: a figure is saved as {', '.join(FORMATS)}")
        if path.suffix == ".svg":
            path.write_text(self.svg(theme), encoding="utf-8")
            return
        words = {"Title": self.title, "Description" if path.suffix == ".png" else "Subject": self.alt}
        self.figure(theme or "light").savefig(path, dpi=200, metadata=words)

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, str]:
        return {"text/plain": self.alt, "image/svg+xml": self.svg()}


# -- drawing ---------------------------------------------------------------------------------------


def _variables() -> list[str]:
    """The lines of `picture.css` that name the colours, those for light pages first."""
    return [line for line in static_text("picture.css").splitlines() if "--ink:" in line]


def _colors() -> dict[str, dict[str, str]]:
    """The colours of each theme, by name; what the dark one does not change is as in the light one."""
    light, dark = (dict(re.findall(r"--(\w+):(#\w+)", line)) for line in _variables())
    return {"light": light, "dark": {**light, **dark}}


def _check(title: object, panels: object) -> None:
    if not isinstance(title, str):
        raise LocalUsageError(f"title={title!r} cannot work: a string")
    if not isinstance(panels, Sequence) or not all(isinstance(panel, Panel) for panel in panels):
        raise LocalUsageError(f"panels={panels!r} cannot work: a list of `Panel`")
    for panel in panels:
        for curve in panel.curves:
            lengths = {len(values) for values in (curve.xs, curve.ys, curve.lows, curve.highs) if values is not None}
            if len(lengths) > 1:
                words = f"{len(curve.xs)} xs and {len(curve.ys)} ys, or other lows or highs"
                raise LocalUsageError(f"curve {curve.name!r} has {words}; each x has one of each")


def _label(words: str) -> str:
    """As it is: between two dollar signs matplotlib would read a formula."""
    return allowed(words).replace("$", r"\$")


def _draw(axes: Axes, panel: Panel, colors: dict[str, str]) -> None:
    axes.set_facecolor(colors["paper"])
    axes.tick_params(which="both", colors=colors["soft"], labelcolor=colors["ink"])
    for side in axes.spines.values():
        side.set_edgecolor(colors["soft"])
    named: set[str] = set()
    for curve in panel.curves:
        color, dash, marker = _LOOKS[curve.look % len(_LOOKS)]
        ys = [float("nan") if y is None else y for y in curve.ys]
        is_few = len(curve.xs) <= 2 * _FEW_POINTS
        axes.plot(
            curve.xs,
            ys,
            color=colors[color],
            linestyle=dash,
            linewidth=1.8,
            marker=marker if is_few else None,
            markersize=4,
            label=_label(curve.name) if curve.name not in named else None,
        )
        named.add(curve.name)
        if curve.lows is not None and curve.highs is not None:
            axes.fill_between(curve.xs, curve.lows, curve.highs, color=colors[color], alpha=0.25, linewidth=0)
    for x, word in panel.marks:
        axes.axvline(x, color=colors["soft"], linewidth=1, linestyle=":")
        axes.annotate(
            _label(word),
            (x, 1),
            (2, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            fontsize=7,
            color=colors["ink"],
        )
    if panel.is_log_x:
        axes.set_xscale("log")
        points = panel.curves[0].xs if panel.curves else ()
        if 0 < len(points) <= _FEW_POINTS:
            axes.minorticks_off()
            axes.set_xticks(points, [f"{point:g}" for point in points])
    if panel.is_log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_title(_label(panel.title), color=colors["ink"])
    axes.set_xlabel(_label(panel.x_label), color=colors["ink"])
    axes.set_ylabel(_label(panel.y_label), color=colors["ink"])
    if len(named) > 1:
        axes.legend(frameon=False, labelcolor=colors["ink"], fontsize=8)


def _svg_of(figure: Figure, salt: str) -> str:
    """What matplotlib writes, without its head and its style, which would hold for the whole page."""
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    drawn = re.sub(r"<style type=\"text/css\">.*?</style>", "", file.getvalue(), count=1, flags=re.DOTALL)
    return drawn[drawn.index("<svg ") :]


# -- words -----------------------------------------------------------------------------------------


def _words(panel: Panel) -> list[str]:
    head = f"{panel.title}: " if panel.title else ""
    lines = [f"{head}{panel.y_label}, by {panel.x_label}"]
    for curve in panel.curves:
        known = [(x, y) for x, y in zip(curve.xs, curve.ys, strict=True) if y is not None]
        if known:
            (x_first, first), (x_last, last) = known[0], known[-1]
            low, high = min(y for _, y in known), max(y for _, y in known)
            ends = f"from {_number(first)} at {x_first:g} to {_number(last)} at {x_last:g}"
            lines.append(f"  {curve.name}: {ends}, between {_number(low)} and {_number(high)}")
    return lines + [f"  at {x:g}: {word}" for x, word in panel.marks]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
