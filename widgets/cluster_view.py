"""A whole cluster: who is there and who leads, whose each slot is, how the jobs are, and who has heard of whom."""

from __future__ import annotations

from typing import Any

from refimpl.cluster import ClusterSnapshot
from refimpl.drivers.cluster_simulation import (
    ClusterSimulation,
    CrashMember,
    PauseMember,
    ResumeMember,
    ReviveMember,
)
from refimpl.errors import USER_CODE_RAISES, LocalUsageError, described
from widgets.base import whole_number
from widgets.cluster_drawing import (
    CARD_ROOM,
    JOB_ROOM,
    MOST_JOBS,
    SLOT_ROOM,
    cluster_drawing,
)
from widgets.cluster_model import cluster_model, known_of_cluster, what_is_seen
from widgets.cluster_words import (
    all_words,
    former_words,
    job_facts,
    job_lines,
    kept_words,
    member_facts,
    member_lines,
    slot_facts,
    slot_words,
    trouble_words,
)
from widgets.facts import Drawing, Facts, FactView, Pen, Table
from widgets.letters import fitting
from widgets.main_thread import on_main_thread
from widgets.recording import MOST_FRAMES, Recording
from widgets.sampler import refusal_of
from widgets.text import step_words
from widgets.view_models import Model

__all__ = ["ClusterView"]

_MOST_STEPS, _MOST_PER_CLICK = 50_000, 100  # on the way to something, and one by one
_FAULTS = {CrashMember: "crash", ReviveMember: "revive", PauseMember: "pause", ResumeMember: "resume"}
_MOVES = ("step", "change", "wait")
_WAIT_MS = 100.0


