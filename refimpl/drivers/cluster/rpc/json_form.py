"""Values as JSON, by the fields that they are declared with: a dataclass that is new needs nothing here.

    a value         in JSON
    dataclass       an object with its fields, all of them and no others; of several kinds, `is` names the kind
    tuple           a list
    dict            an object, its keys are strings
    Enum            the name of the member
    bytes           Base64
    None            null

Nothing that is read is trusted: what is not exactly of this form is refused, and the refusal says where it is not.
"""

from __future__ import annotations

import base64
import binascii
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, get_args, get_origin

from refimpl.errors import LocalUsageError, RemoteProtocolError

__all__ = ["JsonForm"]

_KIND = "is"
_INT64 = 1 << 63


class JsonForm:
    """Values of dataclass `kind` <-> JSON. A field that is a type variable is one of `kinds`, each a dataclass.

    Raises:
        LocalUsageError: a field is of a type that has no form here.
    """

    def __init__(self, kind: type[Any], kinds: object = None) -> None:
        self._kind = kind
        given = {} if kinds is None else dict.fromkeys(_variables_of(kind), _one_of(_members(kinds)))
        self._form = _dataclass_form(kind, given)

    def write(self, value: object) -> bytes:
        """The value in JSON.

        Raises:
            LocalUsageError: something in it is not of the type it is declared as.
        """
        try:
            return json.dumps(self._form.write(value), allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, AttributeError) as error:
            raise LocalUsageError(f"this has no form in JSON: {error}: {value!r:.300}") from error

    def read(self, data: bytes) -> Any:
        """What `write` was given.

        Raises:
            RemoteProtocolError: this is no such thing; says why.
        """
        what = self._kind.__name__
        try:
            value = json.loads(data.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise RemoteProtocolError(f"this is no {what}: {error or type(error).__name__}") from error
        return self._form.read(value, what)


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of one type are written and read; `read` is told where in the whole it is."""

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


# -- forms of types ------------------------------------------------------------------------------------


def _form_of(declared: Any) -> _Form:
    """The form of what a field is declared as."""
    members = _members(declared)
    if len(members) > 1:
        return _union_form(members)
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is tuple:
        return _sequence_form(_form_of(arguments[0])) if arguments[1:] == (...,) else _tuple_form(arguments)
    if origin is not None and issubclass(origin, Mapping) and arguments[0] is str:
        return _mapping_form(_form_of(arguments[1]))
    if is_dataclass(declared) and isinstance(declared, type):
        return _dataclass_form(declared)
    if isinstance(declared, type) and issubclass(declared, Enum):
        return _enum_form(declared)
    if declared is bytes:
        return _Form(_write_bytes, _read_bytes)
    if declared in (str, int, bool, float):
        return _plain_form(declared)
    raise LocalUsageError(f"a message cannot have a field that is {declared!r}")


def _members(declared: Any) -> list[Any]:
    """What a union is made of; of anything else, itself."""
    is_union = get_origin(declared) in (types.UnionType, typing.Union)
    return list(get_args(declared)) if is_union else [declared]


def _union_form(members: list[Any]) -> _Form:
    """Dataclasses, told apart by name, or one type; and perhaps nothing."""
    some = [each for each in members if each is not types.NoneType]
    form = _form_of(some[0]) if len(some) == 1 else _one_of(some)
    if len(some) == len(members):
        return form
    return _Form(
        lambda value: None if value is None else form.write(value),
        lambda data, where: None if data is None else form.read(data, where),
    )


def _one_of(kinds: list[Any]) -> _Form:
    """A dataclass of several kinds, named by `is`."""
    for kind in kinds:
        if not (isinstance(kind, type) and is_dataclass(kind)):
            raise LocalUsageError(f"of several kinds each has to be a dataclass, and {kind!r} is none")
    forms = {kind.__name__: (kind, _dataclass_form(kind)) for kind in kinds}
    if len(forms) < len(kinds):
        raise LocalUsageError(f"two kinds have the same name: {sorted(kind.__name__ for kind in kinds)}")

    def write(value: Any) -> Any:
        kind, form = forms.get(type(value).__name__, (None, None))
        if form is None or type(value) is not kind:
            raise TypeError(f"{type(value).__name__} is no kind of message here")
        return {_KIND: kind.__name__, **form.write(value)}

    def read(data: Any, where: str) -> Any:
        rest = dict(_expect(dict, data, where))
        name = rest.pop(_KIND, None)
        if not isinstance(name, str) or name not in forms:
            raise RemoteProtocolError(f"{where} is {name!r:.80}, and there is no such kind of message")
        return forms[name][1].read(rest, f"{where} {name}")

    return _Form(write, read)


def _dataclass_form(kind: Any, given: Mapping[str, _Form] | None = None) -> _Form:
    """An object with the fields of `kind`; the forms of some may be given."""
    hints = typing.get_type_hints(kind)
    forms = {
        each.name: (given or {}).get(each.name) or _form_of(hints[each.name]) for each in fields(kind) if each.init
    }
    if len(forms) < len(fields(kind)):
        raise LocalUsageError(f"{kind.__name__} has fields that are not given when it is made")

    def write(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{value!r:.80} is no {kind.__name__}")
        return {name: form.write(getattr(value, name)) for name, form in forms.items()}

    def read(data: Any, where: str) -> Any:
        _expect(dict, data, where)
        if (wrong := data.keys() ^ forms.keys()) != set():
            raise RemoteProtocolError(f"{where} has or lacks the field {min(wrong)!r:.80}")
        values = {name: form.read(data[name], f"{where}.{name}") for name, form in forms.items()}
        try:
            return kind(**values)
        except LocalUsageError as error:
            raise RemoteProtocolError(f"{where}: {error}") from error

    return _Form(write, read)


def _sequence_form(member: _Form) -> _Form:
    def read(data: Any, where: str) -> Any:
        return tuple([member.read(each, f"{where}[{at}]") for at, each in enumerate(_expect(list, data, where))])

    return _Form(lambda value: [member.write(each) for each in _given(tuple, value)], read)


def _tuple_form(declared: tuple[Any, ...]) -> _Form:
    forms = [_form_of(each) for each in declared]

    def write(value: Any) -> Any:
        return [form.write(each) for form, each in zip(forms, _given(tuple, value), strict=True)]

    def read(data: Any, where: str) -> Any:
        if len(_expect(list, data, where)) != len(forms):
            raise RemoteProtocolError(f"{where} has {len(data)} members, not {len(forms)}")
        return tuple(
            [form.read(each, f"{where}[{at}]") for at, (form, each) in enumerate(zip(forms, data, strict=True))]
        )

    return _Form(write, read)


def _mapping_form(member: _Form) -> _Form:
    def read(data: Any, where: str) -> Any:
        return {key: member.read(each, f"{where}.{key:.80}") for key, each in _expect(dict, data, where).items()}

    return _Form(lambda value: {_given(str, key): member.write(each) for key, each in value.items()}, read)


def _enum_form(kind: type[Enum]) -> _Form:
    def read(data: Any, where: str) -> Any:
        if not isinstance(data, str) or data not in kind.__members__:
            raise RemoteProtocolError(f"{where} is {data!r:.80}, and that is no {kind.__name__}")
        return kind[data]

    return _Form(lambda value: _given(kind, value).name, read)


def _plain_form(kind: type) -> _Form:
    def read(data: Any, where: str) -> Any:
        value = _expect(
            kind, float(data) if kind is float and type(data) is int and abs(data) < _INT64 else data, where
        )
        if type(value) is int and not -_INT64 <= value < _INT64:
            raise RemoteProtocolError(f"{where} is an int of more than 64 bits")
        return value

    def write(value: Any) -> Any:
        if kind is float and type(value) is int:
            return value
        if type(_given(kind, value)) is int and not -_INT64 <= value < _INT64:
            raise ValueError(f"{value} has more than 64 bits")
        return value

    return _Form(write, read)


def _write_bytes(value: Any) -> str:
    return base64.b64encode(_given(bytes, value)).decode()


def _read_bytes(data: Any, where: str) -> bytes:
    try:
        return base64.b64decode(_expect(str, data, where), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RemoteProtocolError(f"{where} is no Base64: {error}") from error


# -- helpers -------------------------------------------------------------------------------------------


def _variables_of(kind: type[Any]) -> list[str]:
    """The fields that are of some type, to be named when the form is made."""
    return [name for name, hint in typing.get_type_hints(kind).items() if isinstance(hint, typing.TypeVar)]


def _expect(kind: type, data: Any, where: str) -> Any:
    """What has come, if it is of this very type: true is no number here."""
    if type(data) is not kind:
        raise RemoteProtocolError(f"{where} is {data!r:.80}, and not {kind.__name__}")
    return data


def _given(kind: type, value: Any) -> Any:
    """What is to be sent, if it is of this very type."""
    if type(value) is not kind:
        raise TypeError(f"{value!r:.80} is no {kind.__name__}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")
