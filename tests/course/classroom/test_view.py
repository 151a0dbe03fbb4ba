"""The dashboard in a notebook: a clean end, also where there is no class to show."""

from __future__ import annotations

import gc
import sys

import pytest

from course.classroom import ClassView
from course.classroom.class_file import ClassError, ClassFile


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "class.sqlite"
    ClassFile(path, create=True, title="Tuesday").close()
    return path


def test_a_view_that_is_refused_leaves_nothing_behind(tmp_path, monkeypatch):
    poem = tmp_path / "poem.sqlite"
    poem.write_text("no class at all " * 99, encoding="utf-8")
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: ignored.append(repr(found.exc_value)))
    for wrong in (tmp_path / "none.sqlite", poem):
        with pytest.raises(ClassError):
            ClassView(wrong)
    gc.collect()
    assert ignored == []


@pytest.mark.parametrize("has_gone", [False, True])
def test_a_closed_view_says_what_it_said_last(path, has_gone):
    view = ClassView(path)
    view.decide(kind="unlock", exercise="3.1", rung=3)
    words, model = view.text(), view.model()
    if has_gone:
        path.unlink()
    view.close()
    view.close()
    assert view.text() == words
    assert view.model()["exercises"] == model["exercises"]
    assert repr(view) == "ClassView, closed"
    assert view._repr_mimebundle_() == ({"text/plain": "ClassView, closed"}, {})
    with pytest.raises(ClassError, match="closed"):
        view.decide(kind="unlock", exercise="3.1", rung=3)
