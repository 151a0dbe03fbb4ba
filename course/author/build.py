"""The builder: a lesson's source in percent format becomes an executed notebook, byte for byte the same.

Cells of the source (lessons/src/NN_name.py):

    # %% [markdown] TAG [name=ID]          lines that follow are comments: "# text"
    # %% TAG [name=ID] [tags=a,b]          a code cell
    # %% exercise id=3.1                   the stub of 3.1 is filled in (the cell's own lines come first)
    #! text                                anywhere in a cell: said to instructors, and in no notebook
    # %% TAG seeds=I5,I6                   the subjects that the cell teaches, for lessons/COVERAGE.md

Every cell has exactly one role TAG. The output of the code cell behind a prediction begins with its question and is
folded until it is run, or unfolded; a cell with tags=only-here is shipped without one, since what it says holds for
one machine.

A notebook is built as a learner gets it, with stubs, into lessons/NN_name.ipynb; tests build it solved, with the
reference parts. The recap is followed by the lesson's words, with links into the glossary. The first page,
00_start_here, has no parts to solve; the glossary is lessons/glossary.md.

A lesson of a teacher's own (course/curriculum/own_lessons.py) is built in the same way, in that teacher's folder.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from course.curriculum.glossary import glossary_page, words_of
from course.curriculum.languages import ENGLISH
from course.curriculum.languages import VARIABLE as LANGUAGE
from course.curriculum.manifest import EXERCISES, LESSONS, START
from course.curriculum.own_lessons import OwnLessonError, own_lessons
from course.curriculum.stubs import solution, stub
from course.places import is_checkout, own_lessons_folder

__all__ = ["BuildError", "Cell", "build", "build_all", "cell_ids", "execute", "parse", "source_of"]

_ROOT = Path(__file__).resolve().parents[2]
_LESSONS = _ROOT / "lessons"
_MARK = re.compile(r"^# %%(?P<markdown> \[markdown\])?(?P<rest>.*)$")
_ROLES = frozenset(
    {
        "title", "setup", "why", "figure", "predict", "explain", "task", "exercise", "check", "swap", "zoo", "spark",
        "quiz", "recap", "receipt", "hint", "show", "text",
    }
)  # fmt: skip
_HERE = "only-here"
_VIEW = "application/vnd.jupyter.widget-view+json"
_CELL_SECONDS = 300
_NOTE = "#!"


class BuildError(Exception):
    """A source that cannot become a notebook; the text names the file and the line or cell."""


@dataclass(slots=True)
class Cell:
    """One cell of a source: `line` is where it starts, `options` the name=value pairs of its mark.

    `notes` are what instructors are told at this cell.
    """

    kind: str
    role: str
    line: int
    options: dict[str, str] = field(default_factory=dict)
    source: str = ""
    notes: list[str] = field(default_factory=list)


def parse(text: str, name: str) -> list[Cell]:
    """The cells of a percent source.

    Raises:
        BuildError: text before the first cell, an unknown role, an option twice, a bad exercise id.
    """
    cells: list[Cell] = []
    bodies: list[list[str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        mark = _MARK.match(line)
        if mark:
            cells.append(_cell(mark, number, name))
            bodies.append([])
        elif bodies and line.startswith(_NOTE):
            cells[-1].notes.append(line.removeprefix(_NOTE).strip())
        elif bodies:
            bodies[-1].append(line)
        elif line.strip() and not line.startswith("#"):
            raise BuildError(f"{name}, line {number}: text before the first cell mark (# %% …)")
    for cell, body in zip(cells, bodies, strict=True):
        lines = [_uncomment(line, cell, name) for line in body] if cell.kind == "markdown" else body
        cell.source = "\n".join(lines).strip("\n")
    if not cells:
        raise BuildError(f"{name}: no cell mark (# %% …) in the file")
    return cells


def _cell(mark: re.Match[str], number: int, name: str) -> Cell:
    words = mark["rest"].split()
    role = words.pop(0) if words and "=" not in words[0] else "text"
    if role not in _ROLES:
        raise BuildError(f"{name}, line {number}: role {role!r} is none of {', '.join(sorted(_ROLES))}")
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in ("name", "id", "tags", "seeds") or key in options:
            raise BuildError(f"{name}, line {number}: cannot read {word!r}; options are name=, id=, tags=, seeds=")
        options[key] = value
    if role == "exercise" and not mark["markdown"] and options.get("id") not in EXERCISES:
        raise BuildError(f"{name}, line {number}: an exercise cell needs id=, one of {', '.join(EXERCISES)}")
    return Cell("markdown" if mark["markdown"] else "code", role, number, options)


def _uncomment(line: str, cell: Cell, name: str) -> str:
    if not line.strip():
        return ""
    if not line.startswith("#"):
        raise BuildError(f"{name}: a line of the markdown cell at line {cell.line} does not start with '#': {line!r}")
    return line[2:] if line.startswith("# ") else line[1:]


def _cell_id(cell: Cell, position: int, taken: set[str]) -> str:
    """A stable id: from the name, the exercise, or the role and the position."""
    wanted = cell.options.get("name") or (f"exercise-{cell.options['id']}" if "id" in cell.options else "")
    base = re.sub(r"[^A-Za-z0-9_-]", "-", wanted or f"{cell.role}-{position:02d}")[:60]
    chosen, number = base, 1
    while chosen in taken:
        number += 1
        chosen = f"{base}-{number}"
    taken.add(chosen)
    return chosen


def cell_ids(cells: Sequence[Cell]) -> list[str]:
    """The ids that the cells have in the notebook."""
    taken: set[str] = set()
    return [_cell_id(cell, position, taken) for position, cell in enumerate(cells, 1)]


def _notebook(cells: Iterable[Cell], *, solved: bool, words: str) -> nbformat.NotebookNode:
    taken: set[str] = set()
    made = []
    asked: list[str] = []
    for position, cell in enumerate(cells, 1):
        source = cell.source
        tags = [cell.role, *(cell.options.get("tags", "").split(",") if cell.options.get("tags") else [])]
        if cell.role == "setup" and cell.kind == "code" and "nbval-ignore-output" not in tags:
            tags.append("nbval-ignore-output")
        metadata: dict[str, Any] = {"tags": tags}
        if cell.kind == "code":
            if asked:
                source = _asking(source, asked)
                metadata |= {"collapsed": True, "jupyter": {"outputs_hidden": True}}  # Jupyter's fold, until it is run
                tags.append("hide-output")  # the site's
            asked = re.findall(r'"\d+\.[a-z]"', source) if cell.role == "predict" else []
        if cell.role == "exercise" and cell.kind == "code":
            exercise_id = cell.options["id"]
            filled = solution(exercise_id) if solved else stub(exercise_id)
            source = "\n\n".join(part for part in (source, filled.strip("\n")) if part)
            metadata["sluice"] = {"exercise": exercise_id}
        if words and cell.role == "recap" and cell.kind == "markdown":
            source, words = f"{source}\n\n{words}", ""
        what: dict[str, Any] = {"source": source, "id": _cell_id(cell, position, taken), "metadata": metadata}
        is_text = cell.kind == "markdown"
        made.append(nbformat.v4.new_markdown_cell(**what) if is_text else nbformat.v4.new_code_cell(**what))
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    notebook: nbformat.NotebookNode = nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": kernel})
    return notebook


def _asking(source: str, questions: list[str]) -> str:
    """The source, with these questions asked again before it shows anything: Jupyter shows a fold's first line."""
    begun = ast.parse(source).body
    imports = list(itertools.takewhile(lambda each: isinstance(each, ast.Import | ast.ImportFrom), begun))
    lines = source.split("\n")
    at = (imports[-1].end_lineno or 0) if imports else 0
    again = f"L.asked({', '.join(questions)})"
    return "\n".join([*lines[:at], *([""] if at else []), again, *lines[at:]])


