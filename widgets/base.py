"""What every view has in common: its three faces, its options and its end.

A view shows one thing in three ways, all made from one model: live in the browser, as a picture that
needs no kernel (SVG), and in words. A stored notebook keeps the last two, so nbval compares them, and
a page without a kernel shows the picture.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from refimpl.errors import LocalUsageError
from widgets.svg import sendable, static_text

__all__ = [
    "View",
    "chosen_options",
    "front_end",
    "json_text",
    "path_of",
    "text_of_file",
    "what_was_meant",
    "whole_number",
]


def front_end(name: str) -> str:
    """One self-contained module: the shared player and its controls, then the view's drawing; it imports nothing."""
    return "\n".join(static_text(f"{part}.js") for part in ("player", "stepper", "control", "members", name))


def chosen_options(view: str, given: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """The options of a view: `defaults` with `given` laid over them.

    Raises:
        LocalUsageError: an option the view does not have; names the one that was probably meant.
    """
    for name in given:
        if name not in defaults:
            meant = what_was_meant(name, defaults)
            raise LocalUsageError(f"{view} has no option {name!r}{meant} Its options: {', '.join(sorted(defaults))}")
    return {**defaults, **given}


def what_was_meant(word: object, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a word: what it looks like, if it looks like any of those that are known."""
    near = difflib.get_close_matches(str(word), list(known), 1, 0.4)
    return f"; did you mean {near[0]!r}?" if near else "."


def whole_number(name: str, value: object, least: int, most: int) -> int:
    """`value` if it is a whole number from `least` to `most`.

    Raises:
        LocalUsageError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise LocalUsageError(f"{name}={value!r} cannot work: a whole number from {least} to {most}")
    return value


def json_text(data: Any, **how: Any) -> str:
    """`data` as JSON that a file can hold: as it is read if possible, else with every odd character as its number."""
    words = json.dumps(data, ensure_ascii=False, **how)
    return words if sendable(words) == words else json.dumps(data, **how)


def path_of(path: object) -> Path:
    """The path of a file that was given as one, or in words.

    Raises:
        LocalUsageError: it is neither.
    """
    if not isinstance(path, str | os.PathLike):
        raise LocalUsageError(f"path={path!r} cannot work: the path of a file")
    return Path(path)


def text_of_file(path: str | Path) -> str:
    """What is in a file.

    Raises:
        LocalUsageError: it is no text.
        OSError: it cannot be read.
    """
    file = path_of(path)
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise LocalUsageError(f"{file.name} is not a text: {error}") from error


class View(anywidget.AnyWidget):
    """A picture of the engine in a notebook.

    Subclasses give `text()` and `svg()`, and a JavaScript module.

    Ownership: a view never owns the run it shows; `close` ends the view, not the job.
    """

    _css = static_text("player.css") + static_text("stepper.css")
    title = traitlets.Unicode().tag(sync=True)
    _mode = traitlets.Unicode("still").tag(sync=True)
    _picture = traitlets.Unicode().tag(sync=True)
    _topology = traitlets.Dict().tag(sync=True)
    _frames = traitlets.Unicode("[]").tag(sync=True)
    _at = traitlets.Int(0).tag(sync=True)
    _controls = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**{name: sendable(value) for name, value in traits.items()})
        self.on_msg(self._on_message)

    def text(self) -> str:
        """The picture in words."""
        raise NotImplementedError

    def svg(self) -> str:
        """The picture as it is now, as one SVG document."""
        raise NotImplementedError

    def send(self, content: Any, buffers: Any = None) -> None:
        """Tell the browser; names and errors are the user's, and may hold what no message can."""
        super().send(sendable(content), buffers)

    def close(self) -> None:
        """End the view in the browser; its words and its picture stay."""
        super().close()
        self.__dict__.pop("_repr_mimebundle_", None)  # ipywidgets lays a None over ours

    def __repr__(self) -> str:
        return str(sendable(self.text()))

    def _repr_mimebundle_(self, **_kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        still = {"text/plain": repr(self), "image/svg+xml": self.svg()}
        if self.comm is None:  # closed: what is left is what needs no kernel
            return still, {}
        data, metadata = super()._repr_mimebundle_() or ({}, {})
        return {**data, **still}, metadata

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        """What the browser asks for. Runs on whichever thread ipykernel hands it: take no lock, print nothing."""
