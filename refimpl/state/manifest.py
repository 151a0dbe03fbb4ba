"""The manifest: what a checkpoint consists of. A checkpoint is true only when this file is durable.

It is text: one line of canonical JSON (keys sorted, no spaces, no floats), and a line with its SHA-256. The keys of
files are those in the store without the job's part, so that a folder can be copied under another job's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from refimpl.errors import CorruptFileError, LocalUsageError
from refimpl.state.sections import SectionKind
from refimpl.state.store import check_key

__all__ = [
    "ENGINE",
    "FORMAT",
    "CheckpointKind",
    "Manifest",
    "OperatorRecord",
    "StateFile",
    "StateRecord",
    "elements_key",
]

FORMAT = "sluice-checkpoint/1"
ENGINE = "sluice 0.1.0"


class CheckpointKind(Enum):
    """Why it was taken: in time, because somebody asked for it, or because the job has ended."""

    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class StateFile:
    """The state file of one subtask. `elements` says how many each of its lists has, by `elements_key`.

    `channel_state` is how many of its bytes were in flight: 0 unless the checkpoint was unaligned.
    """

    key: str
    size: int
    sha256: str
    elements: Mapping[str, int] = field(default_factory=dict)
    channel_state: int = 0


@dataclass(frozen=True, slots=True)
class StateRecord:
    """One named state of an operator, and what its values are written with."""

    name: str
    kind: str
    serializer: str
    version: int = 1
    pickled: bool = False


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    """One operator by its uid: what it is, how many key groups and subtasks it has, and the file of each subtask.

    `None` stands for a subtask that had nothing to write.
    """

    uid: str
    type_name: str
    max_parallelism: int
    parallelism: int
    states: tuple[StateRecord, ...]
    subtasks: tuple[StateFile | None, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint consists of, times in ms since 1970. `fsync` is false if nobody waited for the disk.

    Flink:   CompletedCheckpoint, MetadataV3Serializer (runtime.checkpoint), 1.11.4
    Differs: text with a checksum; Flink's is binary and has none.
    """

    job: str
    run: str
    epoch: int
    checkpoint_id: int
    kind: CheckpointKind
    started_ms: int
    completed_ms: int
    operators: tuple[OperatorRecord, ...]
    fsync: bool = True
    engine: str = ENGINE

    def files(self) -> dict[str, StateFile]:
        """All files by key; a chain of operators has one of each subtask."""
        each = (file for operator in self.operators for file in operator.subtasks if file is not None)
        return {file.key: file for file in each}

    @property
    def channel_state(self) -> int:
        """Bytes that were in flight, in all files."""
        return sum(file.channel_state for file in self.files().values())

    def to_bytes(self) -> bytes:
        """The text of the manifest.

        Raises:
            LocalUsageError: two operators have one uid.
        """
        uids = [operator.uid for operator in self.operators]
        if twice := sorted({uid for uid in uids if uids.count(uid) > 1}):
            raise LocalUsageError(f"several operators are called {twice[0]!r}; give each a uid of its own")
        return _sealed({**asdict(self), "kind": self.kind.value, "format": FORMAT})

    @staticmethod
    def from_bytes(raw: bytes, file: str) -> Manifest:
        """The manifest of which this is the text.

        Raises:
            CorruptFileError: it is damaged, or of a format that this engine does not read; `file` is named.
        """
        values = _opened(raw, file)
        _check_format(values.pop("format", None), file)
        try:
            return _manifest(values)
        except (LocalUsageError, TypeError, ValueError) as error:
            raise CorruptFileError(file, f"the manifest does not say what it should: {error}") from None


def elements_key(operator: str, kind: SectionKind, name: str) -> str:
    """What the elements of a list are counted under."""
    return f"{kind.name.lower()}/{quote(operator, safe='', errors='surrogatepass')}/{name}"


def _sealed(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    body = text.encode("utf-8") + b"\n"
    return body + sha256(body).hexdigest().encode() + b"\n"


def _opened(raw: bytes, file: str) -> dict[str, Any]:
    body, seal = raw[:-65], raw[-65:]
    if not body.endswith(b"\n") or seal != sha256(body).hexdigest().encode() + b"\n":
        raise CorruptFileError(file, "manifest: checksum, or its end is missing")
    try:
        values = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise CorruptFileError(file, "the manifest is no JSON") from None
    if not isinstance(values, dict):
        raise CorruptFileError(file, "the manifest is no JSON object")
    return values


def _check_format(found: object, file: str) -> None:
    known = re.fullmatch(r"sluice-checkpoint/(\d{1,9})", found, re.ASCII) if isinstance(found, str) else None
    if known is None:
        raise CorruptFileError(file, f"{found!r} is no format of a manifest")
    if found != FORMAT:
        raise CorruptFileError(file, f"is of format {found}, and this engine reads {FORMAT}")


# -- values of JSON that must be of a type ---------------------------------------------------------


def _manifest(values: Mapping[str, Any]) -> Manifest:
    found = _plain(Manifest, values, kind=str, operators=list)
    operators = tuple(_operator(each) for each in found.pop("operators"))
    return Manifest(**{**found, "kind": CheckpointKind(found["kind"])}, operators=operators)


def _operator(values: Mapping[str, Any]) -> OperatorRecord:
    found = _plain(OperatorRecord, values, states=list, subtasks=list)
    states = tuple(_state(each) for each in found.pop("states"))
    subtasks = tuple(None if each is None else _file(each) for each in found.pop("subtasks"))
    if len(subtasks) != found["parallelism"]:
        raise ValueError(f"{len(subtasks)} subtasks of operator {found['uid']!r} of parallelism {found['parallelism']}")
    return OperatorRecord(**found, states=states, subtasks=subtasks)


def _state(values: Mapping[str, Any]) -> StateRecord:
    found = _plain(StateRecord, values)
    if found["kind"] not in {kind.name.lower() for kind in SectionKind}:
        raise ValueError(f"{found['kind']!r} is no kind of state")
    return StateRecord(**found)


def _file(values: Mapping[str, Any]) -> StateFile:
    found = _plain(StateFile, {"channel_state": 0, **values}, elements=dict)  # older manifests do not speak of it
    check_key(found["key"])
    for name, count in found["elements"].items():
        if type(count) is not int or count < 0:
            raise ValueError(f"{count!r} elements of {name!r}")
    return StateFile(**found)


def _plain(shape: type[Any], values: Mapping[str, Any], /, **others: type) -> dict[str, Any]:
    """The values of a class of the manifest: exactly its fields, each of its type; numbers are not negative."""
    if not isinstance(values, dict):
        raise TypeError(f"{values!r} is no {shape.__name__}")
    types = {each.name: {"int": int, "bool": bool}.get(str(each.type), str) for each in fields(shape)} | others
    if values.keys() != types.keys():
        raise ValueError(f"{shape.__name__} has the fields {sorted(values)}, and not {sorted(types)}")
    for name, value in values.items():
        if type(value) is not types[name] or (type(value) is int and value < 0):
            raise ValueError(f"{name} of {shape.__name__} cannot be {value!r}")
    return dict(values)
