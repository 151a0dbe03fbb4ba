"""What the README shows runs, one example after the other as somebody would type them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_examples_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(examples) >= 2
    session: dict[str, Any] = {}
    for example in examples:
        exec(compile(example, "README.md", "exec"), session)
        printed = capsys.readouterr().out.splitlines()
        if "sink(print)" in example:
            assert [line for line in printed if line.isdigit()] == ["0", "1", "4", "9", "16", "25"]
    assert "backlog" in repr(session["QueueView"](session["run"]))  # the job that is watched runs on
    session["run"].cancel()


def test_the_files_it_links_to_are_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
