"""Progress is told where somebody looks, and nothing of it stays in a notebook."""

from __future__ import annotations

import io
import os
import sys
import threading
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from course.data import progress_bar
from course.data.progress_bar import shows_progress

CELL = """\
import sys
from course.data.progress_bar import _place
say, _ = _place(sys.stderr, is_given=False)
say("1 of 2 tasks"); say("2 of 2 tasks"); say("")
"""


class Lines(io.StringIO):
    """A stream that says when something was written."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.written = threading.Event()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


@pytest.mark.spark
@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_takes_long_is_told_and_a_terminal_is_left_clean(
    spark: Any, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_bar, "_QUIET_SECONDS", 0.0)
    stream = Lines(is_terminal=is_terminal)
    with shows_progress(spark, "counting", stream):
        assert stream.written.wait(120)
    assert "counting: 0 s" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K" if is_terminal else "0 s\n")


def outputs_in_a_kernel(**environment: str) -> list[Any]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    client = NotebookClient(notebook, timeout=60, kernel_name="python3")
    client.execute(env={**inherited, "PYTHONPATH": os.pathsep.join(sys.path), **environment})
    return notebook.cells[0].outputs


@pytest.mark.slow
def test_a_notebook_shows_it_while_it_lasts_and_keeps_none_of_it() -> None:
    (shown,) = outputs_in_a_kernel()
    assert (shown.output_type, shown.data) == ("display_data", {})
    assert outputs_in_a_kernel(PYTEST_CURRENT_TEST="build") == []
