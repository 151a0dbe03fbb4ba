"""What a rule of lesson 16 is given: a function that makes slot pools of the part under test, with plain numbers."""

from collections.abc import Callable, Iterable
from typing import Any

from refimpl.cluster.slots import AllocationId


class MisuseError(Exception):
    """The rule called a pool as no job would."""


class _Pool:
    """A pool of the part under test, and what is known of it from its answers."""

    def __init__(self, part: Any, words: set[str]) -> None:
        self._part = part()
        self._words = words
        self._at: dict[int, str] = {}
        self._in_use: set[int] = set()
        self._asked: set[int] = set()
        self._waiting: list[int] = []

    def request(self, request: int, before: int | None = None, near: Iterable[str] = ()) -> Any:
        """A slot is wanted: the number of the slot that serves the request, or None."""
        number = _number(request)
        if number in self._asked:
            raise MisuseError(f"request {number} has come before; each has a number of its own")
        names = tuple(near)
        if isinstance(near, str) or not all(isinstance(each, str) for each in names):
            raise MisuseError('near is a list of names, such as ["tm-1"]')
        self._asked.add(number)
        self._words.add("asked")
        if self._at and not set(self._at) - self._in_use:
            self._words.add("waits")
        if before in self._at:
            self._words.add("before")
        answer = _told(self._part.request(_id(number), None if before is None else _id(_number(before)), names))
        if answer is None:
            self._waiting.append(number)
        elif answer in self._at:
            self._in_use.add(answer)
        return answer

    def offer(self, slot: int, task_manager: str) -> Any:
        """A TaskManager offers a slot: the number of the request that it serves, or None."""
        number = _number(slot)
        if not isinstance(task_manager, str):
            raise MisuseError('a TaskManager has a name, such as "tm-1"')
        if self._at.get(number, task_manager) != task_manager:
            raise MisuseError(f"slot {number} is at {self._at[number]}; it does not move")
        is_new = number not in self._at
        if not is_new and number not in self._in_use:
            self._words.add("again")
        if is_new and self._waiting and number not in self._waiting and number in self._asked:
            self._words.add("late")
        elif is_new and len(self._waiting) > 1 and number not in self._waiting:
            self._words.add("order")
        self._at[number] = task_manager
        answer = _told(self._part.offer(_id(number), task_manager))
        if is_new:
            self._serves(number, answer)
        return answer

    def release(self, slot: int) -> Any:
        """A slot is used no longer: the number of the request that it serves next, or None."""
        number = _number(slot)
        was_in_use = number in self._in_use
        if was_in_use and self._waiting:
            self._words.add("release")
        answer = _told(self._part.release(_id(number)))
        if was_in_use:
            self._in_use.remove(number)
            self._serves(number, answer)
        return answer

    def withdraw(self, request: int) -> None:
        """A request waits no longer."""
        number = _number(request)
        if number in self._waiting:
            self._waiting.remove(number)
            if self._waiting:
                self._words.add("gone")
        self._part.withdraw(_id(number))

    def remove(self, slot: int) -> None:
        """A slot is gone."""
        number = _number(slot)
        if number in self._in_use:
            self._words.add("gone")
            self._in_use.remove(number)
        self._at.pop(number, None)
        self._part.remove(_id(number))

    def _serves(self, slot: int, request: Any) -> None:
        if request is not None:
            self._in_use.add(slot)
        if request in self._waiting:
            self._waiting.remove(request)


def under_test(part: Any) -> Callable[[], _Pool]:
    """The function `new_pool` for one part."""
    words: set[str] = set()

    def new_pool() -> _Pool:
        """A new pool of the part."""
        return _Pool(part, words)

    new_pool.__dict__["words"] = words
    return new_pool


def tried(new_pool: Callable[[], _Pool]) -> set[str]:
    """What the rule has tried: asked, waits, order, release, again, late, before, gone."""
    words: set[str] = new_pool.__dict__["words"]
    return words


def _number(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise MisuseError("requests and slots are whole numbers")
    return int(value)


def _id(number: int) -> AllocationId:
    return AllocationId("pool", 1, number)


def _told(answer: Any) -> Any:
    """The number of an id; what is none is told as it is."""
    return answer.number if isinstance(answer, AllocationId) and answer == _id(answer.number) else answer
