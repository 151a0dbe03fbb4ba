"""`make site`: pages of all lessons as they are stored, without a server, a kernel, or a network."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from course.curriculum.manifest import LESSONS, START
from course.places import home, lessons_folder

__all__ = ["build_site", "main"]

_HERE = Path(__file__).parent
_FRONT = """# Sluice

A course on how a distributed stream processor moves data, whose textbook is a running program. These pages are for
reading: pictures stand still, a choice unfolds its answer, and checks are those of somebody who has not begun. To step
through the engine, write parts of it and have them checked, get the project and run `make lab`.

```{{toctree}}
:maxdepth: 1
:caption: Lessons

{start}
{lessons}
```

```{{toctree}}
:maxdepth: 1
:caption: Beside the lessons

glossary
GRADERS
```
"""


class SiteError(Exception):
    """The pages cannot be made; the text says why."""


def build_site(target: Path) -> Path:
    """Make all pages in `target`, which is replaced; return the first one.

    Raises:
        SiteError: there are no lessons, Sphinx is not installed, or it found something wrong; the text says what.
    """
    try:
        from sphinx.cmd.build import main as sphinx
    except ImportError as error:
        raise SiteError(f"{error}; `make site` installs what the pages are made with") from error
    if target.exists() and not (target / ".buildinfo").exists() and any(target.iterdir()):
        raise SiteError(f"{target} is a folder with other things in it; name another one")
    with tempfile.TemporaryDirectory(prefix="sluice-site-") as folder:
        source, made = Path(folder, "source"), Path(folder, "made")
        _gather(source)
        if sphinx(["-q", "-W", "--keep-going", "-b", "html", "-d", str(Path(folder, "trees")), str(source), str(made)]):
            raise SiteError("the pages were not made; what is wrong stands above")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, target)
    return target / "index.html"


def _gather(source: Path) -> None:
    """Put everything into one folder, as Sphinx wants it."""
    source.mkdir()
    shutil.copy(_HERE / "conf.py", source)
    shutil.copytree(_HERE / "static", source / "static")
    names = [lesson.name for lesson in LESSONS.values()]
    lessons = lessons_folder()
    pages = [*(lessons / f"{name}.ipynb" for name in (START, *names)), lessons / "glossary.md"]
    for page in (*pages, _HERE.parent / "GRADERS.md"):
        if not page.is_file():
            raise SiteError(f"there is no {page}; `sluice build` makes the lessons")
        shutil.copy(page, source)
    front = _FRONT.format(start=START, lessons="\n".join(names))
    (source / "index.md").write_text(front, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the pages; return 0, or 1 if they could not be made."""
    parser = argparse.ArgumentParser("make site", description="Pages of all lessons as they are stored, to read.")
    usual = home() / "build" / "site"
    parser.add_argument("folder", nargs="?", type=Path, default=usual, help="where to put them (build/site)")
    target = parser.parse_args(arguments).folder.resolve()
    try:
        first = build_site(target)
    except (SiteError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The first page is {first}")
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
