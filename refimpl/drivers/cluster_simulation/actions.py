"""What can happen next to a simulated cluster, beside what happens to the tasks in it."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.drivers.simulation.actions import Action

__all__ = ["ClusterAction", "CrashMember", "Elect", "PauseMember", "ResumeMember", "ReviveMember", "Wake"]


@dataclass(frozen=True, slots=True)
class Wake:
    """Let a member do what is due, at `time_ms`."""

    member: str
    time_ms: float

    def __str__(self) -> str:
        return f"wake {self.member} at {self.time_ms:.3f} ms"


@dataclass(frozen=True, slots=True)
class Elect:
    """Let somebody lead at this address, at `time_ms`, under an epoch newer than all before."""

    address: str
    time_ms: float

    def __str__(self) -> str:
        return f"elect {self.address} at {self.time_ms:.3f} ms"


@dataclass(frozen=True, slots=True)
class CrashMember:
    """Let a member be no more, with all that it has in memory; nobody does that but you."""

    address: str

    def __str__(self) -> str:
        return f"crash {self.address}"


@dataclass(frozen=True, slots=True)
class ReviveMember:
    """Let a member begin anew that is gone; nobody does that but you."""

    address: str

    def __str__(self) -> str:
        return f"revive {self.address}"


@dataclass(frozen=True, slots=True)
class PauseMember:
    """Let a member hear, say and do nothing; if it led, somebody else will after a while. Nobody does that but you."""

    address: str

    def __str__(self) -> str:
        return f"pause {self.address}"


@dataclass(frozen=True, slots=True)
class ResumeMember:
    """Let a member that was paused go on with what it believed; nobody does that but you."""

    address: str

    def __str__(self) -> str:
        return f"resume {self.address}"


ClusterAction = Action | Wake | Elect | CrashMember | ReviveMember | PauseMember | ResumeMember
