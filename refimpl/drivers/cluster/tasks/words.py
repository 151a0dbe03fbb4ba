"""What the drivers of a JobMaster and of its TaskManagers say to each other, in a `JobWord`.

    TaskManager → JobMaster                         JobMaster → TaskManager
    NeedJob    the job is not known there           JobCopy  the job
    Listening  the attempts of a region are made,   Connect  all TaskManagers have made theirs: run
               and their data is to be had here

What crosses is pickled. It comes in an envelope, whose sender has proved that it belongs to the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refimpl.cluster.messages import JobWord
from refimpl.drivers.processes.messages import pack, unpack
from refimpl.errors import LocalUsageError
from refimpl.job.job_graph import Place

__all__ = ["Connect", "DataAddress", "JobCopy", "Listening", "NeedJob", "Word", "read_word", "word"]

DataAddress = tuple[str, int] | None
"""Where a TaskManager lets others read what its attempts produce; `None` if it has all of them."""


@dataclass(frozen=True, slots=True)
class NeedJob:
    """Send the job."""


@dataclass(frozen=True, slots=True)
class JobCopy:
    """The job, pickled: each attempt gets one of its own from it."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Listening:
    """The attempts here of the region that begins at `region` are made, and their data is to be had at this address.

    What the job keeps here when its attempts have finished is to be had at `results`.
    """

    region: Place
    address: DataAddress
    results: DataAddress = None


@dataclass(frozen=True, slots=True)
class Connect:
    """Let the region that begins at `region` run; its data is to be had at these addresses, by TaskManager.

    So is what it reads afterwards, from TaskManagers that have nothing of it.
    """

    region: Place
    addresses: Mapping[str, DataAddress]


Word = NeedJob | JobCopy | Listening | Connect


def word(job_id: str, epoch: int, generation: int, content: Word) -> JobWord:
    """A word about a generation of a job."""
    return JobWord(job_id, epoch, generation, pack(content))


def read_word(message: JobWord) -> Word:
    """What a word says.

    Raises:
        LocalUsageError: it cannot be read here.
    """
    content = unpack(message.content)
    if not isinstance(content, Word):
        raise LocalUsageError(f"no word between JobMaster and TaskManager: {content!r:.100}")
    return content
