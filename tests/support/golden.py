"""What a check says of each wrong answer, as golden.txt of the exercise has it."""

from __future__ import annotations

import re

from course.curriculum.folders import folder
from course.curriculum.specimens import zoo

__all__ = ["record", "recorded"]


def recorded(exercise: str) -> dict[str, str]:
    """The messages by the name of the wrong answer."""
    file = folder(exercise) / "golden.txt"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    parts = re.split(r"^=== (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {name: said.rstrip("\n") + "\n" for name, said in zip(parts[::2], parts[1::2], strict=True)}


def record(exercise: str, name: str, text: str) -> None:
    """Put a message into the file, in the order of the zoo; what no longer is in the zoo goes."""
    said = {**recorded(exercise), name: text}
    sections = [f"=== {each.name}\n{said[each.name]}" for each in zoo(exercise) if each.name in said]
    (folder(exercise) / "golden.txt").write_text("\n".join(sections), encoding="utf-8")
