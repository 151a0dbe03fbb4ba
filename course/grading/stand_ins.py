"""What stands in the child where the reference parts and the course would be.

Like `fence`, this file is handed to the child as text, because the child cannot import `course`;
standard library only.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from typing import Any

__all__ = ["ReferencePartError", "StrippedModules", "course_stand_in", "reference_part"]


class ReferencePartError(Exception):
    """Learner code touched the reference part."""


class _ReferenceMeta(type):
    def __call__(cls, *_: object, **__: object) -> Any:
        raise ReferencePartError(cls.__name__)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise ReferencePartError(cls.__name__)


def reference_part(name: str) -> type:
    """What stands in the reference part's place: every use of it raises ReferencePartError."""

    def refuse(cls: type, **_: object) -> None:
        raise ReferencePartError(name)

    return _ReferenceMeta(name, (), {"__init_subclass__": classmethod(refuse)})


class StrippedModules(MetaPathFinder, Loader):
    """Serves the engine's modules that hold reference parts, from source without those parts."""

    def __init__(self, modules: dict[str, str]) -> None:
        self._modules = modules

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname in self._modules else None

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["_reference_part"] = reference_part
        code = compile(self._modules[module.__name__], f"<{module.__name__} without the reference part>", "exec")
        exec(code, module.__dict__)  # noqa: S102 - the engine's own source


def course_stand_in(registered: list[tuple[str, object]]) -> types.ModuleType:
    """A module `course` for cells that import it: `exercise` registers, everything else is quiet."""

    def quiet(*_: object, **__: object) -> None:
        return None

    class _Lesson:
        def exercise(self, exercise_id: str) -> Callable[[Any], Any]:
            def register(part: Any) -> Any:
                registered.append((str(exercise_id), part))
                return part

            return register

        def __getattr__(self, name: str) -> Any:
            return quiet

    module = types.ModuleType("course")
    module.__path__ = []  # a package: parts of exercises may live in it, stripped like the engine's
    shared = _Lesson()
    module.__dict__["lesson"] = lambda *_: shared
    module.__dict__["L"] = shared
    for verb in ("check", "hint", "show", "zoo", "predict", "quiz", "reveal", "reset", "progress", "receipt"):
        module.__dict__[verb] = quiet
    return module
