"""The page of the cluster: what its members are, who registers with whom, and pictures of what becomes of losses.

`python -m course.figures.cluster_page FOLDER` writes it; its pictures are of a simulated cluster, always the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

from refimpl.cluster import ExecutionState, FixedDelayRestart, JobState, SlotState
from refimpl.config import Config
from refimpl.drivers.cluster_simulation import (
    DISPATCHER,
    RESOURCE_MANAGER,
    ClusterSimulation,
    PauseMember,
    ResumeMember,
    job_master_of,
)
from refimpl.job import StreamEnvironment
from widgets import ClusterView

__all__ = ["CLUSTER_FILES", "write_cluster_page"]

_JOB = "numbers"
_MOMENTS = {
    "whole": "A job runs",
    "lost": "A TaskManager is gone",
    "led": "Another ResourceManager leads",
    "leaderless": "Nobody leads the job",
}
CLUSTER_FILES = ("cluster.md", *(f"cluster-{name}.svg" for name in _MOMENTS))

_PAGE = """# The cluster

A job runs on a cluster: processes of four kinds, each of which can be lost alone. None of them keeps a member alive; it
finds out who is there from who registers and who goes on talking.

- The **Dispatcher** takes jobs, and stores them before it says yes. It registers with nobody. When it is lost jobs go
  on, and the next one finds all of them in the store.
- The **ResourceManager** knows all slots, and which job gets which. It registers with nobody. When it is lost jobs go
  on; TaskManagers and JobMasters register with the next one, and TaskManagers say whose their slots are.
- A **JobMaster** leads one job: it asks for slots, deploys tasks, begins them again, takes checkpoints. It registers
  with the ResourceManager. When it is lost its tasks end, and its slots are kept for 10 s; the next one takes them and
  goes on from the newest checkpoint.
- A **TaskManager** lends its slots and runs the tasks in them. It registers with the ResourceManager, and with each
  JobMaster whose slots it has. When it is lost its tasks begin again elsewhere, from the newest checkpoint.

**Registration.** Whoever hears of a new leader asks it, after 100 ms again, then after 200, 400 … up to 30 s. A
TaskManager that finds no ResourceManager for 5 min ends.

**Heartbeats.** The ResourceManager asks TaskManagers and JobMasters, a JobMaster asks its TaskManagers, every 10 s. Any
message is a sign of life. Who was silent for 50 s counts as gone. A question says what the one believes, the answer
what the other has; so heartbeats also mend what a lost message has left different.

**Fencing.** Each leadership has an epoch, and each message names the one it is for. A leader that was paused comes back
and believes that it still leads; what it says, and what is for it, is refused by everybody who has heard of the next.

`refimpl/STATES.md` has all the tables; `refimpl/cluster` is the code.

## {whole}

![{whole_says}](cluster-whole.svg)

## {lost}

The slots of the one that is gone went with it. The job has begun again in slots that were free, with attempt 1 of each
task, and went on from the checkpoint it had.

![{lost_says}](cluster-lost.svg)

## {led}

The first ResourceManager was paused, and another took its place; the job did not notice. The first goes on now and
believes to lead. What it says is refused: it speaks under an epoch that is over.

![{led_says}](cluster-led.svg)

## {leaderless}

The JobMaster is gone. The TaskManagers have ended its tasks and keep its slots; whoever leads the job next is offered
them and needs no ResourceManager.

![{leaderless_says}](cluster-leaderless.svg)

## Do it yourself

In a notebook each member of a simulated cluster has buttons that kill it, pause it, let it go on and revive it:

```python
from refimpl.drivers.cluster_simulation import ClusterSimulation
from widgets import ClusterView

ClusterView(ClusterSimulation(num_task_managers=3))
```

This page is written by `python -m course.figures.cluster_page course/site`.
"""


def write_cluster_page(folder: Path) -> Path:
    """Write the page and its pictures into a folder; which file the page is."""
    says = {}
    for name, (title, view) in zip(_MOMENTS, _moments(), strict=True):
        (folder / f"cluster-{name}.svg").write_text(view.svg() + "\n", encoding="utf-8")
        says[f"{name}_says"] = f"{title}: {view.facts(view.model())['status']}"
        view.close()
    page = folder / CLUSTER_FILES[0]
    page.write_text(_PAGE.format(**_MOMENTS, **says), encoding="utf-8")
    return page


def _moments() -> list[tuple[str, ClusterView]]:
    """One cluster, looked at four times."""
    cluster = _running()
    seen = []
    for name, title in _MOMENTS.items():
        _until_it_is(cluster, name)
        seen.append((title, ClusterView(cluster.snapshot(), title=title)))
    return seen


def _running() -> ClusterSimulation:
    config = Config(segment_size_bytes=64, num_buffers=200, source_batch=1, checkpoint_interval_ms=5)
    cluster = ClusterSimulation(3, 2, seed=2, config=config, check_every=0)
    cluster.run(lambda run: {DISPATCHER, RESOURCE_MANAGER} <= run.members.alive.keys())
    environment = StreamEnvironment(config, 3)
    environment.from_collection(range(100_000), name="numbers").rebalance().map(str).rebalance().sink(bool)
    cluster.submit(_JOB, environment, lambda: FixedDelayRestart(9, 5.0))
    return cluster


def _until_it_is(cluster: ClusterSimulation, name: str) -> None:
    match name:
        case "whole":
            cluster.run(lambda run: _is_running(run, 0) and bool(run.snapshot().jobs[0].completed))
        case "lost":
            members = cluster.snapshot().members
            cluster.crash(next(each.address for each in members if any(slot.executions for slot in each.slots)))
            cluster.run(lambda run: _is_running(run, 1))
        case "led":
            cluster.step(PauseMember(RESOURCE_MANAGER))
            cluster.run(lambda run: run.members.alive[RESOURCE_MANAGER].token.epoch == 2)
            cluster.run(_has_news)
            cluster.step(ResumeMember(RESOURCE_MANAGER))
        case "leaderless":
            cluster.crash(job_master_of(_JOB))
            cluster.run(lambda run: _slot_states(run) == {SlotState.FREE, SlotState.ALLOCATED})


def _slot_states(cluster: ClusterSimulation) -> set[SlotState]:
    return {slot.state for each in cluster.snapshot().members for slot in each.slots}


def _has_news(cluster: ClusterSimulation) -> bool:
    """Whether all that are registered with a ResourceManager are with the one that leads."""
    links = [link for each in cluster.snapshot().members for link in each.links if link.address == RESOURCE_MANAGER]
    return all(link.epoch == 2 and link.silent_ms is not None for link in links)


def _is_running(cluster: ClusterSimulation, attempt: int) -> bool:
    (job,) = cluster.snapshot().jobs
    found = {(state, each.attempt) for each, state in job.executions}
    return job.state is JobState.RUNNING and found == {(ExecutionState.RUNNING, attempt)}


if __name__ == "__main__":
    print(write_cluster_page(Path(sys.argv[1])))
