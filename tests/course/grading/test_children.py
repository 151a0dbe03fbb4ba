"""Children that are forked: they say what fresh ones say, hold nothing they should not, and leave nothing."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from course.curriculum import seams, stubs
from course.curriculum.manifest import DEFAULT_SEED, EXERCISES
from course.grading import boundary, children
from course.grading.judge import judge
from course.grading.runner import Grader, GraderError, Limits
from tests.bench.checks import parts
from tests.bench.same_verdicts import both_ways
from tests.course.grading.test_boundary import CALL, SAYS, Unfenced
from tests.support.polling import until

needs_forks = pytest.mark.skipif(
    sys.platform != "linux" or boundary.available() is None, reason="children are forked within Linux's boundary only"
)
pytestmark = [pytest.mark.usefixtures("own_state"), needs_forks]

RIGHT = stubs.solution("0.1")
PATIENCE = 120.0


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[children._Servers]:
    """Servers of the test's own, so that it may look into them, end and count them."""
    own = children._Servers()
    monkeypatch.setattr(children, "_servers", own)
    monkeypatch.delenv(children.FORKS, raising=False)
    yield own
    own.close()


def only(own: children._Servers) -> psutil.Process:
    (server,) = own._by_job.values()
    assert server is not None
    return psutil.Process(server.pid)


def says(code: str, exercise: str = "0.1") -> str:
    """The text of the error that `code` raises in a child without a fence, behind the boundary alone."""
    report = judge(exercise, f"{SAYS}{CALL}\n{code}\n{RIGHT}", grader=Unfenced(exercise))
    finding = report.rules[0].finding
    assert finding is not None, str(report)
    return str(finding.values["text"])


