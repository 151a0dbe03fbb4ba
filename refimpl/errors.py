"""Every way the engine can fail, by who is at fault.

The caller broke a rule: `LocalUsageError`, and the object is as it was before the call.
The other end broke a rule: `RemoteProtocolError`, and what it sent is lost.
The other end, or the way to it, failed: `RemoteTransportError`, `PartitionNotFoundError`.
The place where checkpoints are kept failed: `StoreError`; what lies there is not as it was written:
`CorruptFileError`; nothing there may be gone on with: `RestoreRefusedError`.
The machine or the configuration cannot do it: the other classes here.
A broken law of the engine itself is an `AssertionError` with its story (see `laws`).

Numbers travel as attributes, so that a test or a widget need not parse a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

__all__ = [
    "USER_CODE_RAISES",
    "BuffersStillOutError",
    "ConfigError",
    "CorruptFileError",
    "DiskBudgetError",
    "InsufficientBuffersError",
    "InsufficientSlotsError",
    "KeyExistsError",
    "LeadershipLostError",
    "LocalUsageError",
    "NoSuchKeyError",
    "PartitionNotFoundError",
    "PoolDestroyedError",
    "RemoteProtocolError",
    "RemoteTransportError",
    "RestoreRefusedError",
    "SluiceError",
    "SpillError",
    "StoreError",
    "TransactionLostError",
    "UserCodeError",
    "described",
    "failure_of",
    "is_engines",
    "shown",
    "speaks_for_itself",
]

USER_CODE_RAISES = (Exception, SystemExit, GeneratorExit)
"""What of a user's function ends as a `UserCodeError`, see `failure_of`."""

_MAX_SHOWN = 1000
_name_of: Callable[[type], str] = type.__dict__["__name__"].__get__  # also if a metaclass says otherwise


class SluiceError(Exception):
    """The root of everything the engine raises on purpose. Survives pickling, attributes and cause."""

    def __reduce__(self) -> tuple[object, ...]:
        cause = None if self.__cause__ is self else self.__cause__
        return _made_again, (type(self), self.args, self.__dict__, cause)


class LocalUsageError(SluiceError):
    """The caller broke a rule of the object it called; the object's state is unchanged."""


class RemoteProtocolError(SluiceError):
    """Bytes from the other end of a connection cannot be what such an end sends."""


class RemoteTransportError(SluiceError):
    """The other end says that it failed, or the connection to it was lost."""


class PartitionNotFoundError(SluiceError):
    """The other end does not have the partition, however often it was asked.

    Attributes:
        partition: its id as on the wire, in hex: data set, number, producer.
        num_requests: how often it was asked for.
    """

    def __init__(self, partition: str, num_requests: int) -> None:
        super().__init__(
            f"Partition {partition} not found, asked {num_requests} times; see whether its "
            f"producer runs, or raise request_backoff_max_ms if it only starts late"
        )
        self.partition = partition
        self.num_requests = num_requests


class ConfigError(LocalUsageError, ValueError):
    """An option has a value the engine cannot work with.

    Attributes:
        option: name of the `Config` field.
        value: the value that was refused.
    """

    def __init__(self, option: str, value: object, expected: str) -> None:
        super().__init__(f"{option}={value!r} cannot work: {expected}")
        self.option = option
        self.value = value


class PoolDestroyedError(LocalUsageError):
    """A buffer was requested from a pool that has been destroyed."""


class InsufficientBuffersError(SluiceError):
    """A pool cannot be promised the segments it requires, so the job cannot start.

    Attributes:
        owner: who asked, such as `map-1`.
        num_required, num_free, num_total: segments; free are those that no pool was promised.
        segment_size_bytes: size of one segment.
    """

    def __init__(self, owner: str, num_required: int, num_free: int, num_total: int, segment_size_bytes: int) -> None:
        super().__init__(
            f"Insufficient number of network buffers: required {num_required}, but only "
            f"{num_free} available. {owner} needs {num_required} buffers of "
            f"{segment_size_bytes} B, {num_free} of {num_total} are promised to nobody; "
            f"lower the parallelism or raise num_buffers"
        )
        self.owner = owner
        self.num_required = num_required
        self.num_free = num_free
        self.num_total = num_total
        self.segment_size_bytes = segment_size_bytes


