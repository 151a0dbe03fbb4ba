"""Runs one case of exercise 17.2 against a sink with two phases and writes down what it does to its transactions.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only.

    ["restore", [open, [[number, name], …]], …]   a new sink, with the states of so many
    ["record", value]                             a record
    ["snapshot", number]                          a barrier
    ["complete", number]                          the news that a checkpoint is complete
    ["crash", number]                             this sink is gone; a new one gets what snapshot `number` returned, or
                                                  no state for number 0
    ["fails", name] ["works"]                     from now on a commit of `name` raises; no more
    ["close"]                                     the end

An event is [method] before an operation and [method, {FIELD: …}] after it: transactions that were begun, written to,
pre-committed ("ready"), committed ("out") and aborted ("gone"), each once; the "state" that was returned; "kept", what
the state that was returned last says now; and whether there was an "error".
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import members, whole
from refimpl.task.two_phase_sink import SinkState

__all__ = ["WATCHED", "run_case"]

WATCHED = (SinkState,)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_MOST = 400
_METHODS = {"record": "invoke", "crash": "restore", "fails": "", "works": ""}


class _Transactions:
    """What a sink writes to; it keeps what was done, and what has been done before is no news."""

    def __init__(self) -> None:
        self.did: dict[str, list[str]] = {}
        self.numbers: dict[str, int] = {}
        self.failing = ""
        self._num_begun = 0
        self._over: set[tuple[str, str]] = set()

    def begin(self) -> str:
        name = f"t{self._num_begun}"
        self._num_begun += 1
        self._note("begun", name)
        return name

    def write(self, transaction: str, value: object) -> None:
        self._note("wrote", f"{value} → {_name(transaction)}")

    def pre_commit(self, transaction: str) -> None:
        self._once("ready", transaction)

    def commit(self, transaction: str) -> None:
        if transaction == self.failing:
            raise OSError(f"{transaction} cannot be committed now")
        self._once("out", transaction)

    def abort(self, transaction: str) -> None:
        self._once("gone", transaction)

    def told(self) -> dict[str, Any]:
        """What was done since: commits in their order, where their numbers differ."""
        did, self.did = self.did, {}
        return {
            "out": self._in_runs(did.get("out", [])),
            "gone": sorted(did.get("gone", [])),
            "wrote": did.get("wrote", []),
            "ready": sorted(did.get("ready", [])),
            "begun": sorted(did.get("begun", [])),
        }

    def _in_runs(self, names: list[str]) -> list[str]:
        """Names whose numbers are equal, next to each other, in the order of the alphabet."""
        runs: list[list[str]] = []
        for name in names:
            if runs and self.numbers.get(runs[-1][0]) == self.numbers.get(name):
                runs[-1].append(name)
            else:
                runs.append([name])
        return [name for run in runs for name in sorted(run)]

    def _once(self, what: str, transaction: Any) -> None:
        name = _name(transaction)
        if (what, name) not in self._over:
            self._over.add((what, name))
            self._note(what, name)

    def _note(self, what: str, text: str) -> None:
        done = self.did.setdefault(what, [])
        if len(done) < _MOST:
            done.append(text)


def _name(transaction: Any) -> str:
    return transaction if isinstance(transaction, str) else f"? {type(transaction).__name__[:30]}"


def _told(state: Any) -> list[Any]:
    """A state as [open, pairs in order]; or [what it is instead]."""
    if not isinstance(state, SinkState):
        return [f"? {type(state).__name__[:30]}"]
    pairs = members(state.pending)
    if pairs is None:
        return [f"? pending {type(state.pending).__name__[:30]}"]
    found = []
    for pair in pairs[:_MOST]:
        both = members(pair)
        if both is None or len(both) != 2 or whole(both[0]) is None or not isinstance(both[1], str):
            return [f"? pair {type(pair).__name__[:30]}"]
        found.append([whole(both[0]), both[1]])
    return ["" if state.open is None else _name(state.open), sorted(found)]


def _state(given: Any) -> SinkState:
    opened, pending = given
    return SinkState(opened or None, tuple((number, name) for number, name in pending))


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    transactions = _Transactions()
    returned: dict[int, Any] = {}
    sink: Any = None
    last: Any = None
    for name, *given in case:
        event: list[Any] = [_METHODS.get(name, name)]
        events.append(event)
        seen: dict[str, Any] = {}
        if name == "restore":
            states = [_state(each) for each in given]
            transactions.numbers |= {each: number for state in states for number, each in state.pending}
            sink = part(transactions)
            sink.restore(states)
        elif name == "crash":
            sink = part(transactions)
            sink.restore([returned[given[0]]] if given[0] else [])
        elif name == "record":
            sink.invoke(*given)
        elif name == "snapshot":
            last = returned[given[0]] = sink.snapshot(*given)
            seen["state"] = _told(last)
            if len(seen["state"]) == 2:
                transactions.numbers |= {each: number for number, each in seen["state"][1]}
        elif name == "complete":
            seen["error"] = _completed(sink, given[0], transactions)
        elif name == "close":
            sink.close()
        else:
            transactions.failing = given[0] if name == "fails" else ""
        seen = {**transactions.told(), **seen}
        if last is not None and name != "snapshot":
            seen["kept"] = _told(last)
        event.append(seen)


def _completed(sink: Any, number: int, transactions: _Transactions) -> str:
    """Whether an error came out of it; one that no commit has caused is the part's own."""
    try:
        sink.complete(number)
    except Exception:
        if not transactions.failing:
            raise
        return "raises"
    return ""