def both_say(code: str) -> tuple[str, str]:
    """What `says` gives in a fresh child and in a forked one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(children.FORKS, "0")
        fresh = says(code)
    return fresh, says(code)


# -- the same verdicts -------------------------------------------------------------------------------


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_both_ways_say_the_same(exercise: str) -> None:
    mine = [each for each in parts() if each[0] == exercise]
    # What Python's own hash says differs from one process to the next, and so does what is told of it.
    _, name, source = random.Random(f"seed {exercise}").choice([each for each in mine if "hash(" not in each[2]])
    fresh, forked = both_ways(exercise, source, DEFAULT_SEED)
    assert forked == fresh, name


@pytest.mark.parametrize(
    "source",
    ["import os\nos._exit(7)\n", "raise SystemExit\n", "def (", "while True: pass\n", "x = [0] * 10**10\n",
     "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()\n"],
)  # fmt: skip
def test_code_that_does_not_get_far_is_told_the_same(source: str) -> None:
    fresh, forked = both_ways("0.1", source, DEFAULT_SEED)
    assert forked == fresh


def test_our_own_mistakes_are_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for forks in "01":
        monkeypatch.setenv(children.FORKS, forks)
        for broken in ({"driver": "1 / 0"}, {"boundary": "def raise_boundary(*_): raise OSError('no')"}):
            grader = Grader({**seams.child_job("0.1"), **broken})
            grader._job = {**grader._job, **broken}
            with pytest.raises(GraderError) as error:
                judge("0.1", RIGHT, grader=grader)
            told.append(str(error.value))
    assert told[:2] == told[2:]
    assert told[0] == "the check could not start: ZeroDivisionError: division by zero"


# -- what a forked child has -------------------------------------------------------------------------


def test_it_is_forked_by_one_server(servers: children._Servers) -> None:
    parent = "import os; say(os.getppid)"
    first, second = says(parent), says(parent)
    assert first == second == f"GOT {only(servers).pid}"
    assert says("import os; say(lambda: os.getpid() == os.getsid(0) == os.getpgid(0))") == "GOT True"


OPEN = """
import os
def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
say(lambda: [number for number in range(4096) if is_open(number)])
"""


def test_it_has_the_descriptors_of_a_fresh_one() -> None:
    fresh, forked = both_say(OPEN)
    assert forked == fresh == "GOT [0, 1, 2, 3]"


@pytest.mark.parametrize(
    "what",
    ["sorted(sys.modules)", "sorted(os.environ)", "sorted(vars(builtins))", "[sys.path, sys.argv]", "os.umask(0)",
     "[sys.getrecursionlimit(), gc.get_threshold(), gc.get_freeze_count(), gc.isenabled()]", "threading.active_count()",
     "[name(signal.getsignal(number)) for number in sorted(signal.valid_signals())]", "signal.pthread_sigmask(0, [])",
     "[resource.getrlimit(number) for number in range(10)]", "frames(sys._getframe())", "os.getpriority(0, 0)"],
)  # fmt: skip
def test_it_finds_what_a_fresh_one_finds(what: str) -> None:
    start = "import builtins, gc, os, resource, signal, sys, threading\n"
    start += "def name(handler): return getattr(handler, '__name__', handler)\n"
    frames = "def frames(frame): return [frame.f_code.co_name, *frames(frame.f_back)] if frame else []\n"
    fresh, forked = both_say(f"{start}{frames}say(lambda: {what})")
    assert forked == fresh
    assert forked.startswith("GOT ")


@pytest.mark.parametrize(
    "number",
    ["random.random()", "random.Random().random()", "tempfile.mktemp(dir='')", "uuid.uuid4()", "secrets.token_hex()",
     "__import__('numpy').random.random()"],
)  # fmt: skip
def test_no_two_have_the_same_random_numbers(number: str) -> None:
    code = f"import random, secrets, tempfile, uuid\nsay(lambda: {number})"
    first, second = says(code), says(code)
    assert first.startswith("GOT ")
    assert first != second


def test_the_server_holds_nothing_of_ours_and_shares_no_memory(
    servers: children._Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "secret-of-the-parent")
    assert judge("3.1", f"# secret-of-a-learner\n{stubs.solution('3.1')}").passed
    server = only(servers)
    held = b""
    with Path(f"/proc/{server.pid}/mem").open("rb", 0) as memory:
        for line in Path(f"/proc/{server.pid}/maps").read_text().splitlines():
            addresses, rights, _, _, inode, *_ = line.split()
            assert rights[3] == "p" or rights[1] == "-", line
            if rights.startswith("rw") and inode == "0":
                start, end = (int(each, 16) for each in addresses.split("-"))
                memory.seek(start)
                with contextlib.suppress(OSError):
                    held += memory.read(end - start)
    assert b"def run_case" in held  # the driver
    told = json.dumps(Grader(seams.child_job("3.1"))._job)
    mine = [line.strip() for line in stubs.reference_source("3.1").splitlines() if line.strip() not in told]
    for secret in (b"secret-of-the-parent", b"secret-of-a-learner", max(mine, key=len).encode()):
        assert secret not in held, secret


# -- one run and the next ----------------------------------------------------------------------------

TAKES_OVER = {
    "changes the engine": "import refimpl.records as r\nr.SerializationResult.mine = 1\nr.mine = 1",
    "changes Python": "import builtins, json, os, sys\nbuiltins.isinstance = lambda *_: False\nbuiltins.mine = 1\n"
                      "json.dumps = json.loads = os.write = None\nsys.mine = 1",
    "changes the grader": "import gc\nfor each in gc.get_objects():\n    if type(each) is dict and 'modules' in each:\n"
                          "        each.clear()",
    "leaves a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()",
    "leaves at once": "import os\nos._exit(0)",
    "signals its parent": "import os\nos.kill(os.getppid(), 9)",
    "signals its session": "import os\nos.killpg(0, 9)",
    "signals by a pipe": "import fcntl as f\nread, write = os.pipe()\nf.fcntl(read, f.F_SETOWN, os.getppid())\n"
                         "f.fcntl(read, 10, 9)\nf.fcntl(read, f.F_SETFL, os.O_ASYNC)\nos.write(write, b'x')",
    "traces its parent": "call(101 if x86 else 117, 16, os.getppid(), 0, 0)",
    "writes into its parent": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
    "limits its parent": "import resource as r\nr.prlimit(os.getppid(), r.RLIMIT_NOFILE, (1, 1))",
    "writes to every descriptor": "for number in range(64):\n    try:\n        os.write(number, b'x' * 4096)\n"
                                  "    except OSError:\n        pass",
    "eats memory": "kept = [bytes(10**8) for _ in range(100)]",
}  # fmt: skip


@pytest.mark.parametrize("name", TAKES_OVER)
def test_no_run_has_a_part_in_the_next(name: str, servers: children._Servers) -> None:
    """In a child without a fence, so that the boundary alone must hold."""
    looks = """
