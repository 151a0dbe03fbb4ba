"""Every page: its examples run, its commands are accepted, and its links and paths lead somewhere."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from course.cli import _parser as sluice_parser
from refimpl.drivers import ThreadedRun

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(page for name in ("course", "lessons", "refimpl", "tests", "widgets")
                                     for page in (ROOT / name).rglob("*.md"))]  # fmt: skip
FOLLOWED_ELSEWHERE = {
    "course/README.md": "test_new_exercise.py of tests/course/author adds the exercise of this page",
    "tests/README.md": "its example is a test of tests/interop",
}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]+\.(?:css|java|js|md|py|svg|toml|txt)")
PROGRAMS = {"make", "pytest", "sluice", "python"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in FENCED.findall(page.read_text(encoding="utf-8")) if kind == language]


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def code_in_prose(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", prose(page))


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
each_page_about_what_is_there = pytest.mark.parametrize(
    "page", [page for page in PAGES if name_of(page) != "course/README.md"], ids=name_of
)
each_page_that_runs = pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "python") and name_of(page) not in FOLLOWED_ELSEWHERE],
    ids=name_of,
)


# -- examples --------------------------------------------------------------------------------------


@each_page_that_runs
def test_each_example_of_a_page_runs_by_itself(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for example in blocks(page, "python"):
        session: dict[str, Any] = {}
        try:
            exec(compile(example, name_of(page), "exec"), session)
            printed = capsys.readouterr().out.splitlines()
            if "sink(print)" in example:
                assert [line for line in printed if line.isdigit()] == ["0", "1", "4", "9", "16", "25"]
            if "run" in session:
                assert "backlog" in repr(session["QueueView"](session["run"]))  # the job that is watched runs on
        finally:
            for run in session.values():
                if isinstance(run, ThreadedRun):
                    run.cancel()


def test_readme_and_the_pages_of_widgets_and_data_have_examples() -> None:
    shown = {name_of(page) for page in PAGES if blocks(page, "python")}
    assert shown >= {"README.md", "widgets/README.md", "course/data/README.md"}


# -- commands --------------------------------------------------------------------------------------


def commands(page: Path) -> Iterator[tuple[str, bool]]:
    """Each command of a page, and whether it is whole: prose may leave arguments out."""
    for block in blocks(page, "sh"):
        yield from ((line, True) for line in block.splitlines() if line.strip())
    for code in code_in_prose(page):
        first, *more = code.split()
        if more and Path(first).name in PROGRAMS:
            yield code, False


@pytest.mark.slow
@each_page_about_what_is_there
def test_the_commands_of_a_page_are_accepted(page: Path) -> None:
    problems = [f"{line}: {problem}" for line, is_whole in commands(page) if (problem := refusal(line, is_whole))]
    assert problems == []


def refusal(line: str, is_whole: bool) -> str | None:
    """The reason why a command would be turned down; `None` for a command that would run."""
    match shlex.split(line, comments=True):
        case ["make", *rest]:
            return make_refuses(rest, is_whole)
        case [".venv/bin/python", "-m", "pytest", *rest] | ["pytest", *rest]:
            return pytest_refuses(rest)
        case [".venv/bin/python" | "python", "-m", module, *rest]:
            return module_refuses(module, rest)
        case [".venv/bin/sluice" | "sluice", *rest]:
            return sluice_refuses(rest, is_whole)
    return "no program of this repository"


def make_refuses(words: Sequence[str], is_whole: bool) -> str | None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    target, *settings = words
    recipe = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)*)", makefile, re.MULTILINE)
    if recipe is None:
        return f"no target {target}"
    for setting in settings:
        name, _, value = setting.partition("=")
        program = re.search(rf"\$\(RUN\)/([\w. -]+) (?=\$.*\({name}\))", recipe[1])
        if program is None:
            return f"make {target} does not take {name}"
        given = f"--only {value}" if name == "ONLY" else value
        if problem := refusal(f".venv/bin/{program[1]} {given}", is_whole):
            return problem
    return None


def pytest_refuses(words: Sequence[str]) -> str | None:
    missing = [word for word in words if "/" in word and not (ROOT / word).exists()]
    return f"no {missing}" if missing else None


def module_refuses(module: str, words: Sequence[str]) -> str | None:
    if importlib.util.find_spec(module) is None:
        return f"no module {module}"
    unknown = [word for word in words if word.startswith("--") and word not in help_of(module)]
    return f"{module} does not know {unknown}" if unknown else None


@functools.cache
def help_of(module: str) -> str:
    command = [sys.executable, "-m", module, "--help"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def sluice_refuses(words: Sequence[str], is_whole: bool) -> str | None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            sluice_parser(words).parse_args(words)
    except SystemExit as ended:
        is_unfinished = "arguments are required" in said.getvalue() and not is_whole
        return None if ended.code == 0 or is_unfinished else said.getvalue().strip().splitlines()[-1]
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("make nonsense", "no target nonsense"),
        ("make clean ARGS=x", "make clean does not take ARGS"),
        ("make demo ARGS='--nonsense'", "sluice: error: unrecognized arguments: --nonsense"),
        ("make bench ARGS='--nonsense'", "tests.bench does not know ['--nonsense']"),
        ("pytest tests/nonsense", "no ['tests/nonsense']"),
        ("python -m tests.nonsense", "no module tests.nonsense"),
        (".venv/bin/sluice data", "sluice data: error: the following arguments are required: ACTION"),
        ("curl example.org", "no program of this repository"),
    ],
)
def test_a_command_that_would_fail_is_found(line: str, problem: str) -> None:
    assert refusal(line, is_whole=True) == problem


# -- links and paths -------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchor of each heading, as GitHub makes it."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@each_page
def test_the_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    folder = ROOT / "lessons" if page.parent.match("locales/*/lessons") else page.parent  # where its words will stand
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith(("http:", "https:")):
            continue
        name, _, anchor = link.partition("#")
        target = folder / name if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


@each_page_about_what_is_there
def test_the_paths_that_a_page_names_are_there(page: Path) -> None:
    roots = (ROOT, page.parent, ROOT / "refimpl", ROOT / "tests")
    named = [code for code in code_in_prose(page) if PATH.fullmatch(code)]
    assert [code for code in named if not any((root / code).exists() for root in roots)] == []


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading of README, without its first two lines."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]


def test_the_map_names_files_of_its_packages_and_lessons_that_exist() -> None:
    for _, package, begin_with, lessons in rows("The map"):
        place = ROOT / package.strip().strip("`")
        assert place.exists(), place
        for file in re.findall(r"`([^`]+)`", begin_with):
            assert (place / file).exists(), place / file
        for number in lessons.split():
            assert [*(ROOT / "lessons").glob(f"{number:0>2}_*.ipynb")], number


def test_where_things_are_links_to_the_file_it_names() -> None:
    places = [re.findall(r"\[`([^`]+)`\]\(([^)]+)\)", files) for _, files in rows("Where is …")]
    assert len(places) >= 25
    assert all(places)
    for name, target in (link for links in places for link in links):
        assert target == name or target == f"refimpl/{name}"
