"""The runs behind the figures of lesson 17: a quiet day, a bad one moment by moment, what both gave, and a sink."""

from __future__ import annotations

from collections import Counter
from functools import cache

from course.data.bad_days import NUM_FLIGHTS, SEED, Day, Trouble, drawn, lived
from course.data.statistics import Figures
from refimpl.drivers import Simulation
from refimpl.task import SinkState, TwoPhaseCommitSink
from widgets import Recording
from widgets.view_models import topology

__all__ = ["bad_day_recorded", "both_days", "incident_timeline", "told_to_the_sink", "troubles_ahead"]

_EVERY = 40  # steps from one moment of the recording to the next: so the whole day is in one view


@cache
def _quiet() -> Day:
    return lived()


@cache
def _bad() -> tuple[Day, Recording]:
    recording: list[Recording] = []

    def keep(run: Simulation, what: str, is_trouble: bool) -> None:
        if not recording:
            recording.append(Recording(topology(run.snapshot())))
        if is_trouble or run.num_steps % _EVERY == 0 or what.startswith("restart"):
            recording[0].add(run.snapshot(), what)

    day = lived(drawn(SEED), on_moment=keep)
    return day, recording[0]


_TROUBLES: tuple[Trouble, ...] = drawn(SEED)


# -- the day -------------------------------------------------------------------------------------------------


def troubles_ahead() -> Figures:
    """What the seed has drawn for the day."""
    rows = tuple((f"{each.at_ms:.1f} ms", each.kind.value) for each in _TROUBLES)
    return Figures(f"what seed {SEED} has in store", ("not before", ""), rows)


def incident_timeline() -> Figures:
    """What happened on the bad day, as on-call would write it down."""
    day, _ = _bad()
    rows = [(f"{each.time_ms:.1f} ms", each.what, each.comes_of_it) for each in day.incidents]
    counts = day.checkpoints.counts
    rows.append(("the end", f"{counts.num_completed} checkpoints complete, {counts.num_failed} given up", ""))
    return Figures(f"one bad day, {NUM_FLIGHTS} flights", ("time", "what happened", "what came of it"), tuple(rows))


def bad_day_recorded() -> Recording:
    """The bad day, a moment every so many steps."""
    return _bad()[1]


def both_days() -> Figures:
    """What the bad day came to, beside what the quiet one did: on paper, and in the files."""
    quiet, (bad, _) = _quiet(), _bad()
    rows = [
        _compared("quiet day, printed", quiet.printed, quiet),
        _compared("quiet day, files", quiet.committed, quiet),
    ]
    rows += [_compared("bad day, printed", bad.printed, bad), _compared("bad day, files", bad.committed, bad)]
    heads = ("", "flights read", "lines", "lost", "twice", "")
    return Figures("hours of each airport, one line each", heads, tuple(rows))


def _compared(name: str, lines: list[str], day: Day) -> tuple[str, ...]:
    wanted, got = Counter(_quiet().committed), Counter(lines)
    lost, twice = (wanted - got).total(), (got - wanted).total()
    verdict = "✗" if lost or twice else "✓"
    return name, str(day.num_read), str(len(lines)), str(lost), str(twice), verdict


# -- the sink ------------------------------------------------------------------------------------------------


class _Shelf:
    """Transactions in memory, to be looked at."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {}
        self.seen: list[str] = []
        self._done: set[str] = set()

    def begin(self) -> str:
        name = f"t{len(self.lines)}"
        self.lines[name] = []
        return name

    def write(self, transaction: str, value: object) -> None:
        self.lines[transaction].append(str(value))

    def pre_commit(self, transaction: str) -> None: ...

    def commit(self, transaction: str) -> None:
        if transaction not in self._done:
            self._done.add(transaction)
            self.seen += self.lines[transaction]

    def abort(self, transaction: str) -> None:
        self._done.add(transaction)


def told_to_the_sink(*told: str) -> Figures:
    """A line for each thing that a two-phase sink is told: `+ JFK` is a value, then `barrier 1` and `complete 1`.

    After `dies, on from 1` another sink begins with what checkpoint 1 has of the state; from 0, with nothing.
    """
    shelf, rows = _Shelf(), []
    sink = TwoPhaseCommitSink(shelf)
    sink.restore()
    states: dict[int, SinkState] = {}
    for words in told:
        what, _, rest = words.partition(" ")
        if what == "+":
            sink.invoke(rest)
        elif what == "barrier":
            states[int(rest)] = sink.snapshot(int(rest))
        elif what == "complete":
            sink.complete(int(rest))
        else:
            number = int(rest.rpartition(" ")[2])
            sink = TwoPhaseCommitSink(shelf)
            sink.restore([states[number]] if number else [])
        state = sink.state
        pending = ", ".join(f"{_named(shelf, name)} for {number}" for number, name in state.pending)
        opened = "-" if state.open is None else _named(shelf, state.open)
        rows.append((words, opened, pending or "-", " ".join(shelf.seen) or "-"))
    return Figures("one subtask of a sink", ("", "open", "waits", "seen outside"), tuple(rows))


def _named(shelf: _Shelf, transaction: str) -> str:
    return f"{transaction} ({' '.join(shelf.lines[transaction])})"