class BuffersStillOutError(SluiceError):
    """Segments are promised to a channel, but those who give them up still have them: deploy again later.

    Attributes:
        owner: who asked, such as `map-1`.
        num_required, num_free: segments; free are those that lie in the pool now.

    Flink:   NetworkBufferPool.requestMemorySegments (runtime.io.network.buffer), 1.11.4
    Differs: Flink waits for 30 s, by default, before it says so.
    """

    def __init__(self, owner: str, num_required: int, num_free: int) -> None:
        super().__init__(
            f"{owner} needs {num_required} buffers of its own and {num_free} are free now; others have what they "
            f"are to give up still in use: deploy again when their buffers have come home"
        )
        self.owner = owner
        self.num_required = num_required
        self.num_free = num_free


class InsufficientSlotsError(SluiceError):
    """A cluster cannot run so many tasks at one time as the job has TaskManagers.

    Attributes:
        num_required: how many slots the job needs.
        num_slots: how many there are.

    Flink:   NoResourceAvailableException (runtime.jobmanager.scheduler), 1.11.4
    """

    def __init__(self, num_required: int, num_slots: int) -> None:
        super().__init__(
            f"the job needs a slot for each of its {num_required} TaskManagers at one time, and the cluster has "
            f"{num_slots}; give it more cores, or run the job on fewer TaskManagers"
        )
        self.num_required = num_required
        self.num_slots = num_slots


class TransactionLostError(SluiceError):
    """A transaction that a checkpoint holds cannot be committed.

    Attributes:
        pending: the name under which it should wait.
        final: the name under which it should be seen.
    """

    def __init__(self, pending: str, final: str, why: str) -> None:
        super().__init__(f"{pending} cannot be committed as {final}: {why}")
        self.pending = pending
        self.final = final


class SpillError(SluiceError):
    """A record too large for memory could not be kept in a temporary file.

    Attributes:
        record_bytes: length of the record.
        directory: where the file should have gone.
    """

    def __init__(self, record_bytes: int, directory: str, reason: str) -> None:
        super().__init__(
            f"a record of {record_bytes} B must be spilled to disk, but {directory} {reason}; "
            f"free some space or set spill_directory to a larger disk"
        )
        self.record_bytes = record_bytes
        self.directory = directory


class DiskBudgetError(SluiceError):
    """A blocking result would take more disk than its TaskManager may use.

    Attributes:
        partition: the name of the result.
        num_bytes: what it wanted to write.
        num_used, num_most: bytes that results take already, and may take.
    """

    def __init__(self, partition: str, num_bytes: int, num_used: int, num_most: int) -> None:
        super().__init__(
            f"the blocking result {partition} has {num_bytes} B more to write, and results take {num_used} of "
            f"{num_most} B on this TaskManager; raise max_spill_bytes, compress them, or let fewer exchanges block"
        )
        self.partition = partition
        self.num_bytes = num_bytes
        self.num_used = num_used
        self.num_most = num_most