def execute(notebook: nbformat.NotebookNode, name: str) -> None:
    """Run all cells in a fresh kernel whose state folder is empty; the state of views is in the metadata after that.

    Raises:
        BuildError: a cell failed or took too long, or the kernel did not start or died.
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    from course.author.build_client import OneKernel

    with tempfile.TemporaryDirectory(prefix="sluice-build-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        # ipykernel switches its capture of file descriptors off under pytest, where nbval runs the
        # lessons; a lesson must be built under the same condition, or stored outputs would differ.
        changed = {
            "PYTEST_CURRENT_TEST": "build", "SLUICE_WORK": str(work), "PYTHONHASHSEED": "0",
            "SLUICE_OWN_LESSONS": str(own_lessons_folder()), LANGUAGE: ENGLISH,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")])),
        }  # fmt: skip
        client = OneKernel(
            notebook,
            timeout=_CELL_SECONDS,
            startup_timeout=_CELL_SECONDS,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": str(work)}},
            extra_arguments=["--IPKernelApp.log_level=40"],
        )
        try:
            client.execute(env={**os.environ, **changed})
        except CellExecutionError as error:
            raise BuildError(f"{name}: a cell failed: {error.ename}: {error.evalue}") from error
        except CellTimeoutError as error:
            raise BuildError(f"{name}: a cell took more than {_CELL_SECONDS} s: {str(error)[-300:]}") from error
        except (DeadKernelError, RuntimeError) as error:
            raise BuildError(f"{name}: its kernel did not start, or died: {error}") from error
        finally:
            client.end()


def _normalise(notebook: nbformat.NotebookNode) -> None:
    """Drop what differs between runs and machines: language details, times, all of a traceback but its last line.

    And the names of live views: until a cell is run again there is no such view, and its picture is shown instead.
    """
    notebook.metadata.pop("language_info", None)
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if _HERE in cell.metadata.tags and cell.cell_type == "code":
            cell.outputs = []
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {output.evalue}"]
            output.get("data", {}).pop(_VIEW, None)
    merged_streams(notebook)


def merged_streams(notebook: nbformat.NotebookNode) -> None:
    """Join neighbouring pieces of one stream: where a print is cut depends on timing."""
    for cell in notebook.cells:
        joined: list[Any] = []
        for output in cell.get("outputs", []):
            last = joined[-1] if joined else None
            if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
                last.text += output.text
            else:
                joined.append(output)
        if "outputs" in cell:
            cell.outputs = joined


def build(
    source: str, name: str, *, solved: bool = False, words: str = "", roles: Collection[str] | None = None
) -> str:
    """The notebook of one source as text, executed; its recap ends with `words`.

    With `roles` it has only the cells of these.

    Raises:
        BuildError: the source is malformed, or a cell that may not fail did.
    """
    notebook = _notebook(parse(source, name), solved=solved, words=words)
    notebook.cells = [cell for cell in notebook.cells if roles is None or cell.metadata.tags[0] in roles]
    execute(notebook, name)
    _normalise(notebook)
    nbformat.validate(notebook)
    text: str = nbformat.writes(notebook, version=4)
    return text + "\n"


def build_all(numbers: Iterable[int] | None = None, *, writes: bool = True) -> list[str]:
    """Build lessons; without numbers all of them, a teacher's own too, and the first page and the glossary.

    An installed package is nobody's to change: there, only a teacher's own lessons are built.

    Return what is new or different, in words.

    Raises:
        BuildError: a source is missing or cannot be built.
    """
    said = []
    try:
        own = own_lessons()
    except OwnLessonError as error:
        raise BuildError(str(error)) from error
    course = LESSONS if is_checkout() else {}
    if numbers is None and course:
        said += _compare(_LESSONS / "glossary.md", glossary_page(), writes)
        said += _build_one(_LESSONS, START, "", writes)
    for number in (*course, *own) if numbers is None else numbers:
        if number in own:
            said += _build_one(own_lessons_folder(), own[number].name, "", writes)
        elif number in course:
            said += _build_one(_LESSONS, course[number].name, words_of(number), writes)
        else:
            there = ", ".join(map(str, (*course, *own))) or "none: `sluice new lesson TITLE` makes one"
            raise BuildError(f"there is no lesson {number}; there are {there}")
    return said


def _build_one(lessons: Path, name: str, words: str, writes: bool) -> list[str]:
    source = source_of(name, lessons)
    made = build(source.read_text(encoding="utf-8"), source.name, words=words)
    return _compare(lessons / f"{name}.ipynb", made, writes)


def source_of(name: str, lessons: Path = _LESSONS) -> Path:
    """Where a notebook of this folder is written.

    Raises:
        BuildError: nowhere.
    """
    source = lessons / "src" / f"{name}.py"
    if not source.is_file():
        raise BuildError(f"{name} has no source {lessons.name}/src/{name}.py")
    return source


def _compare(target: Path, made: str, writes: bool) -> list[str]:
    before = target.read_text(encoding="utf-8") if target.is_file() else None
    if made == before:
        return []
    if writes:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(made, encoding="utf-8")
    return [f"{target.parent.name}/{target.name}: {'new' if before is None else 'different'}"]