import builtins, sys, refimpl.records as r
assert not [each for each in (builtins, sys, r, r.SerializationResult) if hasattr(each, "mine")]
"""
    grader = Unfenced("0.1")
    assert judge("0.1", RIGHT, grader=grader).passed
    server = only(servers)
    with contextlib.suppress(GraderError):
        judge("0.1", f"{CALL}import os\n{TAKES_OVER[name]}\n{RIGHT}", grader=grader)
    assert judge("0.1", looks + RIGHT, grader=grader).passed
    assert only(servers) == server
    assert server.children() == []
    assert server.num_threads() == 1


# -- the end -----------------------------------------------------------------------------------------

WAITS = "import time\nprint(flush=True)\ntime.sleep(600)\n"
CHECKS = """
import sys
from course.curriculum import seams
from course.curriculum import stubs
from course.grading.judge import judge
from course.grading.runner import Grader
grader = Grader(seams.child_job("0.1"), keeps_one_ready=True)
assert judge("0.1", stubs.solution("0.1"), grader=grader).passed
run = grader.start(sys.argv[1], [])
run._process._number(30.0)
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("way", ["killed", "killed while a fork of it lives", "left", "killed with its server"])
def test_nothing_is_left_when_the_parent_ends(way: str, tmp_path: Path) -> None:
    forks = "import os\nif not os.fork():\n    import time\n    time.sleep(600)\n" if "fork" in way else ""
    code = CHECKS.replace("print(flush=True)", f"{forks}print(flush=True)")
    command = [sys.executable, "-c", code, WAITS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)}, **pipes) as parent:  # type: ignore[call-overload]
        parent.stdout.readline()
        until(lambda: 2 in [len(each.children()) for each in psutil.Process(parent.pid).children()], PATIENCE)
        all_of_it = psutil.Process(parent.pid).children(recursive=True)
        (server,) = [each for each in all_of_it if each.ppid() == parent.pid and each.children()]
        found = [server, *server.children()]
        assert len(found) == 3
        if "server" in way:
            server.kill()
        if way == "left":
            parent.stdin.close()
        else:
            parent.kill()
        assert psutil.wait_procs(found, PATIENCE)[1] == []
        parent.kill()
        for each in all_of_it:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
    left = list(tmp_path.glob("sluice-check-*"))
    # The boundary lets a child empty its folder, and not take it away.
    assert [list(each.iterdir()) for each in left] == ([[]] if "server" in way else [])


@pytest.mark.parametrize("when", ["before", "at work"])
def test_without_its_server_a_run_begins_afresh(when: str, servers: children._Servers) -> None:
    grader = Grader(seams.child_job("0.1"))
    if when == "at work":
        run = grader.start(f"import time\nwhile time.process_time() < 0.3: pass\n{RIGHT}", [])
        assert run._process._number(PATIENCE)
    else:
        run = grader.start(RIGHT, [])
    only(servers).kill()
    transcript = run.finish()
    assert transcript.ended
    assert transcript.problem is None
    assert judge("0.1", RIGHT, grader=grader).passed


def test_a_server_that_cannot_get_ready_is_not_started_again(servers: children._Servers) -> None:
    job = {**Grader(seams.child_job("0.1"))._job, "driver": "import os; os._exit(5)"}
    first = servers.of(job)
    assert first is not None
    psutil.wait_procs([psutil.Process(first.pid)], PATIENCE)
    assert servers.of(job) is None
    fresh = children.started(job)
    assert type(fresh).__name__ == "_Fresh"
    assert fresh.has_left(PATIENCE)
    assert fresh.end() == 5
    fresh.errors.close()


def test_servers_make_room_for_others(servers: children._Servers) -> None:
    started = set()
    for exercise in ("0.1", "1.1", "1.2", "1.3", "2.1"):
        judge(exercise, "pass")
        started |= {psutil.Process(each.pid) for each in servers._by_job.values() if each is not None}
    assert len(started) == 5
    assert len([each for each in started if each.is_running()]) == len(servers._by_job) == children._MOST_SERVERS


def test_a_run_that_nobody_wants_is_ended_before_it_begins(servers: children._Servers) -> None:
    run = Grader(seams.child_job("11.1")).start(WAITS, [])
    run.abandon()
    run.abandon()
    server = only(servers)
    assert judge("11.1", stubs.solution("11.1")).passed
    assert server.children() == []


def test_a_process_that_we_fork_has_servers_of_its_own(servers: children._Servers) -> None:
    assert judge("0.1", RIGHT).passed
    servers.leave_to_parent()
    assert servers._by_job == {}
    assert judge("0.1", RIGHT).passed


def test_limits_are_those_of_the_run() -> None:
    for seconds in (0.2, 0.4):
        report = judge("0.1", "while True: pass\n", grader=Grader(seams.child_job("0.1"), Limits(case_seconds=seconds)))
        assert report.rules[0].finding.code == "load_timeout"


def test_nothing_is_kept_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    grader = Grader(seams.child_job("0.1"))
    judge("0.1", f"open('x', 'w')\nimport os\nos.mkdir('closed', 0)\n{RIGHT}", grader=grader)
    assert list(tmp_path.glob("sluice-check-*")) == []


def test_where_it_is_turned_off_none_is_forked(monkeypatch: pytest.MonkeyPatch, servers: children._Servers) -> None:
    monkeypatch.setenv(children.FORKS, "0")
    assert judge("0.1", RIGHT).passed
    assert servers._by_job == {}
    job = Grader(seams.child_job("0.1"))._job
    assert not children._can_fork({**job, "has_boundary": False})
    assert json.dumps(job)
    assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL
