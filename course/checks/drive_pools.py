"""Runs one case of lesson 2 against any buffer, any way to share out, or any local pool, and writes down what was seen.

The same text runs in the child with the learner's part and in the judge with the engine's; so it imports the engine
and the standard library only. A case is a list of operations.

For 2.1, with buffers 0, 1, … that all come home to one place:

    ["new", b]  ["retain", b]  ["recycle", b]
    ["slice", b]                    retains a slice of the buffer and recycles it again

For 2.2, a function:

    ["share", free, [appetite, …]]

For 2.3, a global pool of `total` segments and one pool of the part's:

    ["new", total, required, most]
    ["request"]  ["back", n]        the buffer that has been out longest but n
    ["size", n]  ["destroy"]
    ["borrow", n]  ["return", n]    others take free segments of the global pool, or bring them back
    ["wait", what]                  a listener: "takes" the next buffer, "wants_more", or "refuses"
    ["look"]                        a task asks to be told when it is worth while to look for a buffer

An event is [call] before and [call, {what: text}] after it; "!" stands before the name of an exception, which is there
itself as "raised".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course.grading.kinds import members, whole
from refimpl.errors import LocalUsageError
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.local_pool import LocalBufferPool, NotificationResult
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.segment import MemorySegment

__all__ = ["WATCHED", "label", "run_case"]

WATCHED = (Buffer, BufferSlice, LocalBufferPool, NetworkBufferPool, MemorySegment, NotificationResult)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_REFUSALS = (LocalUsageError, ValueError, IndexError, KeyError, ZeroDivisionError, OverflowError)
_NAMES = "abcd"
_BUFFER_BYTES = 8


def label(op: list[Any]) -> str:
    """An operation as Python writes it."""
    match op:
        case ["new", b]:
            return f"{_NAMES[b]} = new()"
        case ["slice", b]:
            return f"{_NAMES[b]}.read_only_slice().retain().recycle()"
        case ["retain" | "recycle" as name, b]:
            return f"{_NAMES[b]}.{name}()"
        case ["share", free, appetites]:
            shown = str(appetites) if len(appetites) < 40 else f"{appetites[:4]} … ({len(appetites)})"
            return f"share_out({free}, {shown})"
        case ["new", total, required, most]:
            return f"new(total={total}, required={required}, most={most})"
        case ["request"]:
            return "request_buffer()"
        case ["back", n]:
            return f"buffers[{n}].recycle()"
        case ["size", n]:
            return f"set_num_buffers({n})"
        case ["destroy"]:
            return "destroy()"
        case ["borrow" | "return" as name, n]:
            return f"other.{name}({n})"
        case ["wait", what]:
            return f"add_listener({what})"
        case ["look"]:
            return "call_when_available()"
    raise AssertionError(f"no such operation: {op}")


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Do what the case says, appending what is seen to `events`."""
    bench = _Sharing(part) if case[0][0] == "share" else _Buffers(part) if len(case[0]) == 2 else _Pool(part)
    for op in case:
        event: list[Any] = [label(op)]
        events.append(event)
        event.append({**_answer(bench.do, op), **bench.state()})


def _answer(do: Callable[[list[Any]], str], op: list[Any]) -> dict[str, Any]:
    """What came back, or the exception with which the part refused, and its name."""
    try:
        return {"answer": do(op)}
    except _REFUSALS as error:
        name = next(kind.__name__ for kind in _REFUSALS if isinstance(error, kind))
        return {"answer": f"!{name}", "raised": error}


class _Home:
    """Where segments come home to."""

    def __init__(self) -> None:
        self.came: list[Any] = []

    def recycle_segment(self, segment: Any) -> None:
        """Note who came."""
        self.came.append(segment)


class _Buffers:
    """Some buffers, each on a segment of its own."""

    def __init__(self, part: Any) -> None:
        self._part, self._home = part, _Home()
        self._buffers: list[Any] = []

    def do(self, op: list[Any]) -> str:
        """One operation of 2.1."""
        name, b = op
        if name == "new":
            segment = MemorySegment(bytearray(range(_BUFFER_BYTES)), b)
            self._buffers.append(self._part(segment, self._home))
            self._buffers[-1].size = _BUFFER_BYTES
            return ""
        buffer = self._buffers[b]
        if name == "slice":
            buffer.read_only_slice().retain().recycle()
        elif name == "recycle":
            buffer.recycle()
        else:
            given = buffer.retain()
            return "self" if given is buffer else "None" if given is None else type(given).__name__
        return ""

    def state(self) -> dict[str, str]:
        """The count of each buffer, and who came home how often."""
        home = [
            f"{_NAMES[each.id]}" if isinstance(each, MemorySegment) else type(each).__name__ for each in self._home.came
        ]
        freed = sum(isinstance(each.segment, MemorySegment) and each.segment.view is None for each in self._buffers)
        counts = ", ".join(str(each.num_references) for each in self._buffers)
        changed = [_NAMES[number] for number, each in enumerate(self._buffers) if _is_changed(each)]
        where = " ".join(home) + (f" freed={freed}" if freed else "")
        return {"references": counts, "home": where, "changed": " ".join(changed)}


