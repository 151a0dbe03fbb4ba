"""A lesson's source becomes the same notebook every time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from course.author.build import BuildError, build, parse
from tests.support.polling import until

ROOT = Path(__file__).resolve().parents[3]

SMALL = """\
# %% [markdown] title name=top
# # A small lesson
#
# With a paragraph.
# %% setup
from course import check, lesson

L = lesson(0)
# %% exercise id=0.1
# your cell
# %% check
check("0.1")
# %% figure tags=raises-exception name=boom
1 / 0
# %% receipt
L.receipt()
"""


def test_cells_have_roles_names_and_text():
    cells = parse(SMALL, "small.py")
    kinds = [(cell.kind, cell.role) for cell in cells][:3]
    assert kinds == [("markdown", "title"), ("code", "setup"), ("code", "exercise")]
    assert cells[0].source == "# A small lesson\n\nWith a paragraph."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no cell mark"),
        ("x = 1\n# %% setup\n", "line 1: text before"),
        ("# %% nonsense\n", "role 'nonsense'"),
        ("# %% exercise\n", "needs id="),
        ("# %% exercise id=9.9\n", "needs id="),
        ("# %% check colour=red\n", "cannot read 'colour=red'"),
        ("# %% [markdown] why\nno comment\n", "does not start with '#'"),
    ],
)
def test_a_malformed_source_is_refused_with_its_place(text, said):
    with pytest.raises(BuildError, match=said):
        parse(text, "small.py")


@pytest.mark.slow
def test_two_builds_are_byte_identical_and_hold_no_trace_of_the_machine():
    first, second = (build(SMALL, "small.py") for _ in range(2))
    assert first == second
    notebook = json.loads(first)
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    }
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4, 5]
    assert [cell["id"] for cell in notebook["cells"]] == [
        "top",
        "setup-02",
        "exercise-0-1",
        "check-04",
        "boom",
        "receipt-06",
    ]
    assert 'raise NotImplementedError("0.1")' in "".join(code[1]["source"])
    assert "not started" in "".join(code[2]["outputs"][0]["data"]["text/plain"])
    assert code[2]["outputs"][0]["data"]["application/vnd.sluice.check+json"]["status"] == "not_started"
    assert code[3]["outputs"][0]["traceback"] == ["ZeroDivisionError: division by zero"]
    assert "/home" not in first
    assert "/tmp" not in first


ASKED = """\
# %% setup tags=only-here
from course import lesson

L = lesson(0)
# %% predict
L.predict("0.a")
# %% [markdown] text
# Between.
# %% figure name=shown
import math

print(math.pi)
# %% figure name=other
print(1)
"""


@pytest.mark.slow
def test_what_answers_a_prediction_is_folded_and_what_holds_for_one_machine_is_left_out():
    cells = {cell["id"]: cell for cell in json.loads(build(ASKED, "asked.py"))["cells"]}
    assert cells["setup-01"]["outputs"] == []
    assert "".join(cells["shown"]["source"]) == 'import math\n\nL.asked("0.a")\n\nprint(math.pi)'
    assert cells["shown"]["metadata"] == {
        "collapsed": True, "jupyter": {"outputs_hidden": True}, "tags": ["figure", "hide-output"]
    }  # fmt: skip
    question, number = cells["shown"]["outputs"]
    assert "".join(question["data"]["text/plain"]) == "0.a  Ten flights go in. How many values leave the map?"
    assert "".join(number["text"]).startswith("3.14")
    assert cells["other"]["metadata"] == {"tags": ["figure"]}


@pytest.mark.slow
def test_the_solved_twin_passes():
    notebook = json.loads(build(SMALL, "small.py", solved=True))
    check = next(cell for cell in notebook["cells"] if cell["id"] == "check-04")
    assert check["outputs"][0]["data"]["application/vnd.sluice.check+json"]["status"] == "passed"
    receipt = notebook["cells"][-1]
    assert "0.1 passed, 8 rules" in "".join(receipt["outputs"][0]["data"]["text/plain"])


@pytest.mark.slow
def test_a_cell_that_fails_stops_the_build():
    with pytest.raises(BuildError, match="ZeroDivisionError"):
        build("# %% figure\n1 / 0\n", "small.py")


ENDLESS = """# %% [markdown] title
# # Waiting
# %% text
import os, time
with open(FILE, "w") as file:
    file.write(str(os.getpid()))
while True:
    time.sleep(1)
"""
BUILDS = """
import sys
from course import cli
from course.author import build
build.build_all = lambda *_, **__: build.build(open("source.py").read(), "source.py")
sys.exit(cli.main(["build", "--check"]))
"""


@pytest.mark.parametrize(("number", "status", "said"), [
    (signal.SIGINT, 130, "interrupted; what was not built yet is as it was\n"), (signal.SIGTERM, 128 + 15, ""),
])  # fmt: skip
def test_a_build_that_is_ended_leaves_no_kernel_and_no_traceback(tmp_path, number, status, said):
    place = tmp_path / "kernel"
    (tmp_path / "source.py").write_text(ENDLESS.replace("FILE", repr(str(place))))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", BUILDS], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: place.is_file() and place.read_text())
        process.send_signal(number)
        assert (process.communicate(timeout=60)[1], process.returncode) == (said, status)
    assert not psutil.pid_exists(int(place.read_text()))


def test_a_kernel_that_does_not_start_is_said(monkeypatch):
    async def never(self, **_):
        raise RuntimeError("Kernel didn't respond in 60 seconds")

    monkeypatch.setattr("nbclient.NotebookClient.async_start_new_kernel_client", never)
    with pytest.raises(BuildError, match="its kernel did not start, or died: Kernel didn't respond"):
        build("# %% text\n1\n", "x.py")
