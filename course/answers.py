"""Where a learner's source is: the cell being run, the script, the saved notebook, the last attempt."""

from __future__ import annotations

import ast
import json
import linecache
import sys
from pathlib import Path
from typing import Any

from course import progress
from course.manifest import exercise, lesson_info
from course.places import work_folder

__all__ = ["cell_names", "current_source", "saved_source", "shell", "without_magics"]


def shell() -> Any:
    """The running IPython, or None in plain Python."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def without_magics(source: str) -> str:
    """A cell as plain Python: lines that are IPython's own become comments, so line numbers stay."""
    lines = source.splitlines()
    return "\n".join(f"# {line}" if line.lstrip().startswith(("%", "!")) else line for line in lines) + "\n"


def current_source(depth: int) -> str:
    """The source of the cell (or file) that is `depth` calls up from here; "" if it cannot be found."""
    running = shell()
    if running is not None and running.history_manager is not None and len(running.history_manager.input_hist_raw) > 1:
        return without_magics(running.history_manager.input_hist_raw[-1])
    name = sys._getframe(depth).f_code.co_filename
    return "".join(linecache.getlines(name))


def cell_names() -> dict[str, str]:
    """Which cell of the running notebook defines which name: {"pack": "cell 12"}."""
    running = shell()
    if running is None or running.history_manager is None:
        return {}
    found: dict[str, str] = {}
    for number, source in enumerate(running.history_manager.input_hist_raw):
        try:
            tree = ast.parse(without_magics(source))
        except (SyntaxError, ValueError):
            continue
        for node in tree.body:
            found.update(dict.fromkeys(_defined(node), f"cell {number}"))
    return found


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def saved_source(exercise_id: str) -> str | None:
    """The source in the learner's saved notebook, else the last one that was checked, else None."""
    name = lesson_info(exercise(exercise_id).lesson).name
    found = _from_notebook(work_folder() / f"{name}.ipynb", exercise_id)
    if found is not None:
        return found
    kept = progress.attempts(exercise_id)
    return kept[-1].read_text(encoding="utf-8") if kept else None


def _from_notebook(file: Path, exercise_id: str) -> str | None:
    """The last cell of a notebook that is marked as this answer; None if there is none, or no notebook."""
    try:
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    marks = (f'exercise("{exercise_id}")', f"exercise('{exercise_id}')")
    marked = [source for source in sources if any(mark in source for mark in marks)]
    return without_magics(marked[-1]) if marked else None
