"""Exceptions as Java writes them: an ErrorResponse holds one, and nothing says how long it is.

So whoever reads one must follow Java's serialization format far enough to know where the object
ends; on the way there lie the name of its class and its message, which is what a person wants.
Nothing is ever made of what is read but text. How they are written is in `java_writer`.

Source:  Java Object Serialization Specification, version 6.0, chapter 6 (stream protocol)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from refimpl.errors import RemoteProtocolError

__all__ = ["JavaError", "read_java_error", "throwable_length"]

_MAGIC = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASSDESC, _OBJECT, _STRING, _ARRAY = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75
_CLASS, _BLOCK, _END_BLOCK, _RESET, _LONG_BLOCK = 0x76, 0x77, 0x78, 0x79, 0x7A
_LONG_STRING, _PROXY, _ENUM = 0x7C, 0x7D, 0x7E
_FIRST_HANDLE = 0x7E0000
_HAS_WRITE_METHOD, _IS_SERIALIZABLE, _IS_EXTERNAL = 0x01, 0x02, 0x04
_SIZES = {"B": 1, "C": 2, "D": 8, "F": 4, "I": 4, "J": 8, "S": 2, "Z": 1}
_MAX_DEPTH = 100
_PARTITION_NOT_FOUND = "org.apache.flink.runtime.io.network.partition.PartitionNotFoundException"


@dataclass(frozen=True, slots=True)
class JavaError:
    """What an exception of the other end says: the name of its class, its message, and its cause."""

    class_name: str
    message: str | None = None
    cause: JavaError | None = None

    @property
    def is_not_found(self) -> bool:
        """Whether it says that a partition is not there, or not yet."""
        return self.class_name == _PARTITION_NOT_FOUND

    def __str__(self) -> str:
        text = self.class_name if self.message is None else f"{self.class_name}: {self.message}"
        return text if self.cause is None else f"{text}; caused by {self.cause}"


@dataclass(slots=True)
class _ClassDesc:
    name: str = ""
    flags: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list)
    parent: _ClassDesc | None = None
    num_ancestors: int = _MAX_DEPTH  # until its parent is known, so that nobody can be its child before


@dataclass(slots=True)
class _Object:
    kind: _ClassDesc
    values: dict[str, object] = field(default_factory=dict)


def throwable_length(data: memoryview) -> int:
    """How many bytes at the start of `data` are one serialized object.

    Raises:
        RemoteProtocolError: they are none.
    """
    parser = _Parser(data)
    parser.content()
    return parser.position


def read_java_error(data: bytes | memoryview) -> JavaError:
    """The exception whose serialized form `data` is.

    Raises:
        RemoteProtocolError: it is none.
    """
    found = _Parser(memoryview(data)).content()
    if not isinstance(found, _Object):
        raise RemoteProtocolError("an error is no serialized object")
    return _described(found, 0)


def _described(thrown: _Object, depth: int) -> JavaError:
    message, cause = thrown.values.get("detailMessage"), thrown.values.get("cause")
    has_cause = isinstance(cause, _Object) and cause is not thrown and depth < 5
    return JavaError(
        thrown.kind.name,
        message if isinstance(message, str) else None,
        _described(cause, depth + 1) if has_cause and isinstance(cause, _Object) else None,
    )


class _Parser:
    """Reads one object graph; remembers what later bytes may refer back to."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._handles: list[object] = []
        self._depth = 0
        self.position = 0
        if bytes(self._take(4)) != _MAGIC:
            raise RemoteProtocolError("an error does not start as a Java object stream does")

    def content(self) -> object:
        """The next object, string, array, class or null."""
        return self._content(self._number(">B"))

    def _content(self, tag: int) -> object:
        if self._depth >= _MAX_DEPTH:
            raise RemoteProtocolError("a serialized error is nested too deeply")
        self._depth += 1
        try:
            return self._tagged(tag)
        finally:
            self._depth -= 1

    def _tagged(self, tag: int) -> object:
        if tag == _NULL:
            return None
        if tag == _REFERENCE:
            return self._reference()
        if tag == _STRING:
            return self._remember(self._text(self._number(">H")))
        if tag == _LONG_STRING:
            return self._remember(self._text(self._number(">q")))
        if tag == _OBJECT:
            return self._object()
        if tag == _ARRAY:
            return self._array()
        if tag == _CLASSDESC:
            return self._new_class()
        if tag == _CLASS:
            return self._remember(self._class())
        if tag == _ENUM:
            kind = self._class()
            index = self._place()
            self._handles[index] = name = self.content()
            if not isinstance(name, str):
                raise RemoteProtocolError("an enum constant of an error has no name")
            return f"{kind.name if kind else '?'}.{name}"
        raise RemoteProtocolError(f"{tag:#x} at byte {self.position - 1} of an error is no Java type code")

    # -- what an object is made of -----------------------------------------------------------------

    def _object(self) -> _Object:
        kind = self._class()
        if kind is None:
            raise RemoteProtocolError("an object of an error has no class")
        made = _Object(kind)
        self._remember(made)
        lineage = []
        step: _ClassDesc | None = kind
        while step is not None:
            lineage.append(step)
            step = step.parent
        for each in reversed(lineage):  # the oldest ancestor's fields come first
            if each.flags & _IS_EXTERNAL:
                self._annotations()
                continue
            for name, code in each.fields:
                made.values[name] = self._value(code)
            if each.flags & _HAS_WRITE_METHOD:
                self._annotations()
        return made

    def _array(self) -> list[object]:
        kind = self._class()
        made: list[object] = []
        self._remember(made)
        length = self._number(">i")
        if length < 0 or length > len(self._data) - self.position:
            raise RemoteProtocolError(f"an array of {length} members does not fit the error")
        code = kind.name[1:2] if kind is not None else ""
        if code in _SIZES:
            self._take(length * _SIZES[code])  # numbers tell nobody anything
        else:
            made.extend(self._value(code) for _ in range(length))
        return made

    def _class(self) -> _ClassDesc | None:
        found = self.content()
        if found is not None and not isinstance(found, _ClassDesc):
            raise RemoteProtocolError("a serialized error has something else where a class must be")
        return found

    def _new_class(self) -> _ClassDesc:
        made = _ClassDesc(self._text(self._number(">H")))
        self._take(8)  # the version of the class
        self._remember(made)
        made.flags = self._number(">B")
        for _ in range(self._number(">H")):
            code = chr(self._number(">B"))
            name = self._text(self._number(">H"))
            if code in "[L":
                self.content()  # the type's name
            made.fields.append((name, code))
        self._annotations()
        made.parent = self._parent_of(made)
        return made

    def _parent_of(self, made: _ClassDesc) -> _ClassDesc | None:
        """The class above `made`, which cannot be `made` again, however far up."""
        parent = self._class()
        made.num_ancestors = 0 if parent is None else parent.num_ancestors + 1
        if made.num_ancestors > _MAX_DEPTH:
            raise RemoteProtocolError("a class of an error has no end of ancestors")
        return parent

    def _value(self, code: str) -> object:
        if code in _SIZES:
            return bytes(self._take(_SIZES[code]))
        if code in ("[", "L"):
            return self.content()
        raise RemoteProtocolError(f"{code!r} is no type of a Java field")

    def _annotations(self) -> None:
        """What a class writes besides its fields, up to its end mark."""
        while True:
            tag = self._number(">B")
            if tag == _END_BLOCK:
                return
            if tag == _BLOCK:
                self._take(self._number(">B"))
            elif tag == _LONG_BLOCK:
                self._take(self._number(">i"))
            else:
                self._content(tag)

    # -- bytes and handles -------------------------------------------------------------------------

    def _remember(self, found: object) -> object:
        self._handles.append(found)
        return found

    def _place(self) -> int:
        self._handles.append(None)
        return len(self._handles) - 1

    def _reference(self) -> object:
        index = self._number(">i") - _FIRST_HANDLE
        if not 0 <= index < len(self._handles):
            raise RemoteProtocolError("a serialized error refers to something it does not have")
        return self._handles[index]

    def _number(self, layout: str) -> int:
        return int(struct.unpack(layout, self._take(struct.calcsize(layout)))[0])

    def _text(self, length: int) -> str:
        """Java's own UTF-8: no zero byte, and each half of a surrogate pair by itself."""
        raw = bytes(self._take(length)).replace(b"\xc0\x80", b"\0")
        try:
            units = raw.decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
        except UnicodeDecodeError:
            return raw.decode("utf-8", "replace")
        return units.decode("utf-16-be", "replace")

    def _take(self, length: int) -> memoryview:
        end = self.position + length
        if length < 0 or end > len(self._data):
            raise RemoteProtocolError(f"a serialized error ends at byte {len(self._data)}, too early")
        taken = self._data[self.position : end]
        self.position = end
        return taken
