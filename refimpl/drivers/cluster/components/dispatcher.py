"""A Dispatcher with those who lead its jobs, in one process; clients ask it.

submit     lead a new job, pickled in the request          {"job": its id}
list       all jobs, over or not                           [{"job", "state", "why", …}, …]
status     one job                                         {"job", "state", "why", …}
wait       one job, when it is over                        the same
cancel     end a job; answered when it is over             the same
savepoint  take a savepoint of the name in `argument`      {"job", "savepoint"}
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from refimpl.cluster.dispatcher import (
    CancelJob,
    Dispatcher,
    DispatcherDecision,
    ForgetJob,
    JobRecord,
    JobRecordState,
    JobRegistry,
    LeadJob,
)
from refimpl.cluster.endpoint import Endpoint
from refimpl.cluster.executions import ExecutionState
from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.heartbeat import FLINKS_HEARTBEAT, HeartbeatTimes
from refimpl.cluster.job_status import JobState
from refimpl.cluster.messages import ClientAnswer, ClientRequest, Message
from refimpl.cluster.restart import RestartStrategy
from refimpl.drivers.cluster.components.component_loop import ComponentLoop
from refimpl.drivers.cluster.components.job_master import LeadingJobMaster, LedJob
from refimpl.drivers.cluster.high_availability.leaders import DISPATCHER, Leaders, Leadership, job_master_of
from refimpl.drivers.cluster.rpc.address import rpc_address
from refimpl.errors import LocalUsageError, SluiceError, described
from refimpl.state.store import SnapshotStore

__all__ = ["LeadingDispatcher"]


_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_JOB_ID_SAYS = "1 to 64 letters, digits, dashes and underscores, and no dash or underscore first"


class _ClientEndpoint(Endpoint):
    """The endpoint that clients speak with; `requests` are those that nobody has looked at, with who has asked."""

    def __init__(self, address: str, token: FencingToken) -> None:
        super().__init__(address, token)
        self.requests: list[tuple[str, FencingToken, ClientRequest]] = []

    @property
    def next_deadline(self) -> float | None:
        return None

    def on_timeout(self, now_ms: float) -> None:
        """Nothing is due, ever."""

    def answer(self, client: str, token: FencingToken, answer: ClientAnswer) -> None:
        self._send(client, token, answer)

    def forget(self, client: str) -> None:
        """A client has gone for good."""
        self._fence.forget(client)

    def _handle(self, message: Message, sender: str, token: FencingToken, now_ms: float) -> None:
        if isinstance(message, ClientRequest):
            self.requests.append((sender, token, message))


Answer = Callable[[Any, str], None]
"""Takes what was asked for, or why not."""


class LeadingDispatcher:
    """The Dispatcher that leads under `token`, in the process of `loop`: it takes over every job in `registry`.

    Checkpoints are kept in `store`, under the ids of jobs; `make_strategy` makes the restart strategy of each.

    Flink:   Dispatcher, DispatcherJobManagerRunner (runtime.dispatcher), 1.11.4
    """

    def __init__(
        self,
        token: FencingToken,
        loop: ComponentLoop,
        leaders: Leaders,
        registry: JobRegistry,
        store: SnapshotStore,
        make_strategy: Callable[[], RestartStrategy],
        heartbeat: HeartbeatTimes = FLINKS_HEARTBEAT,
    ) -> None:
        self.endpoint = _ClientEndpoint(rpc_address(DISPATCHER, loop.place), token)
        self._loop = loop
        self._leaders = leaders
        self._store = store
        self._make_strategy = make_strategy
        self._heartbeat = heartbeat
        self._dispatcher = Dispatcher(registry)
        self._led: dict[str, LeadingJobMaster] = {}
        self._waiting: dict[str, list[Answer]] = {}
        self._to_cancel: set[str] = set()  # those that nobody leads yet
        loop.post(lambda _now_ms: self._carry_out(self._dispatcher.recover()))

    # -- what the loop calls -----------------------------------------------------------------------------

    def leaders_are(self, leaders: Mapping[str, Leadership], now_ms: float) -> None:
        """It leads, and follows nobody."""

    def peer_is_gone(self, address: str, why: str, now_ms: float) -> None:
        self.endpoint.forget(address)

    def step(self, now_ms: float) -> None:
        """Answer who has asked."""
        requests, self.endpoint.requests = self.endpoint.requests, []
        for client, token, request in requests:
            answer = partial(self._answer, client, token, request.number)
            try:
                self._obey(request, answer, now_ms)
            except SluiceError as error:
                answer(None, str(error))

    def end(self) -> None:
        """No call of a store any more. When the loop has ended."""
        for leader in self._led.values():
            leader.end()

    # -- requests ----------------------------------------------------------------------------------------

    def _obey(self, request: ClientRequest, answer: Answer, now_ms: float) -> None:
        job_id = request.job_id
        match request.verb:
            case "submit":
                if not _JOB_ID.fullmatch(job_id):
                    raise LocalUsageError(f"{job_id!r:.100} is no id of a job: {_JOB_ID_SAYS}")
                self._carry_out(self._dispatcher.submit(job_id, request.job))
                answer({"job": job_id}, "")
            case "list":
                answer([self._shown(each) for each in self._dispatcher.jobs], "")
            case "status":
                answer(self._shown(self._record(job_id)), "")
            case "wait" | "cancel":
                record = self._record(job_id)
                is_done = record.state is JobRecordState.DONE
                if is_done and job_id not in self._led:
                    answer(self._shown(record), "")
                    return
                self._waiting.setdefault(job_id, []).append(answer)
                if request.verb == "cancel" and not is_done:
                    self._carry_out(self._dispatcher.cancel(job_id))
            case "savepoint":
                self._record(job_id)
                if (leader := self._led.get(job_id)) is None:
                    raise LocalUsageError(f"job {job_id} does not run")
                taken = {"job": job_id, "savepoint": request.argument}
                leader.savepoint(request.argument, lambda trouble: answer(taken, trouble), now_ms)
            case _:
                raise LocalUsageError(f"a Dispatcher does not know {request.verb!r}")

    def _answer(self, client: str, token: FencingToken, number: int, content: Any, trouble: str) -> None:
        text = "" if trouble else json.dumps(content)
        self.endpoint.answer(client, token, ClientAnswer(number, text, trouble))

    def _record(self, job_id: str) -> JobRecord:
        """As the registry has it.

        Raises:
            LocalUsageError: there is none.
        """
        records = {each.job_id: each for each in self._dispatcher.jobs}
        if job_id not in records:
            raise LocalUsageError(f"there is no job {job_id!r}; the jobs are: {', '.join(records) or 'none'}")
        return records[job_id]

    def _shown(self, record: JobRecord) -> dict[str, Any]:
        leader = self._led.get(record.job_id)
        shown: dict[str, Any] = {"job": record.job_id, "state": record.state.value, "why": record.why}
        if record.end is not None:
            shown["state"] = record.end.value
        elif leader is not None:
            executions = leader.endpoint.scheduler.executions.values()
            shown["state"] = leader.state.value
            shown["why"] = leader.endpoint.scheduler.failure or ""
            shown["tasks"] = len(executions)
            shown["running"] = sum(each.state is ExecutionState.RUNNING for each in executions)
            shown["restarts"] = max(each.id.generation for each in executions)
            shown["checkpoints"] = leader.num_checkpoints
            shown["task_managers"] = leader.task_managers
            shown["leader"] = f"{leader.endpoint.token} at {leader.endpoint.address}"
        return shown

    # -- jobs --------------------------------------------------------------------------------------------

    def _carry_out(self, decisions: list[DispatcherDecision]) -> None:
        for decision in decisions:
            match decision:
                case LeadJob(record):
                    name = f"claim of {record.job_id}"
                    threading.Thread(target=self._claim, args=(record,), name=name, daemon=True).start()
                case CancelJob(job_id):
                    if (leader := self._led.get(job_id)) is not None:
                        leader.cancel(self._loop.clock.now_ms)
                    else:
                        self._to_cancel.add(job_id)
                case ForgetJob(job_id, end):
                    self._to_cancel.discard(job_id)
                    if (leader := self._led.get(job_id)) is not None:
                        leader.forget(end)

    def _claim(self, record: JobRecord) -> None:
        """Take the lead over a job, on a thread of its own: its store is asked, and its code is loaded."""
        try:
            assert isinstance(record.job, bytes), f"job {record.job_id} is {type(record.job).__name__}, not pickled"
            job = LedJob.claim(record.job_id, record.job, self._store)
        except BaseException as error:  # noqa: BLE001 - whatever a job raises where it is loaded ends that job
            why = str(error) if isinstance(error, SluiceError) else described(error)

            def failed(_now_ms: float) -> None:
                self._over(record.job_id, JobState.FAILED, why)
                self._answer_waiting(record.job_id)

            self._loop.post(failed)
        else:
            self._loop.post(partial(self._lead, job))

    def _lead(self, job: LedJob, now_ms: float) -> None:
        over, gone = partial(self._over, job.job_id), partial(self._gone, job.job_id)
        leader = LeadingJobMaster(job, self._make_strategy(), self._loop, over, gone, self._heartbeat)
        self._led[job.job_id] = leader
        self._loop.add(leader)
        self._leaders.publish(job_master_of(job.job_id), (leader.endpoint.address, leader.endpoint.token))
        if job.job_id in self._to_cancel:
            leader.cancel(now_ms)

    def _over(self, job_id: str, end: JobState, why: str) -> None:
        """Store how a job has ended, before what was kept for it goes: nobody leads it again then."""
        self._carry_out(self._dispatcher.ended(job_id, end, why if end is JobState.FAILED else ""))

    def _gone(self, job_id: str) -> None:
        """Nothing of a job is left."""
        leader = self._led.pop(job_id)
        self._loop.remove(leader)
        self._leaders.withdraw(job_master_of(job_id), leader.endpoint.token)
        self._answer_waiting(job_id)

    def _answer_waiting(self, job_id: str) -> None:
        waiting = self._waiting.pop(job_id, [])
        try:
            shown = self._shown(self._record(job_id))
        except LocalUsageError as forgotten:  # so many others have ended meanwhile
            for answer in waiting:
                answer(None, str(forgotten))
        else:
            for answer in waiting:
                answer(shown, "")
