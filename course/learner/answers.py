"""Where a learner's source is: the cell being run, the script, a notebook; `saved` knows what is on the disk."""

from __future__ import annotations

import ast
import json
import linecache
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from course.curriculum.manifest import exercise, lesson_info
from course.curriculum.source_lines import source_lines
from course.grading.sources import names_defined, parsed
from course.places import work_folder

__all__ = [
    "cell_names", "current_source", "latest_cell", "lesson_notebook", "num_cells", "shell", "source_in",
    "unmarked_cell", "without_magics",
]  # fmt: skip


_MAGIC = re.compile(r"\s*([%!?]|.*=\s*[%!]|.*[?]\s*$)")


def shell() -> Any:
    """The running IPython, or None in plain Python."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def without_magics(source: str) -> str:
    """A cell as plain Python: lines that are IPython's own become comments, so line numbers stay.

    A line is IPython's own only if Python cannot read it: `% n` may also go on with an expression.
    """
    lines = source_lines(source)
    for _ in range(len(lines)):
        try:
            ast.parse("\n".join(lines))
            break
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            if not 0 <= at < len(lines) or not _MAGIC.match(lines[at]):
                break
            indent = len(lines[at]) - len(lines[at].lstrip())
            # `pass`, because it may be all there is in a block.
            lines[at] = f"{lines[at][:indent]}pass  # {lines[at].lstrip()}" if indent else f"# {lines[at]}"
        except (ValueError, RecursionError, MemoryError):
            break
    return "\n".join(lines) + "\n"


def current_source(depth: int) -> str:
    """The source of the cell (or file) that is `depth` calls up from here; "" if it cannot be found."""
    running = shell()
    if running is not None and running.history_manager is not None and len(running.history_manager.input_hist_raw) > 1:
        return without_magics(running.history_manager.input_hist_raw[-1])
    name = sys._getframe(depth).f_code.co_filename
    return "".join(linecache.getlines(name))


def num_cells() -> int:
    """How many cells the running notebook has run; 0 outside of a notebook."""
    return len(_cells())


def latest_cell(exercise_id: str, after: int = 0) -> str | None:
    """The newest cell, of those run after number `after`, that is marked as this answer, whatever became of it.

    A cell that Python cannot read, or that raised in its first line, never registers anything; it is what the
    learner wants to hear about all the same.
    """
    for source in reversed(_cells()[after:]):
        if _is_marked(source, exercise_id):
            return source
    return None


def unmarked_cell(name: str, methods: Sequence[str], after: int = 0) -> int | None:
    """The number of the newest cell that defines the function `name`, or a class with these methods; None if none."""
    cells = _cells()
    for number in range(len(cells) - 1, after - 1, -1):
        tree = parsed(cells[number])
        for node in tree.body if tree is not None else ():
            if isinstance(node, ast.ClassDef) and methods:
                if set(methods) <= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}:
                    return number
            elif isinstance(node, ast.FunctionDef) and not methods and node.name == name:
                return number
    return None


def cell_names() -> dict[str, str]:
    """Which cell of the running notebook defines which name: {"pack": "cell 12"}."""
    found: dict[str, str] = {}
    for number, source in enumerate(_cells()):
        tree = parsed(source)
        if tree is not None:
            found.update(dict.fromkeys(names_defined(tree), f"cell {number}"))
    return found


def _cells() -> list[str]:
    """The cells as they were run, by number; the first one is number 1."""
    running = shell()
    if running is None or running.history_manager is None:
        return []
    return [without_magics(source) for source in running.history_manager.input_hist_raw]


def _is_marked(source: str, exercise_id: str) -> bool:
    """Whether `exercise("3.1")` is called in it; in a source that cannot be parsed, whether a line looks so."""
    tree = parsed(source)
    if tree is None:
        mark = re.compile(rf"""^[^#]*\bexercise\(\s*["']{re.escape(exercise_id)}["']""", re.MULTILINE)
        return mark.search(source) is not None
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "exercise"
        and any(isinstance(each, ast.Constant) and each.value == exercise_id for each in node.args)
        for node in ast.walk(tree)
    )


def lesson_notebook(exercise_id: str) -> Path:
    """The learner's notebook of the lesson this exercise belongs to."""
    return work_folder() / f"{lesson_info(exercise(exercise_id).lesson).name}.ipynb"


def source_in(text: str, file: Path, exercise_id: str) -> str | None:
    """The source in the text of a file; of a notebook, its last cell that is marked as this answer, or None."""
    if file.suffix != ".ipynb":
        return without_magics(text)
    try:
        cells = json.loads(text)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    marked = [plain for source in sources if _is_marked(plain := without_magics(source), exercise_id)]
    return marked[-1] if marked else None
