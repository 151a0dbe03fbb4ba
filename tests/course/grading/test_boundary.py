"""Learner code that has broken Python's fence: the system's boundary holds, as an ordinary user and as root.

Each attack is a program that says what it got by an exception, whose text is in the report. What must not have happened
is looked at from outside.
"""

from __future__ import annotations

import json
import os
import platform
import random
import socket
import sys
from pathlib import Path

import psutil
import pytest

from course.curriculum import seams, stubs
from course.curriculum.manifest import EXERCISES
from course.grading import boundary, children
from course.grading.judge import judge
from course.grading.loading import check_of
from course.grading.rules import Seen, Status
from course.grading.runner import Grader
from course.grading.transcripts import Transcript, parsed
from course.learner.receipts import ReceiptError, make_receipt, verify

pytestmark = pytest.mark.usefixtures("own_state")

RIGHT = stubs.solution("3.1")
needs_boundary = pytest.mark.skipif(boundary.available() is None, reason="this system has no boundary")

# The fence is an audit hook in Python: whoever reaches its memory can take it down. So the attacks do without it, as
# code that has broken it would; `RAISED` makes the child raise none.
WITHOUT_FENCE = "def limit_resources(limits): pass\nlimit_processes = raise_fence = lambda *rules: None\n"


class Unfenced(Grader):
    """A grader whose children have no fence, and the boundary alone."""

    def __init__(self, exercise: str) -> None:
        super().__init__(seams.child_job(exercise))
        self._job = {**self._job, "fence": WITHOUT_FENCE}


def tried(attack: str) -> str:
    """What an attack says it got; the report's first line."""
    report = judge("3.1", f"{attack}\n{RIGHT}", grader=Unfenced("3.1"))
    return str(report)


SAYS = """
def say(attempt):
    try:
        got = attempt()
    except BaseException as error:
        raise RuntimeError(f"refused, {type(error).__name__}: {error}") from None
    raise RuntimeError(f"GOT {got!r}")
"""

ATTACKS = {
    "read a file": "say(lambda: open({secret!r}).read())",
    "list a folder": "import os; say(lambda: os.listdir({folder!r}))",
    "read by a link": "import os; os.symlink({secret!r}, 'link'); say(lambda: open('link').read())",
    "write a file": "say(lambda: open({outside!r}, 'w').write('x'))",
    "append to a file": "say(lambda: open({secret!r}, 'a').write('x'))",
    "make a folder": "import os; say(lambda: os.mkdir({outside!r}))",
    "remove a file": "import os; say(lambda: os.remove({secret!r}))",
    "rename a file": "import os; say(lambda: os.rename({secret!r}, 'here'))",
    "link a file": "import os; say(lambda: os.link({secret!r}, 'here'))",
    "cut a file": "import os; say(lambda: os.truncate({secret!r}, 0))",
    "open a file to others": "import os; say(lambda: os.chmod({secret!r}, 0o777))",
    "date a file": "import os; say(lambda: os.utime({secret!r}, (1, 1)))",
    "own a file": "import os; say(lambda: os.chown({secret!r}, os.getuid(), os.getgid()))",
    "attribute of a file": "import os; say(lambda: os.setxattr({secret!r}, 'user.x', b'1'))",
    "the parent's environment": "say(lambda: open('/proc/{parent}/environ').read())",
    "the parent's memory": "say(lambda: open('/proc/{parent}/mem', 'rb').read(1))",
    "own memory": "say(lambda: open('/proc/self/mem', 'rb').read(1))",
    "the system's passwords": "say(lambda: open('/etc/passwd').read())",
    "connect": "import socket; say(lambda: socket.create_connection(('127.0.0.1', {port}), 1))",
    "datagram": "import socket; say(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))",
    "local socket": "import socket; say(lambda: socket.socket(socket.AF_UNIX))",
    "netlink": "import socket; say(lambda: socket.socket(16, socket.SOCK_RAW))",
    "fork": "import os; say(lambda: os.fork() or os._exit(0))",
    "run a program": "import subprocess; say(lambda: subprocess.run(['/bin/true']))",
    "spawn": "import os; say(lambda: os.posix_spawn('/bin/true', ['true'], {{}}))",
    "exec": "import os; say(lambda: os.execv('/bin/true', ['true']))",
    "multiprocessing": "import multiprocessing as m; say(lambda: m.get_context('fork').Process(target=print).start())",
    "signal the parent": "import os, signal; say(lambda: os.kill({parent}, 0))",
    "signal all": "import os; say(lambda: os.kill(-1, 0))",
    "a handle of the parent": "import os; say(lambda: os.pidfd_open({parent}))",
    "limits of the parent": "import resource as r; say(lambda: r.prlimit({parent}, r.RLIMIT_NOFILE))",
    "priority of the parent": "import os; say(lambda: os.setpriority(os.PRIO_PROCESS, {parent}, 5))",
    "trace the parent": "import ctypes; say(lambda: call(101 if x86 else 117, 16, {parent}, 0, 0))",
    "io_uring": "import ctypes; say(lambda: call(425, 8, ctypes.create_string_buffer(256)))",
    "another numbering": "import ctypes; say(lambda: call(0x40000000 + 41, 2, 1, 0))",
    "mount": "import ctypes; say(lambda: call(165 if x86 else 40, b'x', b'/tmp', b'tmpfs', 0, 0))",
    "unshare": "import ctypes; say(lambda: call(272 if x86 else 97, 0x10000000))",
    "keys": "import ctypes; say(lambda: call(250 if x86 else 219, 0, -3, 1))",
    "shared memory": "import ctypes; say(lambda: call(29 if x86 else 194, 0, 4096, 0o1600))",
    "shared memory by name": "from multiprocessing.shared_memory import SharedMemory as S; "
                             "say(lambda: S('sluice_x', create=True, size=9))",
    "memory without a limit": "import os; say(lambda: os.memfd_create('x'))",
    "raise a limit": "import resource as r; say(lambda: r.setrlimit(r.RLIMIT_CPU, (999, 999)))",
    "make a device": "import os, stat; say(lambda: os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(254, 0)))",
    "make a pipe": "import os; say(lambda: os.mkfifo('pipe'))",
    "make a local socket": "import os, stat; say(lambda: os.mknod('socket', stat.S_IFSOCK | 0o600))",
    "signal through a pipe": "import fcntl, os; say(lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, {parent}))",
    "open without reading": "import os; say(lambda: os.open({secret!r}, 3))",
    "empty a module": "import os; say(lambda: os.truncate(os.__file__, os.stat(os.__file__).st_size))",
    "open another way": "how = bytes(24); say(lambda: call(437, -100, {secret!r}.encode(), how, 24))",
    "attribute by a new call": "import ctypes; value = ctypes.addressof(ctypes.create_string_buffer(b'1')); "
                               "how = value.to_bytes(8, 'little') + bytes([1]) + bytes(7); "
                               "say(lambda: call(463, -100, {secret!r}.encode(), 0, b'user.x', how, 16))",
    "user namespace by clone": "say(lambda: call(56 if x86 else 220, 0x10000000 | 17, 0, 0, 0, 0))",
    "network of its own": "say(lambda: call(56 if x86 else 220, 0x40010900, 0, 0, 0, 0))",
    "flags of a file": "import fcntl, os; say(lambda: fcntl.ioctl(os.open(os.__file__, 0), 0x80086601, bytes(8)))",
    "read of a process": "import os; say(lambda: os.readlink('/proc/{parent}/exe'))",
    "another user for files": "say(lambda: call(122 if x86 else 151, 65534))",
    "abstract socket": "import socket; say(lambda: socket.socket(socket.AF_UNIX).bind(chr(0) + 'x'))",
    "a session of its own": "import os; say(lambda: os.setsid())",
    "from a thread": "from concurrent.futures import ThreadPoolExecutor as Pool\n"
                     "say(lambda: Pool(1).submit(lambda: open({secret!r}).read()).result())",
}  # fmt: skip

