"""What a rule of lesson 12 is given: a function that asks the part under test about a job, in plain numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from refimpl.cluster.bottleneck import Load
from refimpl.job.regions import Exchange

Find = Callable[[Any, Any], Any]


class MisuseError(Exception):
    """The rule called `find` with something that is no job."""


def under_test(part: Any) -> Find:
    """The function `find` for one part."""
    words: set[str] = set()

    def find(loads: Any, exchanges: Any) -> Any:
        """Whom the part names in this job: a name, a pair of names, or None."""
        shares = _shares(loads)
        pairs = _pairs(exchanges, shares)
        places = {name: (number, 0) for number, name in enumerate(shares)}
        names = {place: name for name, place in places.items()}
        words.update(_words(shares, pairs))
        given = {
            places[name]: Load(busy, idle, held, num_queued=int(queued))
            for name, (busy, idle, held, queued) in shares.items()
        }
        found = part(given, [Exchange(places[a], places[b]) for a, b in pairs])
        if isinstance(found, Exchange):
            found = (found.producer, found.consumer)
        if isinstance(found, list | tuple):
            found = tuple(tuple(each) if isinstance(each, list | tuple) else each for each in found)
            if found in names:
                return names[found]
            return tuple(names.get(each, each) for each in found)
        return found

    find.__dict__["words"] = words
    return find


def tried(find: Find) -> set[str]:
    """What the rule has tried: asked, victims, several, between, calm, queue, elsewhere, light."""
    words: set[str] = find.__dict__["words"]
    return words


def _shares(loads: Any) -> dict[Any, tuple[Any, ...]]:
    if not isinstance(loads, Mapping) or not loads:
        raise MisuseError("find takes a dict first: a name for each subtask, and (busy, idle, held back)")
    found: dict[Any, tuple[Any, ...]] = {}
    for name, numbers in loads.items():
        row = tuple(numbers) if isinstance(numbers, Sequence) and not isinstance(numbers, str) else ()
        if len(row) not in (3, 4) or not all(isinstance(each, int | float) and each >= 0 for each in row):
            raise MisuseError(f"the load of {name!r} is (busy, idle, held back), and perhaps a number of buffers")
        if max(row[:3]) > 1:
            raise MisuseError(f"the load of {name!r} has shares from 0 to 1; a half is 0.5")
        found[name] = (*row, 0)[:4]
    return found


def _pairs(exchanges: Any, shares: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    try:
        pairs = [(a, b) for a, b in exchanges]
    except (TypeError, ValueError):
        raise MisuseError("find takes a list of pairs second: who sends, and who reads") from None
    for name in {each for pair in pairs for each in pair}:
        if name not in shares:
            raise MisuseError(f"an exchange has {name!r}, of which there is no load")
    return pairs


def _words(shares: Mapping[Any, tuple[Any, ...]], pairs: Sequence[tuple[Any, Any]]) -> set[str]:
    """Of one job: what about it is worth trying."""
    held = {name for name, row in shares.items() if row[2] > 0.1}
    readers = {b for a, b in pairs if a in held and b not in held}
    if not readers:
        return {"asked", "calm"} if not held else {"asked"}
    busy = {name: shares[name][0] for name in readers}
    most = max(busy.values())
    culprit = next(name for name, share in busy.items() if share == most)
    queues = {name: row[3] for name, row in shares.items()}
    found = {
        "victims": any(a in held and b in held for a, b in pairs),
        "several": len(set(busy.values())) > 1 and most >= 0.5,
        "between": most < 0.5,
        "queue": most >= 0.5 and queues[culprit] < max(queues.values()),
        "elsewhere": most >= 0.5 and any(row[0] > most for name, row in shares.items() if name not in held),
        "light": any(shares[a][2] <= 0.5 for a, b in pairs if a in held and b in readers),
    }
    return {"asked", *(word for word, holds in found.items() if holds)}
