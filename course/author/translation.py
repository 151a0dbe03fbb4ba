"""What of a language lags behind the English: `python -m course.author.translation`.

In the folder of a language, `made_of.json` has for each text a short hash of the English that it was made from. When
the English is changed, the hash is another one, and the text lags until somebody has looked at it: change it, or leave
it if it is still right, and say so with `--stamp`. A text that is only code or a sign may be left out, and is stamped
too. A test holds every language that comes with the course against this.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course.author.build import parse, source_of
from course.curriculum.folders import folder as exercise_folder
from course.curriculum.languages import NoSuchLanguageError, folders_of, known, own_languages
from course.curriculum.lesson_texts import sections
from course.curriculum.manifest import EXERCISES, LESSONS, START
from course.curriculum.stub_texts import STUB_TEXTS, docstrings
from course.curriculum.stubs import stub
from course.curriculum.wrapping import width

__all__ = ["MADE_OF", "Finding", "english", "findings", "main", "report", "stamp", "translated"]

MADE_OF = "made_of.json"
_COURSE = Path(__file__).resolve().parents[1]
_NO_TEXT = frozenset({"kind", "right"})
"""What questions have besides texts."""
_BLANK = re.compile(r"\{\w*\}")
_CODE = re.compile(r"(?<!`)`[^`]+`(?!`)")
_NAME = re.compile(r"(?<![\w.])(?:\w+_\w+|\w+(?:\.\w+)+|[A-Z]+[a-z]+[A-Z]\w*|[A-Z]{3,}|\w+(?=\())(?!\w)", re.ASCII)
"""What a docstring calls by its name in the code."""
_LINK = re.compile(r"\]\([^)]+\)")
_HEADING = re.compile(r"^#+ ", re.MULTILINE)
_RUNG_OF_CODE = re.compile(r"hints/\w+/4")
_PROSE = re.compile(r"[a-z]{2,} [a-z]{2,}")
_WIDEST_OF_A_STUB = 112
"""Columns of a docstring's line, which is indented by up to eight."""
_HAN = "\u4e00-\u9fff"
_BROKEN_LINE = re.compile(rf"[{_HAN}\u3001\u3002\uff0c\uff1b\uff1a]\n[{_HAN}]")
_HALF_WIDTH = re.compile(rf"[{_HAN}][,;:?!]")
_WHAT_TO_DO = {
    "missing": "write it into this file of the language",
    "lags": "the English has changed: change the translation, or leave it if it is still right; then --stamp",
    "new": "look whether it has to be translated; then --stamp",
    "surplus": "the English has no such text (any more): take it out",
    "differs": "the translation must have the same",
}

Texts = dict[str, dict[str, str]]
"""Texts by file and key; the key of a text in a catalogue is its path in the table, that of a cell its name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One text that is not as it should be; `kind` is one of those that say what to do."""

    kind: str
    file: str
    key: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.kind:<8} {self.file}  {self.key}{': ' if self.what else ''}{self.what}"


@cache
def english() -> Texts:
    """All that can be translated."""
    texts = {_name(file): _leaves(file) for file in _catalogues(_COURSE)}
    for exercise in EXERCISES:
        texts[f"exercises/{exercise_folder(exercise).name}/{STUB_TEXTS}"] = docstrings(stub(exercise))
    texts["site/front.txt"] = {"": (_COURSE / "site" / "front.txt").read_text(encoding="utf-8")}
    for lesson in (START, *(each.name for each in LESSONS.values())):
        cells = parse(source_of(lesson).read_text(encoding="utf-8"), lesson)
        prose = {each.options.get("name", ""): each.source for each in cells if each.kind == "markdown"}
        assert "" not in prose, f"{lesson}: a Markdown cell without a name cannot be translated"
        texts[f"lessons/{lesson}.md"] = prose
    return texts