CALL = f"""
x86 = {platform.machine() == "x86_64"}
def call(number, *arguments):
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    got = libc.syscall(ctypes.c_long(number), *arguments)
    if got < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got
"""


@needs_boundary
@pytest.mark.skipif(sys.platform != "linux", reason="these are the calls of Linux")
@pytest.mark.parametrize("name", ATTACKS)
def test_what_has_broken_the_fence_gets_nowhere(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    secret, outside = folder / "key", folder / "outside"
    secret.write_text("the secret")
    before = secret.stat()
    with socket.create_server(("127.0.0.1", 0)) as server:
        places = {"secret": str(secret), "folder": str(folder), "outside": str(outside), "parent": os.getpid(),
                  "port": server.getsockname()[1]}  # fmt: skip
        said = tried(SAYS + CALL + ATTACKS[name].format(**places))
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert "called: refused, " in said, said
    assert "the secret" not in said
    assert secret.read_text() == "the secret"
    assert (secret.stat().st_mode, secret.stat().st_mtime) == (before.st_mode, before.st_mtime)
    assert [each.name for each in folder.iterdir()] == ["key"]


@needs_boundary
def test_what_a_check_needs_is_within_the_boundary(tmp_path: Path) -> None:
    """Its own folder, Python's modules, numpy, threads, random numbers."""
    code = """
import numpy, os, random, tempfile, threading
open("own", "w").write("x")
os.remove("own")
thread = threading.Thread(target=random.random)
thread.start()
thread.join()
os.urandom(3)
with tempfile.TemporaryDirectory() as folder:
    open(folder + "/x", "w").close()
"""
    assert judge("3.1", code + RIGHT, grader=Unfenced("3.1")).passed


@needs_boundary
@pytest.mark.skipif(sys.platform != "linux", reason="there a thread is no process")
def test_an_ordinary_user_can_start_threads() -> None:
    """To Linux they are processes; a limit of none, which root has not, ended every check as it began."""
    code = "import resource\nassert resource.getrlimit(resource.RLIMIT_NPROC)[0] != 0\n"
    assert judge("3.1", code + RIGHT).passed


def test_the_reported_way_round_the_fence_is_closed(tmp_path: Path) -> None:
    """`isinstance` replaced: the fence took every path for an open descriptor."""
    secret = tmp_path / "key"
    secret.write_text("the secret")
    attack = f"""
import builtins
kept = builtins.isinstance
builtins.isinstance = lambda *_: False
try:
    found = open({str(secret)!r}).read()
finally:
    builtins.isinstance = kept
"""
    report = judge("3.1", attack + RIGHT)
    assert report.status is Status.ERROR
    assert "the secret" not in str(report)


def test_nothing_of_the_environment_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "the secret")
    said = tried(SAYS + "import os; say(lambda: sorted(os.environ))")
    assert "A_TOKEN" not in said
    assert "HOME" in said


