"""What stands in the child where the reference parts, the course and standard output would be.

Like `fence`, this file is handed to the child as text, because the child cannot import `course`;
standard library only.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

__all__ = [
    "Printed", "PrintsEndlesslyError", "ReferencePartError", "StrippedModules", "course_stand_in", "put_off",
    "reference_method", "reference_part",
]  # fmt: skip

_PRINT_LIMIT = 2_000
_MOST_PRINTED = 50_000_000


class PrintsEndlesslyError(BaseException):
    """So much was printed that a loop must have lost its end; `except Exception` does not swallow it."""


class Printed(io.StringIO):
    """Standard output of learner code: the first characters are kept, all are counted, too many end the case."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def write(self, text: str) -> int:
        room = _PRINT_LIMIT - self.count
        self.count += len(text)
        if room > 0:
            super().write(text[:room])
        if self.count > _MOST_PRINTED:
            raise PrintsEndlesslyError
        return len(text)


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

    def refuse(_cls: type[Any], /, **_: object) -> None:
        raise ReferencePartError(name)

    return _ReferenceMeta(name, (), {"__init_subclass__": classmethod(refuse)})


def reference_method(name: str) -> Callable[..., Any]:
    """What stands in the place of a reference part that is a method of a class that stays."""

    def refuse(*_: object, **__: object) -> Any:
        raise ReferencePartError(name)

    refuse.__dict__["is_stand_in"] = True
    return refuse


class StrippedModules:
    """Serves the engine's modules that hold reference parts, from source without those parts.

    It finds and it loads; without `importlib.abc` for base classes, which takes as long to load as json and re.
    """

    def __init__(self, modules: dict[str, str]) -> None:
        self._modules = modules

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname not in self._modules:
            return self._room(fullname)
        return importlib.util.spec_from_loader(fullname, self)  # type: ignore[arg-type]  # lacks only what is deprecated

    def _room(self, fullname: str) -> ModuleSpec | None:
        """A package of the course in which such a module lies, and nothing else."""
        if not fullname.startswith("course.") or not any(name.startswith(f"{fullname}.") for name in self._modules):
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)  # type: ignore[arg-type]  # as above

    def create_module(self, spec: ModuleSpec) -> None:
        """A usual module will do."""

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ not in self._modules:
            return
        module.__dict__.update(_reference_part=reference_part, _reference_method=reference_method)
        code = compile(self._modules[module.__name__], f"<{module.__name__} without the reference part>", "exec")
        exec(code, module.__dict__)  # noqa: S102 - the engine's own source


class _PutOff(types.ModuleType):
    """A module that has not been loaded."""

    def __getattr__(self, name: str) -> Any:
        self.__class__ = types.ModuleType  # type: ignore[assignment]  # loaded, it is a module like others
        spec = self.__spec__
        assert spec is not None, "`put_off` found it"
        assert spec.loader is not None, "`put_off` found no folder"
        spec.loader.exec_module(self)
        return getattr(self, name)


def put_off(name: str) -> Callable[[], None]:
    """Make a module that is loaded when something of it is first asked for; or now, by calling what is returned.

    The lazy loader of Python 3.11 would load it as soon as a second file imports it. Where there is no such module,
    nothing is put off, and an import says that there is none.
    """
    spec = importlib.util.find_spec(name)
    if spec is None:
        return lambda: None
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _PutOff
    sys.modules[name] = module

    def load() -> None:
        hasattr(module, "__version__")

    return load


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