def translated(folder: Path) -> Texts:
    """All that this folder of a language has."""
    texts = {_name(file, folder): _leaves(file) for file in _catalogues(folder)}
    for file in folder.glob("site/front.txt"):
        texts[_name(file, folder)] = {"": file.read_text(encoding="utf-8")}
    for file in sorted(folder.glob("lessons/*.md")):
        texts[_name(file, folder)] = sections(file.read_text(encoding="utf-8"))
    return texts


def _name(file: Path, folder: Path = _COURSE) -> str:
    return file.relative_to(folder).as_posix()


def _catalogues(folder: Path) -> Iterator[Path]:
    for name in ("messages", "questions", "interface"):
        yield from folder.glob(f"curriculum/{name}.toml")
    yield from sorted(folder.glob("exercises/*/messages.toml"))
    yield from sorted(folder.glob("exercises/*/exercise.toml"))
    yield from sorted(folder.glob("exercises/*/answers.toml"))
    yield from sorted(folder.glob(f"exercises/*/{STUB_TEXTS}"))


def _leaves(file: Path) -> dict[str, str]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SystemExit(f"{file}: {error}") from error
    if file.name == "exercise.toml":
        return {"title": str(table["title"])}  # the rest is for the program
    if file.name == "answers.toml":  # of the others only their beliefs are said to learners
        wrong = table.get("wrong", {}).items()
        return {f"wrong/{name}/belief": " ".join(row["belief"].split()) for name, row in wrong if "belief" in row}
    left_out = _NO_TEXT if file.name == "questions.toml" else frozenset[str]()
    return {"/".join(path): str(text) for path, text in _texts(table, ()) if path[-1] not in left_out}


