"""How the tasks of a job spent the last second, and who holds it back, from two snapshots."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from refimpl.cluster import BackPressureStats, Bottleneck, BottleneckKind, Exchange, Load, find_bottleneck
from refimpl.config import CheckpointingMode
from refimpl.job import JobSnapshot
from refimpl.task import Progress, TaskSnapshot
from widgets.view_models import Model

__all__ = ["BACK_MS", "LookBack", "bottleneck_words", "load_words", "loads_between", "pressure_model", "sampled_words"]

Place = tuple[int, int]

BACK_MS = 1_000.0
"""How far back a view looks."""
_KEPT = 400


class LookBack:
    """The snapshots of the last second of a job that runs, so that one can be compared with the one before."""

    def __init__(self) -> None:
        self._looks: deque[JobSnapshot] = deque(maxlen=_KEPT)

    def before(self, now: JobSnapshot) -> JobSnapshot | None:
        """The newest look that is a second older than `now`, else the oldest there is; and `now` is kept."""
        older = [each for each in self._looks if each.time_ms < now.time_ms]
        found = next((each for each in reversed(older) if now.time_ms - each.time_ms >= BACK_MS), None)
        if not self._looks or now.time_ms > self._looks[-1].time_ms:
            self._looks.append(now)
            while len(self._looks) > 2 and now.time_ms - self._looks[1].time_ms > BACK_MS:
                self._looks.popleft()
        return found or next(iter(older), None)


def loads_between(before: JobSnapshot | None, now: JobSnapshot) -> dict[str, Load]:
    """What share of the time each task was busy, idle and held back.

    Of one that no clock counts nothing is told, nor of a job that is over.
    """
    if all(task.progress is Progress.DONE for task in now.tasks):
        return {}
    earlier = {} if before is None else {task.name: task for task in before.tasks}
    queued = Counter[str]()
    for gate in now.gates:
        queued[gate.name] += sum(channel.num_available for channel in gate.channels)
    loads = {}
    for task in now.tasks:
        times, was = task.times, earlier[task.name].times if task.name in earlier else None
        if was is None or was.total_ms > times.total_ms:  # begun again since
            spent = times.busy_ms, times.idle_ms, times.backpressured_ms
        else:
            held_ms = times.backpressured_ms - was.backpressured_ms
            spent = times.busy_ms - was.busy_ms, times.idle_ms - was.idle_ms, held_ms
        if (total_ms := sum(spent)) > 0:
            busy, idle, held = (max(0.0, each) / total_ms for each in spent)
            loads[task.name] = Load(busy, idle, held, _is_aligning(task), queued[task.name])
    return loads


def pressure_model(loads: Mapping[str, Load], known: Model, now: JobSnapshot) -> Model:
    """What a view shows of them: ms in each second, by task, and who holds the job back, in words."""
    names = [task["name"] for task in known["tasks"]]
    places = {
        number: (vertex_number, subtask)
        for vertex_number, vertex in enumerate(known["vertices"])
        for subtask, number in enumerate(vertex["tasks"])
    }
    by_place = {places[number]: loads[name] for number, name in enumerate(names) if name in loads}
    pairs = [(places[each["from_task"]], places[each["to_task"]]) for each in known["channels"] if each["to_task"] >= 0]
    exchanges = [Exchange(*pair) for pair in dict.fromkeys(pairs) if pair[0] in by_place and pair[1] in by_place]
    name_of = {place: names[number] for number, place in places.items()}
    waiting: dict[tuple[Place, Place], int] = {}
    outputs = (subpartition for partition in now.partitions for subpartition in partition.subpartitions)
    for each, subpartition in zip(known["channels"], outputs, strict=True):
        if each["to_task"] >= 0:
            pair = places[each["from_task"]], places[each["to_task"]]
            waiting[pair] = waiting.get(pair, 0) + len(subpartition.queue)
    found = find_bottleneck(by_place, exchanges, waiting) if by_place else Bottleneck(BottleneckKind.NOTHING)
    return {
        "loads": {name: _per_second(load) for name, load in loads.items()},
        "bottleneck": bottleneck_words(found, name_of) if by_place else "",
    }


def bottleneck_words(found: Bottleneck, names: Mapping[Place, str]) -> str:
    """Who holds the job back, as a sentence without a full stop."""
    place = "" if found.place is None else names[found.place]
    match found.kind:
        case BottleneckKind.SOURCE:
            return f"as fast as its source: {place} brings no more"
        case BottleneckKind.SUBTASK:
            return f"bottleneck: {place} has too much to do"
        case BottleneckKind.SKEW:
            return f"bottleneck: {place} has more to do than its siblings"
        case BottleneckKind.EXCHANGE:
            producer = "" if found.producer is None else names[found.producer]
            return f"bottleneck: between {producer} and {place}: credit, buffers or a slow link"
        case BottleneckKind.ALIGNING:
            return f"aligning: {place} waits for a barrier"
    return "nothing holds the job back"


def load_words(load: Model | None, most_only: bool = False) -> str:
    """`busy 83 %, idle 0 %, held back 17 %`, or only the largest of them; nothing where it is not known."""
    if load is None:
        return ""
    shares = {"busy": load["busy_ms_per_s"], "idle": load["idle_ms_per_s"], "held back": load["held_ms_per_s"]}
    if most_only:
        most = max(shares, key=lambda word: shares[word])
        return f"{most} {shares[most] / 10:.0f} %"
    return ", ".join(f"{word} {share / 10:.0f} %" for word, share in shares.items())


def sampled_words(stats: BackPressureStats | None) -> str:
    """What samples said of a vertex: the level, and the ratio of the subtask that is held back most."""
    return "" if stats is None else f"{stats.level.name}, {max(stats.ratios):.2f}"


def _per_second(load: Load) -> Model:
    return {
        "busy_ms_per_s": round(1_000 * load.busy),
        "idle_ms_per_s": round(1_000 * load.idle),
        "held_ms_per_s": round(1_000 * load.held_back),
    }


def _is_aligning(task: TaskSnapshot) -> bool:
    standing = task.alignment
    return standing is not None and standing.mode is CheckpointingMode.EXACTLY_ONCE and bool(standing.arrived)
