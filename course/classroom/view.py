"""`ClassView`: the dashboard in a notebook, from the same model and by the same drawing as the page.

It reads the class file itself, so it needs no server and no key: who can open the file owns the class.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import ExitStack, closing
from importlib import resources
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from course.classroom.class_file import ClassError, ClassFile, default_path
from course.classroom.model import class_model
from course.classroom.orders import ordered, said
from course.classroom.roll import Roll
from course.classroom.words import class_text

__all__ = ["ClassView"]

_LOOK_S = 1.0


def _static(name: str) -> str:
    return resources.files("course.classroom").joinpath("static", name).read_text(encoding="utf-8")


class ClassView(anywidget.AnyWidget):
    """The class in this file (by default the one that `sluice class serve` uses), live.

        ClassView()
        ClassView("tuesday.sqlite", lessons=[0, 3])

    Nothing is read while nobody looks. `text()` is the same in words, which is what a stored notebook keeps.

    Raises:
        ClassError: there is no class in this file.
    """

    _esm = _static("class_view.js")
    _css = _static("class_view.css")
    _model = traitlets.Unicode().tag(sync=True)
    _is_made = False  # on the class: a view that was refused is closed, too

    def __init__(self, path: str | Path | None = None, lessons: list[int] | None = None) -> None:
        with ExitStack() as left_open:
            self._file = left_open.enter_context(closing(ClassFile(Path(path) if path is not None else default_path())))
            self._reading = left_open.enter_context(closing(ClassFile(self._file.path)))
            self._roll = Roll(self._reading)
            self._lessons = frozenset(lessons or ())
            self._lock = threading.Lock()  # cells and the pump share the file
            self._watched = threading.Event()
            self._ended = threading.Event()
            self._pump: threading.Thread | None = None
            self._last: dict[str, Any] | None = None
            super().__init__(_model=self._read())
            left_open.pop_all()
        self._is_made = True
        self.on_msg(self._on_message)

    def model(self) -> dict[str, Any]:
        """The class now, as plain data; of a closed view as it was when it was closed."""
        with self._lock:
            return self._last if self._last is not None else self._look_up()

    def text(self) -> str:
        """The class now, in words; of a closed view as it was when it was closed."""
        return class_text(self.model())

    def decide(self, **order: Any) -> str:
        """Decide something for all, and return what was done as a sentence.

            view.decide(kind="unlock", exercise="3.1", rung=3)

        Raises:
            ClassError: there is no such decision, or the view is closed.
        """
        if self._ended.is_set():
            raise ClassError("this view is closed; make another one")
        checked = ordered(order)
        with self._lock, self._file.transaction():
            self._file.add_action(checked, time.time())
        self._model = self._read()
        return said(checked)

    def close(self) -> None:
        """End the view; the class goes on."""
        if self._is_made and not self._ended.is_set():
            self._ended.set()
            self._watched.set()
            if self._pump is not None:
                self._pump.join()
            with self._lock:
                try:
                    self._last = self._look_up()
                except (sqlite3.Error, ClassError):  # the file has gone: what was seen last is left
                    self._last = json.loads(self._model)  # with "trouble", which no words are made of
                self._reading.close()
                self._file.close()
        super().close()
        self.__dict__.pop("_repr_mimebundle_", None)  # ipywidgets lays a None over ours

    def __repr__(self) -> str:
        return "ClassView, closed" if self._ended.is_set() else self.text()

    def _repr_mimebundle_(self, **_kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.comm is None:
            return {"text/plain": repr(self)}, {}
        data, metadata = super()._repr_mimebundle_() or ({}, {})
        return {**data, "text/plain": repr(self)}, metadata

    def _look_up(self) -> dict[str, Any]:
        self._roll.refresh()
        return class_model(self._roll, time.time(), self._lessons)

    def _read(self) -> str:
        return json.dumps(self.model() | {"trouble": ""}, separators=(",", ":"))

    def _look(self) -> None:
        while not self._ended.is_set():
            self._watched.wait()
            if not self._ended.is_set():
                self._model = self._read()  # the only writer while a view is watched, but for a decision
            self._ended.wait(_LOOK_S)

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        match content.get("type"):
            case "visible":
                self._watched.set()
                if self._pump is None:
                    self._pump = threading.Thread(target=self._look, name="class-view", daemon=True)
                    self._pump.start()
            case "hidden":
                self._watched.clear()
            case "order":
                try:
                    answer = self.decide(**content["order"])
                except (ClassError, TypeError, KeyError) as error:
                    answer = f"✗ {error}"
                self.send({"type": "said", "said": answer})
