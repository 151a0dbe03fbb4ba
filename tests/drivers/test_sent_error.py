"""What becomes of an error on its way to another process: its class and what it said arrive, whatever it does."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable

import cloudpickle
import pytest

from refimpl.drivers.processes import SentError
from refimpl.errors import RemoteTransportError, SluiceError, UserCodeError

RAISERS: dict[str, Callable[[], BaseException]] = {
    "an Exception": lambda: ValueError("inside"),
    "SystemExit": lambda: SystemExit(0),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "a BaseException": lambda: BaseException("inside"),
}
METHODS = ["__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__str__", "__repr__", "__class__",
           "__notes__", "__cause__", "add_note", "__traceback__"]  # fmt: skip


def raising(method: str, make: Callable[[], BaseException]) -> Exception:
    """An error whose `method` raises what `make` makes, when it is called or looked up."""

    def act(*_given: object) -> object:
        raise make()

    is_looked_up = method in ("__class__", "__notes__", "__cause__", "__traceback__")
    error = type("NastyError", (Exception,), {method: property(act) if is_looked_up else act})("said")
    error.__dict__["something"] = 1  # a state that is set again
    return error


def sent(error: BaseException) -> BaseException:
    """The error as it is after it has crossed a pipe."""
    made: SentError = pickle.loads(pickle.dumps(SentError.of(error)))
    return made.error()


def failure(cause: BaseException, record: object = 4) -> UserCodeError:
    error = UserCodeError("map", 2, record, cause)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("raiser", RAISERS)
@pytest.mark.parametrize("method", METHODS)
def test_an_error_that_does_anything_is_named(method: str, raiser: str) -> None:
    nasty = raising(method, RAISERS[raiser])
    error = sent(failure(nasty))
    assert isinstance(error, UserCodeError)
    assert (error.operator, error.subtask, error.record) == ("map", 2, 4)
    said = "NastyError, which cannot be shown" if method == "__str__" else "NastyError: said"
    assert said in str(error)
    assert error.__cause__ is not None
    alone = sent(nasty)
    assert "NastyError" in f"{type(alone).__name__}: {BaseException.__repr__(alone)}"


@pytest.mark.parametrize("raiser", RAISERS)
def test_a_record_that_does_anything_is_told_of(raiser: str) -> None:
    class Record:
        def __reduce__(self) -> tuple[object, ...]:
            raise RAISERS[raiser]()

        def __repr__(self) -> str:
            raise RAISERS[raiser]()

    error = sent(failure(ValueError("not this one"), Record()))
    assert isinstance(error, UserCodeError)
    assert str(error.record).startswith("a Record whose repr raised")
    assert isinstance(error.__cause__, ValueError)


def test_an_error_that_can_be_made_again_only_where_it_comes_from_is_named() -> None:
    class LocalError(Exception):
        pass

    here = SentError.of(failure(LocalError("at home")))
    away = SentError(here.said, here.story, (b"no pickle", *here.forms[1:]))
    error = away.error()
    assert isinstance(error, UserCodeError)
    assert "LocalError: at home" in str(error)
    assert type(error.__cause__) is SluiceError
    assert str(error.__cause__) == "LocalError: at home"
    lost = SentError(here.said, here.story, ()).error()
    assert str(lost) == "UserCodeError: map, subtask 2, raised LocalError: at home while processing 4"


def test_what_is_made_again_and_is_no_error_is_not_raised() -> None:
    class TextError(Exception):
        def __reduce__(self) -> tuple[object, ...]:
            return str, ("a text",)

    assert str(sent(failure(TextError("said")))).startswith("map, subtask 2, raised TextError: said")
    assert str(sent(TextError("said"))) == "TextError: said"


def test_an_error_of_the_engine_comes_as_it_is_also_if_it_is_its_own_cause() -> None:
    error = RemoteTransportError("gone")
    error.__cause__ = error
    assert not hasattr(sent(error), "__notes__")
    assert (type(sent(error)), str(sent(error)), sent(error).__cause__) == (RemoteTransportError, "gone", None)


def test_a_story_is_told_without_its_middle_if_it_is_long() -> None:
    (note,) = sent(failure(ValueError("long " * 100_000))).__notes__
    assert note.startswith("in process ")
    assert len(note) < 21_000


def test_what_cannot_travel_is_replaced_and_the_rest_is_kept() -> None:
    cause = ValueError("held")
    cause.__dict__["lock"] = threading.Lock()
    with pytest.raises(TypeError):
        cloudpickle.dumps(cause)
    error = sent(failure(cause, {"a": 1}))
    assert isinstance(error, UserCodeError)
    assert error.record == {"a": 1}
    assert str(error.__cause__) == "ValueError: held"