def _is_changed(buffer: Any) -> bool:
    """Whether it has other bytes than at its birth, or says that it has fewer, while somebody may read them."""
    view: Any = getattr(buffer.segment, "view", None)
    is_read: bool = view is not None and buffer.num_references > 0
    return is_read and (buffer.size, bytes(view)) != (_BUFFER_BYTES, bytes(range(_BUFFER_BYTES)))


class _Sharing:
    """A function that shares out."""

    def __init__(self, part: Any) -> None:
        self._part = part
        self._left: list[Any] = []
        self._earlier: list[tuple[Any, str]] = []  # the lists that were given, and what stood in them

    def do(self, op: list[Any]) -> str:
        """One call of 2.2."""
        self._left = list(op[2])
        given = self._part(op[1], self._left)
        if (shared := members(given)) is None:
            return "None" if given is None else type(given).__name__
        shares = _shares(shared)
        if iter(given) is not given:  # what can be read only once is over
            self._earlier.append((given, shares))
        return shares

    def state(self) -> dict[str, str]:
        """The list that was given, as it is afterwards; and whether an answer from before has changed."""
        is_changed = any(_shares(given) != shares for given, shares in self._earlier)
        return {"given": ", ".join(map(str, self._left))} | ({"earlier": "changed"} if is_changed else {})


def _shares(given: Any) -> str:
    return ", ".join(_whole(each) for each in given)


def _whole(value: Any) -> str:
    number = whole(value)
    return f"{value} ({type(value).__name__})"[:40] if number is None else str(number)


class _Listener:
    """Waits for a buffer, and does with it what it was made for."""

    def __init__(self, what: str, buffers: list[Any]) -> None:
        self._what, self._buffers = what, buffers
        self.num_offered = 0

    def on_buffer_available(self, buffer: Any) -> NotificationResult:
        """Take the buffer or not."""
        self.num_offered += 1
        if self._what == "refuses":
            return NotificationResult.BUFFER_NOT_USED
        self._buffers.append(buffer)
        is_more = self._what == "wants_more"
        return NotificationResult.BUFFER_USED_NEED_MORE if is_more else NotificationResult.BUFFER_USED_NO_NEED_MORE

    def on_pool_destroyed(self) -> None:
        """Nothing to clean up."""


class _Pool:
    """A global pool, the part's pool on it, and the buffers that are out, oldest first."""

    def __init__(self, part: Any) -> None:
        self._part = part
        self._global: Any = None
        self._pool: Any = None
        self._buffers: list[Any] = []
        self._others: list[Any] = []
        self._listeners: list[_Listener] = []
        self._num_told = self._num_told_in_vain = 0

    def do(self, op: list[Any]) -> str:
        """One operation of 2.3."""
        pool = self._pool
        match op:
            case ["new", total, required, most]:
                self._global = NetworkBufferPool(total, 8)
                self._pool = self._part(self._global, required, most, "yours")
            case ["request"]:
                buffer = pool.request_buffer()
                if buffer is None:
                    return "None"
                self._buffers.append(buffer)
                return "Buffer"
            case ["back", n]:
                self._buffers.pop(n).recycle()
            case ["size", n]:
                pool.set_num_buffers(n)
            case ["destroy"]:
                pool.destroy()
            case ["borrow", n]:
                self._others += [self._global.request_segment() for _ in range(n)]
            case ["return", n]:
                for _ in range(n):
                    self._global.recycle_segment(self._others.pop())
            case ["wait", what]:
                self._listeners.append(_Listener(what, self._buffers))
                return str(pool.add_listener(self._listeners[-1]))
            case ["look"]:
                pool.call_when_available(self._tell)
        return ""

    def _tell(self) -> None:
        """Whoever is told looks at once, and sleeps again if there is nothing."""
        self._num_told += 1
        self._num_told_in_vain += not self._pool.can_request and not self._pool.is_destroyed

    def state(self) -> dict[str, str]:
        """Where every segment is."""
        pool = self._pool
        if pool is None:
            return {}
        offered = " ".join(str(each.num_offered) for each in self._listeners)
        found = {
            "size": str(pool.size), "requested": str(pool.num_requested), "idle": str(len(pool.idle_segments)),
            "out": str(len(pool.lent)), "free": str(self._global.num_free),
        }  # fmt: skip
        lying = [*pool.idle_segments, *self._global.free_segments, *self._others]
        places = [*(each.id for each in lying), *pool.lent]
        if sorted(places) != sorted(set(places)):
            found["twice"] = "1"
        return found | {"offered": offered, "told": str(self._num_told), "told_in_vain": str(self._num_told_in_vain)}