def _texts(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _texts(value, (*path, key))
        else:
            yield (*path, key), value


def findings(language: str) -> list[Finding]:
    """All that is not as it should be, in the order of the files.

    Raises:
        NoSuchLanguageError: there is no such language.
    """
    folder = _folder(language)
    ours, theirs, made_of = english(), translated(folder), _made_of(folder)
    found: list[Finding] = []
    for file, texts in ours.items():
        has, stamps = theirs.get(file, {}), made_of.get(file, {})
        for key, text in texts.items():
            found += _about(file, key, text, has.get(key), stamps.get(key))
        if file.startswith("lessons/") and (order := [key for key in texts if key in has]) != [*filter(texts.get, has)]:
            found.append(Finding("differs", file, "", f"the cells come in this order: {', '.join(order)}"))
    for file, has in theirs.items():
        for key in has.keys() - ours.get(file, {}).keys():
            found.append(Finding("surplus", file, key or "before the first cell"))
    return found


def _about(file: str, key: str, text: str, other: str | None, stamped: str | None) -> Iterator[Finding]:
    if other is None:
        if _is_prose(file, key, text):
            yield Finding("missing", file, key, _short(text))
        elif stamped != _hash(text):
            yield Finding("new", file, key, _short(text))
        return
    for what in _differences(file, key, text, other):
        yield Finding("differs", file, key, what)
    if stamped is None:
        yield Finding("new", file, key, _short(other))
    elif stamped != _hash(text):
        yield Finding("lags", file, key, _short(text))


def _is_prose(file: str, key: str, text: str) -> bool:
    """Whether a text has to be translated; what is only code, a name or a sign may be the same in all languages."""
    if _RUNG_OF_CODE.fullmatch(key):
        return False
    return file.startswith("lessons/") or _PROSE.search(_CODE.sub("", text)) is not None


def _differences(file: str, key: str, text: str, other: str) -> Iterator[str]:
    """What both must have alike, and do not."""
    is_lesson, is_stub = file.startswith("lessons/"), file.endswith(f"/{STUB_TEXTS}")
    kinds = {"code": _CODE, "links": _LINK, "headings": _HEADING} if is_lesson else {"blanks": _BLANK, "code": _CODE}
    kinds |= {"names": _NAME} if is_stub else {}
    for what, pattern in kinds.items():
        wanted, had = (Counter(pattern.findall(_flat(each, pattern))) for each in (text, other))
        if what in ("blanks", "code", "names"):  # as often as the sentence has it
            wanted, had = Counter({*wanted}), Counter({*had})
        lacks, more = (", ".join((one - two).elements()) for one, two in ((wanted, had), (had, wanted)))
        if lacks or more:
            yield f"{what}: {lacks or 'none'} missing, {more or 'none'} too much"
    if is_stub and (widest := max(map(width, other.split("\n")))) > _WIDEST_OF_A_STUB:
        yield f"width: a line takes {widest} columns, and may take {_WIDEST_OF_A_STUB}"
    if file.endswith(".toml") and not is_stub and text.count("\n") != other.count("\n"):
        yield f"lines: {text.count(chr(10)) + 1} in English, {other.count(chr(10)) + 1} here"
    if is_lesson and (broken := _BROKEN_LINE.search(other)):
        yield f"a paragraph is one line; this one is broken at {broken[0]!r}"
    if _RUNG_OF_CODE.fullmatch(key) is None and (half := _HALF_WIDTH.search(_CODE.sub("", other))):
        yield f"a mark behind a Chinese character is full-width: {half[0]}"


def _flat(text: str, pattern: re.Pattern[str]) -> str:
    return text if pattern is _HEADING else re.sub(r"\s+", " ", text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _folder(language: str) -> Path:
    folders = folders_of(known(language))
    if not folders:
        raise NoSuchLanguageError(language, "it is the one that all others are made of")
    return folders[0]


def _made_of(folder: Path) -> Texts:
    file = folder / MADE_OF
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def stamp(language: str, files: Iterable[str] = ()) -> list[Finding]:
    """Say that these files of a language, or all, are up to date; return what had lagged.

    Raises:
        NoSuchLanguageError: there is no such language.
    """
    folder = _folder(language)
    ours, theirs, made_of = english(), translated(folder), _made_of(folder)
    chosen = {*(files or ours)}
    lagged = [each for each in findings(language) if each.kind == "lags" and each.file in chosen]
    for file in chosen:
        has = theirs.get(file, {})
        made_of[file] = {
            key: _hash(text) for key, text in ours[file].items() if key in has or not _is_prose(file, key, text)
        }
    kept = {file: made_of[file] for file in ours if made_of.get(file)}
    (folder / MADE_OF).write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return lagged


def report(language: str) -> list[str]:
    """What there is to do for a language, in lines; none if there is nothing.

    Raises:
        NoSuchLanguageError: there is no such language.
    """
    found = findings(language)
    if not found:
        return []
    kinds = [kind for kind in _WHAT_TO_DO if any(each.kind == kind for each in found)]
    says = [f"  {kind:<8} {sum(each.kind == kind for each in found):>5}  {_WHAT_TO_DO[kind]}" for kind in kinds]
    again = f"Then: python -m course.author.translation {language} --stamp [FILE …]"
    return [*map(str, found), "", f"{language}, in {_folder(language)}:", *says, again]


def main(words: list[str] | None = None) -> int:
    """Say what lags, or that what is there is up to date; return 1 if anything is left to do."""
    parser = argparse.ArgumentParser("python -m course.author.translation", description=__doc__)
    parser.add_argument(
        "language", nargs="?", metavar="NAME", help="a language (default: all that come with the course)"
    )
    said = "say that these files are up to date, such as lessons/01_segments.md (default: all); with a NAME"
    parser.add_argument("--stamp", nargs="*", metavar="FILE", help=said)
    arguments = parser.parse_args(words)
    names = [arguments.language] if arguments.language else own_languages()
    try:
        if arguments.stamp is not None:
            if unknown := [each for each in arguments.stamp if each not in english()]:
                parser.error(f"no such file: {', '.join(unknown)}; one is as lessons/01_segments.md")
            for name in names:
                for each in stamp(name, arguments.stamp):
                    print(f"said to be right now: {each.file}  {each.key}: {each.what}")
        left = {name: report(name) for name in names}
    except NoSuchLanguageError as error:
        print(error, file=sys.stderr)
        return 2
    for name, lines in left.items():
        print("\n".join(lines or [f"{name}: all texts are translated, and made of the English that is there"]))
    return 1 if any(left.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