class ClusterView(FactView):
    """The Dispatcher, the ResourceManager, the TaskManagers with their slots, and the jobs with who leads them.

    Of each it is told whether it is there, under which epoch it leads or which life it is, whom it deals with and when
    it has heard of him, and what it refused since it was for another leadership. `source` decides what can be done:

    - a `ClusterSnapshot`: it stands still;
    - a `Recording` of those: scrubbed and played in the browser, no kernel needed;
    - a `ClusterSimulation`: a click takes a step, goes to the next change, or lets 100 ms pass; and each member has
      buttons that crash, pause, resume or revive it, as `enabled()` has it.

    Options: `title`; `at`, the frame of a recording to begin with, by default the last; `max_frames` kept of a
    simulation.

        ClusterView(ClusterSimulation(num_task_managers=3))

    Raises:
        LocalUsageError: `source` is none of these, or there is no such option.
    """

    default_title = "Cluster"
    kind = "cluster"
    styles = ("facts.css", "cluster.css")

    def __init__(self, source: ClusterSnapshot | ClusterSimulation | Recording, **given: Any) -> None:
        if given.get("at") is None:
            given["at"] = -1
        super().__init__(source, **given)  # type: ignore[arg-type]  # a cluster is no job, and is gone through like one

    def known_of(self, snapshot: Any) -> Model:
        return known_of_cluster(snapshot)

    def model_of(self, snapshot: Any, action: str, known: Model) -> Model:
        return cluster_model(snapshot, action, known)

    @staticmethod
    def moment_words(model: Model) -> str:
        return f"{model['time_ms'] / 1_000:.3f} s, {step_words(model)}"

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {
            "all": fitting(all_words(model), 2 * CARD_ROOM + 100, "name"),
            "former": fitting(former_words(model), 2 * CARD_ROOM + 100, "failed"),
        }
        for number, leader in enumerate(model["leaders"]):
            facts |= member_facts(f"l{number}", leader, CARD_ROOM, "epoch")
        facts["l0 leader"] = kept_words(model)
        for number, part in enumerate(model["task_managers"]):
            facts |= member_facts(f"t{number}", part, CARD_ROOM, "life")
            for slot in part["slots"]:
                facts |= slot_facts(f"t{number}.{slot['slot']}", slot, SLOT_ROOM)
        jobs = _in_order(model)
        for place in range(MOST_JOBS):
            facts |= job_facts(f"j{place}", jobs[place] if place < len(jobs) else None, JOB_ROOM)
        more = len(jobs) - MOST_JOBS
        said = "jobs" if jobs else "No job has been submitted so far."
        facts["jobs"] = said + (f"; {more} more in words" if more > 0 else "")
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        return cluster_drawing(pen, model)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lines = [words for words in (all_words(model), former_words(model), kept_words(model)) if words]
        for leader in model["leaders"]:
            lines += member_lines(leader, "epoch")
        for part in model["task_managers"]:
            lines += member_lines(part, "life")
            lines += [f"    {slot_words(slot)}" for slot in part["slots"]]
        jobs = [line for job in _in_order(model) for line in job_lines(job)]
        return lines + (jobs or ["No job has been submitted so far."])

    @staticmethod
    def status_of(model: Model) -> str:
        trouble = trouble_words(model)
        return all_words(model) + (f"; {trouble}" if trouble else "")

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        members = [(f"l{number}", each) for number, each in enumerate(model["leaders"])]
        members += [(f"t{number}", each) for number, each in enumerate(model["task_managers"])]
        facts = ("word", "leader", "links", "fence", "why")
        slots = [
            [f"{part['address']}, {slot['slot']}", pen.cell(f"t{number}.{slot['slot']} word")]
            for number, part in enumerate(model["task_managers"])
            for slot in part["slots"]
        ]
        jobs = ("name", "word", "tasks", "master", "links", "why")
        return [
            (
                "Members",
                ["member", "state", "its leader", "others", "refused", "the last since"],
                [[each["address"], *(pen.cell(f"{name} {fact}") for fact in facts)] for name, each in members],
            ),
            ("Slots", ["TaskManager, slot", "whose it is"], slots),
            (
                "Jobs",
                [
                    "place",
                    "job",
                    "state",
                    "tasks and checkpoints",
                    "who leads it",
                    "whom that one deals with",
                    "its last failure",
                ],
                [[str(place + 1), *(pen.cell(f"j{place} {fact}") for fact in jobs)] for place in range(MOST_JOBS)],
            ),
        ]

    # -- where the moments come from -------------------------------------------------------------------

    def _record(self, source: Any, max_frames: int) -> Recording:
        if isinstance(source, Recording):
            return super()._record(source, max_frames)
        if not isinstance(source, ClusterSnapshot | ClusterSimulation):
            raise LocalUsageError(
                f"a {type(source).__name__} cannot be shown; give a ClusterSimulation, a ClusterSnapshot or a Recording"
            )
        recording = Recording({}, max_frames)
        first: Any = source if isinstance(source, ClusterSnapshot) else source.snapshot()
        recording.add(first)
        return recording

    @staticmethod
    def _abilities(source: Any) -> tuple[str, list[str]]:
        if isinstance(source, ClusterSimulation):
            return "stepped", ["step", "members"]
        return ("still" if isinstance(source, ClusterSnapshot) else "recorded"), []

    def _now(self) -> tuple[Model, str]:
        if not isinstance(self._source, ClusterSimulation):
            return self._first, ""
        return self.model_of(self._source.snapshot(), self._recording.moments[-1][1], self._known), ""

    # -- the browser asks ------------------------------------------------------------------------------

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        cluster, kind = self._source, content.get("type")
        if not isinstance(cluster, ClusterSimulation):
            return
        if kind == "hello":
            self._tell("history", self._all_frames())
        elif kind in (*_MOVES, "member"):
            on_main_thread(lambda: self._move(cluster, content))

    def _move(self, cluster: ClusterSimulation, content: dict[str, Any]) -> None:
        """Do what was clicked, on the thread that runs cells."""
        before = len(self._recording) + self._recording.num_dropped
        refusal = ""
        try:
            self._carry_out(cluster, content)
        except LocalUsageError as error:
            refusal = refusal_of(error)
        except USER_CODE_RAISES as error:  # nobody else could show what a click led to
            self._error = described(error)
        num = len(self._recording) + self._recording.num_dropped - before
        self._tell("frames", [self._pack(*each) for each in self._recording.moments[-num:]] if num else [])
        if refusal:
            self.send({"type": "refused", "words": refusal})

    def _carry_out(self, cluster: ClusterSimulation, content: dict[str, Any]) -> None:
        match content.get("type"):
            case "member":
                self._go_on(cluster, _named(cluster, content.get("action")))
            case "step":
                for _ in range(min(whole_number("n", content.get("n", 1), 0, MOST_FRAMES), _MOST_PER_CLICK)):
                    self._go_on(cluster)
            case "change":
                seen = what_is_seen(cluster.snapshot())
                self._until(cluster, lambda: what_is_seen(cluster.snapshot()) != seen)
            case "wait":
                end_ms = cluster.time_ms + _WAIT_MS
                self._until(cluster, lambda: cluster.time_ms >= end_ms)

    def _go_on(self, cluster: ClusterSimulation, action: Any = None) -> None:
        done = cluster.step(action)
        if done is not None:
            self._keep(cluster, str(done))

    def _until(self, cluster: ClusterSimulation, is_so: Any) -> None:
        """Step until it is so, and keep the moment at which it is; the ones between would be too many."""
        done = None
        for _ in range(_MOST_STEPS):
            if (done := cluster.step()) is None or is_so():
                break
        self._keep(cluster, str(done or "nothing"))

    def _keep(self, cluster: ClusterSimulation, action: str) -> None:
        moment: Any = cluster.snapshot()  # of no job, and gone through like one
        self._recording.add(moment, action)

    def _tell(self, kind: str, frames: list[Any]) -> None:
        assert isinstance(self._source, ClusterSimulation), "nothing else moves"
        actions = [each for each in self._source.enabled() if type(each) in _FAULTS]
        members: dict[str, list[list[str]]] = {}
        for each in actions:
            members.setdefault(each.address, []).append([_FAULTS[type(each)], str(each)])
        order = sorted(members, key=lambda address: (address.startswith("tm-"), address))
        self.send(
            {
                "type": kind,
                "frames": frames,
                "done": False,
                "error": self.error,
                "members": [[address, members[address]] for address in order],
            }
        )


def _in_order(model: Model) -> list[Model]:
    """The jobs that go on, the oldest first, and then those that are over, the newest first."""
    going = [each for each in model["jobs"] if not each["is_over"]]
    return going + [each for each in reversed(model["jobs"]) if each["is_over"]]


def _named(cluster: ClusterSimulation, words: object) -> Any:
    """What can be done to a member, by its words.

    Raises:
        LocalUsageError: that cannot be done now.
    """
    found = [each for each in cluster.enabled() if type(each) in _FAULTS and str(each) == words]
    if not found:
        raise LocalUsageError(f"{words!r} cannot be done now")
    return found[0]
