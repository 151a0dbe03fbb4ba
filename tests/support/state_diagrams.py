"""Draws the engine's state machines out of their tables into `refimpl/STATES.md`.

    python -m tests.support.state_diagrams

A new machine gets a line in `MACHINES`; the first state of its table is where it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from refimpl.checkpoint import PENDING_TRANSITIONS, TASK_TRANSITIONS
from refimpl.cluster import (
    EXECUTION_TRANSITIONS,
    HEARTBEAT_TRANSITIONS,
    JOB_RECORD_TRANSITIONS,
    JOB_TRANSITIONS,
    LEADER_TRANSITIONS,
    MANAGED_SLOT_TRANSITIONS,
    REGION_TRANSITIONS,
    REGISTRATION_TRANSITIONS,
    SLOT_TRANSITIONS,
)
from refimpl.consumer import CAPTURE_TRANSITIONS, CHANNEL_TRANSITIONS
from refimpl.exchange import FRAME_TRANSITIONS
from refimpl.producer import BLOCKING_TRANSITIONS, SUBPARTITION_TRANSITIONS, VIEW_TRANSITIONS
from refimpl.task import SINK_TRANSITIONS, SNAPSHOT_TRANSITIONS, TASK_LIFE_TRANSITIONS

FILE = Path(__file__).parents[2] / "refimpl" / "STATES.md"

_HEAD = """# The state machines of the engine

Drawn from the tables in the code by `python -m tests.support.state_diagrams`. An event without an arrow is a mistake of
the caller: a `LocalUsageError` that names state and event, and nothing has changed.
"""


@dataclass(frozen=True)
class Machine:
    """One machine: what it is the state of, the file where its table stands, and the table."""

    title: str
    file: str
    table: Mapping[Enum, Mapping[Enum, Enum]]


MACHINES = [
    Machine("A subpartition, as its producer leaves it", "producer/result_subpartition.py", SUBPARTITION_TRANSITIONS),
    Machine(
        "A subpartition's view, as its one reader comes and goes", "producer/subpartition_view.py", VIEW_TRANSITIONS
    ),
    Machine("A blocking result, written and then read", "producer/blocking_subpartition.py", BLOCKING_TRANSITIONS),
    Machine("A region of a job, as it runs and fails", "cluster/region_scheduling.py", REGION_TRANSITIONS),
    Machine("A decoder, as the parts of a frame come", "exchange/frame_decoder.py", FRAME_TRANSITIONS),
    Machine("A remote channel, as both its ends use it", "consumer/connected_channel.py", CHANNEL_TRANSITIONS),
    Machine("An input, as unaligned barriers come", "consumer/unaligned.py", CAPTURE_TRANSITIONS),
    Machine("One snapshot of a task", "task/snapshotting.py", SNAPSHOT_TRANSITIONS),
    Machine("A two-phase sink", "task/two_phase_sink.py", SINK_TRANSITIONS),
    Machine("A checkpoint under way", "checkpoint/pending.py", PENDING_TRANSITIONS),
    Machine("An attempt, as checkpoints see it", "checkpoint/live_tasks.py", TASK_TRANSITIONS),
    Machine("A component that wants to lead", "cluster/leader.py", LEADER_TRANSITIONS),
    Machine("A component's registration with a leader", "cluster/registration.py", REGISTRATION_TRANSITIONS),
    Machine("A peer, as heartbeats show it", "cluster/heartbeat.py", HEARTBEAT_TRANSITIONS),
    Machine("A slot, as its TaskManager sees it", "cluster/slot_table.py", SLOT_TRANSITIONS),
    Machine("A slot, as the ResourceManager sees it", "cluster/slot_manager.py", MANAGED_SLOT_TRANSITIONS),
    Machine("An attempt, on its TaskManager", "task/task_state.py", TASK_LIFE_TRANSITIONS),
    Machine("An attempt, as its JobMaster sees it", "cluster/executions.py", EXECUTION_TRANSITIONS),
    Machine("A job as a whole", "cluster/job_status.py", JOB_TRANSITIONS),
    Machine("A job, as the Dispatcher has it stored", "cluster/dispatcher.py", JOB_RECORD_TRANSITIONS),
]


def diagram(table: Mapping[Enum, Mapping[Enum, Enum]]) -> str:
    """The table as Mermaid's `stateDiagram`; events with the same effect share an arrow."""
    lines = ["stateDiagram-v2", f"    [*] --> {next(iter(table)).name}"]
    lines += [f"    {state.name}: {state.value}" for state in table]
    for state, row in table.items():
        for target in dict.fromkeys(row.values()):
            events = ", ".join(str(event.value) for event, to in row.items() if to is target)
            lines.append(f"    {state.name} --> {target.name}: {events}")
    return "\n".join(lines)


def document() -> str:
    """The whole of `STATES.md`."""
    parts = [
        f"## {machine.title}\n\n`{machine.file}`\n\n```mermaid\n{diagram(machine.table)}\n```\n" for machine in MACHINES
    ]
    return "\n".join([_HEAD, *parts])


if __name__ == "__main__":
    FILE.write_text(document(), encoding="utf-8")
