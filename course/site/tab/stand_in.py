"""What `widgets/base.py` needs of anywidget and traitlets, in a tab that has neither.

A view's traits are kept, and what it says goes to whoever put itself into `post`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["Widget", "install", "post"]

post: list[Callable[[int, str], object]] = []
"""Who is told what a view says: its number, and the words as JSON."""

_KINDS: dict[str, type] = {"Unicode": str, "Dict": dict, "List": list, "Int": int, "Bool": bool, "Float": float}


class _Trait:
    """A value that the front end has, too."""

    kind: type = str

    def __init__(self, *given: Any, **_: Any) -> None:
        self.first = given[0] if given and not isinstance(given[0], _Trait) else self.kind()

    def tag(self, **_: Any) -> _Trait:
        return self

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, _type: type) -> Any:
        return self if owner is None else owner.values.get(self.name, self.first)

    def __set__(self, owner: Any, value: Any) -> None:
        owner.values[self.name] = value


class Widget:
    """A view without a kernel: `state` is what a front end begins with, and `hear` takes what it says."""

    comm = None
    _esm = _css = ""
    _num_made = 0

    def __init__(self, **traits: Any) -> None:
        self.values: dict[str, Any] = {}
        self._listeners: list[Callable[[Any, Any, list[Any]], object]] = []
        Widget._num_made += 1
        self.number = Widget._num_made
        for name, value in traits.items():
            setattr(self, name, value)

    def on_msg(self, listener: Callable[[Any, Any, list[Any]], object]) -> None:
        self._listeners.append(listener)

    def send(self, content: Any, _buffers: Any = None) -> None:
        for each in post:
            each(self.number, json.dumps(content))

    def hear(self, content: Any) -> None:
        """Take what the front end says."""
        for listener in self._listeners:
            listener(self, content, [])

    def state(self) -> dict[str, Any]:
        """The traits by name, and the module and the style that draw them."""
        names = {name for each in type(self).__mro__ for name, value in vars(each).items() if isinstance(value, _Trait)}
        return {
            "traits": {name: getattr(self, name) for name in sorted(names)}, "module": self._esm, "style": self._css
        }  # fmt: skip

    def close(self) -> None:
        self._listeners.clear()


def install() -> None:
    """Let `import anywidget` and `import traitlets` find these."""
    anywidget, traitlets = ModuleType("anywidget"), ModuleType("traitlets")
    anywidget.__dict__["AnyWidget"] = Widget
    for name, kind in _KINDS.items():
        traitlets.__dict__[name] = type(name, (_Trait,), {"kind": kind})
    sys.modules.update(anywidget=anywidget, traitlets=traitlets)