@needs_boundary
def test_no_process_and_no_thread_is_left(tmp_path: Path) -> None:
    before = below_us()  # other tests' too: a Spark session's Java has processes below it for as long as it runs
    judge("3.1", f"import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n{RIGHT}")
    servers = [psutil.Process(each.pid) for each in children._servers._by_job.values() if each is not None]
    assert [each for server in servers for each in server.children()] == []
    assert {server.num_threads() for server in servers} <= {1}
    assert below_us() - before <= set(servers), "which wait for the next run"


def below_us() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


# -- receipts ----------------------------------------------------------------------------------------


def test_without_a_boundary_a_receipt_is_not_run_unless_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(make_receipt([])))
    monkeypatch.setattr("course.learner.receipts.available", lambda: None)
    with pytest.raises(ReceiptError, match=r"nothing that keeps a program to its own folder.*--trust"):
        verify(file)
    assert verify(file, trust=True)[0] is False


# -- transcripts -------------------------------------------------------------------------------------

ODD = [None, True, -1, 2**70, 1e308, float("nan"), "", "x" * 50, [], [[]], {}, {"a": [1]}, [None], ["x", 1, {}]]


def mutated(value: object, random_: random.Random) -> object:
    """The value with one thing in it changed to something odd."""
    if isinstance(value, list) and value and random_.random() < 0.8:
        place, changed = random_.randrange(len(value)), list(value)
        match random_.randrange(4):
            case 0:
                del changed[place]
            case 1:
                changed.insert(place, random_.choice(ODD))
            case _:
                changed[place] = mutated(changed[place], random_)
        return changed
    if isinstance(value, dict) and value and random_.random() < 0.8:
        key = random_.choice(list(value))
        return {**value, key: mutated(value[key], random_)}
    return random_.choice(ODD)


class Forging(Grader):
    """A grader whose transcripts are forged: those of the reference part, changed."""

    def __init__(self, exercise: str, seed: int) -> None:
        super().__init__(seams.child_job(exercise))
        self.exercise, self.random = exercise, random.Random(seed)

    def start(self, source, cases, *, is_kept=False):
        expected = check_of(self.exercise).expected(cases)
        seen = {number: Seen(events, None) for number, events in enumerate(expected)}
        for number in self.random.sample(sorted(seen), min(3, len(seen))):
            ending = mutated({"problem": "raised", "error": {}}, self.random) if self.random.random() < 0.3 else None
            seen[number] = Seen(mutated(seen[number].events, self.random), ending)
        transcript = Transcript(loaded=True, seen=seen, step=len(cases) - 1, ended=True)
        return _Done(transcript)


class _Done:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript

    def finish(self) -> Transcript:
        return self.transcript

    def abandon(self) -> None: ...


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_odd_transcript_ends_in_a_report(exercise: str) -> None:
    for seed in range(12):
        report = judge(exercise, stubs.solution(exercise), grader=Forging(exercise, seed))
        assert str(report), f"seed {seed}"
        assert json.dumps(report.rules, default=str), f"seed {seed}"


def test_lines_of_any_shape_make_a_transcript() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    lines = [deep, b'["did", 0, 5, null]', b'["loaded", 7]', b'["end", null]', b"\xff", b'["case", "x"]', b"7" * 9000]
    transcript = parsed(b"\n".join(lines))
    assert not transcript.loaded


# -- the reference part -------------------------------------------------------------------------------


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_engines_own_part_is_refused_by_name(exercise: str) -> None:
    seam = seams.seam(exercise)
    for source in (
        f"from {seam.module} import {seam.part}\n",
        f"from {seam.module} import {seam.part} as mine\nL.exercise({exercise!r})(mine)\n",
        f"import importlib\nfound = importlib.import_module({seam.module!r})\nmine = found.{seam.part}\n",
        f"import sys, {seam.module}\nL.exercise({exercise!r})(getattr(sys.modules[{seam.module!r}], {seam.part!r}))\n",
    ):
        report = judge(exercise, source)
        assert report.rules[0].finding is not None, source
        assert report.rules[0].finding.code in ("reference_part", "reference_function"), source
