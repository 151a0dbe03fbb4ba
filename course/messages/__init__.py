"""The catalogue: all learner-visible text of checks, by exercise, rule and code.

A catalogue is a TOML file for one language. A text is looked up under its rule first and under "*"
next, so that a code which means the same everywhere is written once.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["catalogue", "language", "text", "title"]

_HERE = Path(__file__).parent


def language() -> str:
    """The language of the texts: SLUICE_LANGUAGE, or English."""
    wanted = os.environ.get("SLUICE_LANGUAGE", "en")
    return wanted if (_HERE / f"{wanted}.toml").is_file() else "en"


@cache
def catalogue(name: str) -> dict[str, Any]:
    """The whole catalogue of one language."""
    return tomllib.loads((_HERE / f"{name}.toml").read_text(encoding="utf-8"))


def title(exercise: str, rule: str) -> str:
    """A rule's title; of rule "S", the same for every exercise."""
    texts = catalogue(language())
    here = texts["exercise"][exercise]["titles"]
    return str(here[rule] if rule in here else texts["common"]["titles"][rule])


def text(exercise: str, rule: str, code: str) -> Mapping[str, str]:
    """The message for (rule, code): says, and where it has them job, ask and look.

    Raises:
        KeyError: the catalogue has no such message, which a test forbids.
    """
    texts = catalogue(language())
    for place in (texts["exercise"][exercise].get(rule, {}), texts["exercise"][exercise].get("any", {}),
                  texts["common"].get("any", {})):  # fmt: skip
        if code in place:
            return place[code]
    raise KeyError(f"no message for exercise {exercise}, rule {rule}, code {code}")
