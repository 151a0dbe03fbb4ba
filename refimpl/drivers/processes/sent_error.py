"""An error on its way to another process.

An exception of the user's is code of the user's: it may refuse to be shown, packed or made again, each in any way, and
what it then raises need be no `Exception`. Rule of this file: whatever it does, the other process learns its class and
what it said.
"""

from __future__ import annotations

import copy
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from refimpl.errors import SluiceError, UserCodeError, described, shown

__all__ = ["SentError"]

_MOST_OF_STORY = 20_000


@dataclass(frozen=True, slots=True)
class SentError:
    """An error as it crosses a pipe: what it says, where it comes from unless that is the engine, and itself packed.

    `forms` are the error as far as it can be sent, and then with stand-ins for all that is the user's in it.
    """

    said: str
    story: str
    forms: tuple[bytes, ...]

    @classmethod
    def of(cls, error: BaseException) -> SentError:
        """The error, to be sent."""
        is_engines = issubclass(type(error), SluiceError) and not issubclass(type(error), UserCodeError)
        story = "" if is_engines else f"in process {os.getpid()}:\n{_story_of(error)}"
        fullest = _packed(lambda: error) or _packed(lambda: _with_stand_ins(error, _can_be_sent))
        forms = fullest, _packed(lambda: _with_stand_ins(error, lambda _part: False))
        return cls(described(error), story, tuple(form for form in forms if form is not None))

    def error(self) -> BaseException:
        """The error as far as it can be made again here."""
        for form in self.forms:
            if (error := _unpacked(form, self.story)) is not None:
                return error
        error = SluiceError(self.said)
        error.add_note(self.story)
        return error


def _with_stand_ins(error: BaseException, is_kept: Callable[[object], bool]) -> BaseException:
    """The error with what is said of its cause and its record in their place, unless they are kept."""
    if not issubclass(type(error), SluiceError):
        return SluiceError(described(error))
    error, cause = copy.copy(error), error.__cause__
    error.__cause__ = cause if cause is None or is_kept(cause) else SluiceError(described(cause))
    if isinstance(error, UserCodeError) and not is_kept(error.record):
        error.record = shown(error.record)
    return error


def _can_be_sent(part: object) -> bool:
    return _packed(lambda: part) is not None


def _packed(make: Callable[[], object]) -> bytes | None:
    """What is made, packed; `None` if it cannot be made, packed or made again."""
    import cloudpickle

    try:
        data = bytes(cloudpickle.dumps(make()))
        cloudpickle.loads(data)
    except BaseException:  # noqa: BLE001 - the user's code; there are other forms
        return None
    return data


def _unpacked(data: bytes, story: str) -> BaseException | None:
    """The error with its story, if it can be made again here."""
    import cloudpickle

    try:
        error: BaseException = cloudpickle.loads(data)
        if not issubclass(type(error), BaseException):
            return None
        if story:
            BaseException.add_note(error, story)
    except BaseException:  # noqa: BLE001 - as above
        return None
    return error


def _story_of(error: BaseException) -> str:
    """The traceback, without its middle if it is very long."""
    try:
        story = "".join(traceback.format_exception(error)).rstrip()
    except BaseException:  # noqa: BLE001 - as above
        return described(error)
    half = _MOST_OF_STORY // 2
    return story if len(story) <= _MOST_OF_STORY else f"{story[:half]}\n[…]\n{story[-half:]}"