class StoreError(SluiceError):
    """The place where checkpoints are kept did not do what it was asked, or did not say whether it did.

    Attributes:
        key: of the file in question.
        reason: what was the matter.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class KeyExistsError(StoreError):
    """There is a file of this name, and it was not to be replaced."""

    def __init__(self, key: str, reason: str = "exists already") -> None:
        super().__init__(key, reason)


class NoSuchKeyError(StoreError):
    """There is no file of this name."""

    def __init__(self, key: str, reason: str = "missing") -> None:
        super().__init__(key, reason)


class CorruptFileError(SluiceError):
    """A file of a checkpoint is not as it was written, or was written by an engine this one cannot read.

    Attributes:
        file: its key in the store.
        why: such as `short by 3 bytes`.
    """

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file}: {why}")
        self.file = file
        self.why = why


class RestoreRefusedError(SluiceError):
    """There are checkpoints, and none that this job may go on from; starting empty would lose what they hold.

    Attributes:
        problems: what was found, such as `chk-7/_metadata: short by 3 bytes`.
    """

    def __init__(self, reason: str, problems: Sequence[str] = ()) -> None:
        super().__init__(reason + "".join(f"\n  {problem}" for problem in problems))
        self.problems = tuple(problems)


class LeadershipLostError(SluiceError):
    """Somebody else leads the job now; what this leader has not yet told anybody never was."""


class UserCodeError(SluiceError):
    """Code the user wrote raised an exception while it had a record in hand.

    Attributes:
        operator: name of the operator, such as `map`.
        subtask: index of the parallel instance, from 0.
        record: the record as the user's code received it; `None` if it had none yet.
    """

    def __init__(self, operator: str, subtask: int, record: object, cause: BaseException) -> None:
        super().__init__(f"{operator}, subtask {subtask}, raised {described(cause)} while processing {shown(record)}")
        self.operator = operator
        self.subtask = subtask
        self.record = record


def failure_of(operator: str, subtask: int, record: object, cause: BaseException) -> UserCodeError:
    """The error for what a user's function raised. A `sys.exit()` there would look like success; one that says that it
    failed is raised as it is, with a note where it comes from.
    """
    error = UserCodeError(operator, subtask, record, cause)
    if issubclass(type(cause), SystemExit) and _has_failed(cause, str(error)):
        raise cause
    return error


def _has_failed(ended: BaseException, note: str) -> bool:
    """Whether a process that ends with this `SystemExit` has another status than 0, and the note can be taken down."""
    try:
        if not getattr(ended, "__notes__", None):  # else an operator behind this one has left one
            ended.add_note(note)
        code: object = vars(SystemExit)["code"].__get__(ended)
        return bool(code & 0xFF if isinstance(code, int) else code)  # the system keeps 8 bits of a number
    except BaseException:  # noqa: BLE001 - the user's code: it may be anything, and do anything when it is asked
        return False


def described(error: BaseException) -> str:
    """The type of `error` and about 1000 characters of what it says, which is the user's code too and may fail."""
    name = _name_of(type(error))
    try:
        said = "".join([str(error)])  # a plain string, whatever `str` has answered
    except BaseException as trouble:  # noqa: BLE001 - what is told here ends the run anyway, and has to be told
        return f"{name}, which cannot be shown ({_name_of(type(trouble))})"
    if len(said) > _MAX_SHOWN:
        said = f"{said[:_MAX_SHOWN]}… ({len(said)} characters)"
    return f"{name}: {said}"


def speaks_for_itself(error: BaseException) -> bool:
    """Whether the name of an operator would add nothing to `error`.

    True of what the engine raises, and of a broken law; false of the user's own exceptions, and of
    a caller's mistake, since the caller may be the user's code.
    """
    kind = type(error)  # and not `isinstance`, which asks the user's exception too
    if issubclass(kind, LocalUsageError):
        return issubclass(kind, PoolDestroyedError)
    return issubclass(kind, SluiceError | AssertionError)


def is_engines(error: BaseException) -> TypeGuard[SluiceError]:
    """Whether the engine has raised it on purpose, for whoever calls the user's code."""
    return issubclass(type(error), SluiceError) and speaks_for_itself(error)


def shown(record: object) -> str:
    """The record in at most 200 characters; its own `repr` is the user's code too, and may fail."""
    try:
        said = "".join([repr(record)])
    except BaseException as error:  # noqa: BLE001 - as in `described`
        return f"a {_name_of(type(record))} whose repr raised {_name_of(type(error))}"
    return said if len(said) <= 200 else f"{said[:200]}… ({len(said)} characters)"


def _made_again(
    kind: type[SluiceError],
    args: tuple[object, ...],
    attributes: dict[str, object],
    cause: BaseException | None,
) -> SluiceError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    error.__cause__ = cause
    return error
