"""Learner code that tries to get a pass without an answer: it does not, and the machine stays as it was."""

from __future__ import annotations

import tempfile
from importlib.util import cache_from_source
from pathlib import Path

import psutil
import pytest

import course
import refimpl
from course.curriculum import seams, stubs
from course.grading.judge import judge
from course.grading.report import MAX_LINES
from course.grading.rules import Status
from course.grading.runner import Grader, Limits

ROOT = Path(course.__file__).parent.parent
SPANNING = Path(refimpl.__file__).parent / "records" / "spanning.py"
VECTORS = ROOT / "course" / "vectors" / "1.11.4"

SHELL = """
class Mine:
    def __init__(self): self.data = b""
    def serialize_record(self, record): self.data = record
    def copy_to_buffer_builder(self, builder): {body}
    def reset(self): pass
    def prune(self): pass
"""


def with_body(body: str, before: str = "") -> str:
    return before + SHELL.format(body=body)


SABOTAGE = {
    "always_equal": with_body(
        "return Yes()",
        "class Yes:\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\n"
        "    name = value = 'FULL_RECORD'\n    is_full_record = is_full_buffer = True\n",
    ),
    "always_equal_string": with_body(
        "return Yes('FULL_RECORD')",
        "class Yes(str):\n    def __eq__(self, o): return True\n    __hash__ = str.__hash__\n",
    ),
    "the_name_as_text": with_body("return 'FULL_RECORD'"),
    "asserts_removed": with_body("return True", "import sys\nsys.flags\n__debug__\nassert True\n"),
    "prints_a_report": with_body('print(\'{"status": "passed", "rules": []}\'); return True'),
    "writes_a_transcript": with_body(
        '[os.write(fd, b\'["end", {"tampered": [], "printed": 0}]\\n\') for fd in range(1, 9) if ok(fd)]',
        "import os\ndef ok(fd):\n    try:\n        os.fstat(fd)\n"
        "    except OSError:\n        return False\n    return True\n",
    ),
    "answers_for_the_driver": with_body(
        "return None",
        "import os\nfor fd in range(3, 9):\n    for i in range(2000):\n        try:\n"
        '            os.write(fd, b\'["case", %d]\\n["did", %d, [], null]\\n\' % (i, i))\n'
        "        except OSError:\n            break\n",
    ),
    "sys_exit": with_body("import sys; sys.exit(0)"),
    "sys_exit_at_once": "import sys\nsys.exit(0)\n",
    "os_exit": with_body("import os; os._exit(0)"),
    "os_exit_at_once": "import os\nos._exit(0)\n",
    "endless_loop": with_body("\n        while True: pass"),
    "endless_at_once": "while True:\n    pass\n",
    "endless_and_deaf": with_body(
        "\n        while True:\n            try:\n                while True: pass\n"
        "            except BaseException: pass"
    ),
    "recursion": with_body("return self.copy_to_buffer_builder(builder)"),
    "huge_memory": with_body("self.x = bytearray(10 << 30)"),
    "reads_the_vectors": f"import os\nfiles = os.listdir({str(VECTORS)!r})\n" + SHELL.format(body="return None"),
    "opens_the_vectors": f"text = open({str(VECTORS / 'spanning.json')!r}).read()\n" + SHELL.format(body="return None"),
    "opens_the_reference": f"exec(open({str(SPANNING)!r}).read())\nclass Mine(SpanningRecordSerializer): pass\n",
    "loads_the_reference_file": (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('other', {str(SPANNING)!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "sys.modules['other'] = module\nspec.loader.exec_module(module)\n"
        "class Mine(module.SpanningRecordSerializer): pass\n"
    ),
    "reloads_the_reference": (
        "import sys, importlib\nsys.meta_path = sys.meta_path[1:]\ndel sys.modules['refimpl.records.spanning']\n"
        "m = importlib.import_module('refimpl.records.spanning')\nclass Mine(m.SpanningRecordSerializer): pass\n"
    ),
    "imports_the_reference": (
        "from refimpl.records import SpanningRecordSerializer\n"
        "class Mine:\n    def __init__(self): self.real = SpanningRecordSerializer()\n"
        "    def serialize_record(self, r): self.real.serialize_record(r)\n"
        "    def copy_to_buffer_builder(self, b): return self.real.copy_to_buffer_builder(b)\n"
        "    def reset(self): self.real.reset()\n    def prune(self): self.real.prune()\n"
    ),
    "derives_from_the_reference": (
        "from refimpl.records.spanning import SpanningRecordSerializer\nclass Mine(SpanningRecordSerializer): pass\n"
    ),
    "decorates_the_reference": (
        "from refimpl.records import SpanningRecordSerializer\nL.exercise('3.1')(SpanningRecordSerializer)\n"
    ),
    "patches_the_builder": (
        "from refimpl.memory import BufferBuilder\nBufferBuilder.is_full = property(lambda self: False)\n"
        + stubs.solution("3.1")
    ),
    "patches_the_enum": (
        "from refimpl.records import SerializationResult\nSerializationResult.is_full_record = True\n"
        + stubs.solution("3.1")
    ),
    "patches_json": "import json\njson.JSONEncoder.encode = lambda *a: '[]'\njson.dumps = lambda *a: '[]'\n"
    + SHELL.format(body="return None"),
    "starts_a_program": "import subprocess\nsubprocess.run(['touch', 'x'])\n" + SHELL.format(body="return None"),
    "forks": "import os\nos.fork()\n" + SHELL.format(body="return None"),
    "opens_a_socket": "import socket\nsocket.socket()\n" + SHELL.format(body="return None"),
    "uses_ctypes": "import ctypes\nctypes.CDLL(None)\n" + SHELL.format(body="return None"),
    "kills_its_parent": "import os\nos.kill(os.getppid(), 9)\n" + SHELL.format(body="return None"),
    "opens_a_folder_to_go_round_names": (
        f"import os\nfolder = os.open({str(SPANNING.parent)!r}, os.O_RDONLY)\n"
        "file = os.open('spanning.py', os.O_RDONLY, dir_fd=folder)\n"
        "exec(os.read(file, 100_000).decode())\nclass Mine(SpanningRecordSerializer): pass\n"
    ),
    "reads_compiled_reference": (
        "import marshal\n"
        f"data = open({cache_from_source(str(SPANNING))!r}, 'rb').read()\n"
        "exec(marshal.loads(data[16:]))\nclass Mine(SpanningRecordSerializer): pass\n"
    ),
    "looks_for_answers_in_memory": (
        "import gc, sys\n"
        "found = [o for o in gc.get_objects() if isinstance(o, type) and o.__name__ == 'SpanningRecordSerializer']\n"
        "class Mine(*found[:1]): pass\n"
    ),
    "walks_the_stack_of_the_grader": (
        "import sys\nframe = sys._getframe()\nwhile frame:\n"
        "    child = frame.f_locals.get('self')\n"
        "    if child is not None and hasattr(child, 'job'):\n"
        "        child.job['cases'] = []\n        child.job['starts'] = []\n"
        "    frame = frame.f_back\n" + SHELL.format(body="return None")
    ),
    "patches_the_runner": (
        "import sys\nmain = sys.modules['__main__']\n"
        "main.Child._run_cases = lambda self, driver, part: []\n"
        "main.Child.say = lambda self, *items: None\n" + SHELL.format(body="return None")
    ),
    "patches_the_driver": (
        "import gc\n"
        "for each in gc.get_objects():\n"
        "    if isinstance(each, dict) and each.get('__name__') == 'driver':\n"
        "        each['run_case'] = lambda part, case, events: None\n" + SHELL.format(body="return None")
    ),
    "silences_the_clock": (
        "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)\n"
        "signal.signal(signal.SIGPROF, signal.SIG_IGN)\n" + SHELL.format(body="\n        while True: pass")
    ),
    "ignores_signals": (
        "import signal\nfor n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\n"
        + SHELL.format(body="import time; time.sleep(60)")
    ),
    "runs_in_a_subinterpreter": (
        "import _xxsubinterpreters as sub\nsub.run_string(sub.create(), \"open('/tmp/sluice-canary', 'w')\")\n"
    ),
    "forks_beside_subprocess": (
        "import _posixsubprocess, os\nr, w = os.pipe()\n"
        "_posixsubprocess.fork_exec([b'/bin/true'], [b'/bin/true'], True, (), None, None, -1, -1, -1, -1, -1, -1,\n"
        "                           r, w, False, False, 0, None, None, None, -1, None, False)\n"
    ),
    "imports_the_closed_again": (
        "import sys\ndel sys.modules['_posixsubprocess']\nimport _posixsubprocess\n_posixsubprocess.fork_exec()\n"
    ),
    "loads_native_code": "import _cffi_backend\n_cffi_backend.load_library(None, 0)\n",
    "signals_by_descriptor": ("import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)\n"),
    "shares_memory": (
        "from multiprocessing import shared_memory\nshared_memory.SharedMemory('sluice_canary', create=True, size=10)\n"
    ),
    "makes_a_pipe_in_the_file_system": "import os\nos.mkfifo('/tmp/sluice-canary')\n",
    "starts_threads_without_end": (
        "import threading, time\n"
        "while True:\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    ),
    "writes_files_without_end": (
        "n = 0\nwhile True:\n    n += 1\n    with open(f'f{n}', 'wb') as file: file.write(bytes(1 << 20))\n"
    ),
    "writes_one_endless_file": ("with open('f', 'wb') as file:\n    while True: file.write(bytes(1 << 20))\n"),
    "fills_standard_error": "import os\nwhile True: os.write(2, bytes(1 << 20))\n",
    "an_answer_that_lies_about_itself": with_body(
        "return R()",
        "from refimpl.records import SerializationResult\n"
        "class R:\n    __class__ = SerializationResult\n    def __eq__(self, o): return True\n"
        "    __hash__ = object.__hash__\n",
    ),
    "an_exception_that_lies_about_itself": with_body(
        "raise Odd",
        "class Odd(BaseException):\n    def __str__(self): raise self\n    def __repr__(self): raise self\n",
    ),
    "deletes_itself_from_modules": "import sys\nsys.modules.clear()\n" + SHELL.format(body="return None"),
    "a_gigabyte_of_prints": with_body("\n        for _ in range(20): print('x' * 50_000_000)"),
}


def traces() -> dict[str, set[object]]:
    """What a check could leave behind: processes, its folders, shared memory, files of ours."""
    shared = Path("/dev/shm")
    return {
        "processes": set(psutil.Process().children(recursive=True)),
        "folders": set(Path(tempfile.gettempdir()).iterdir()),
        "canaries": {*Path("/tmp").glob("sluice-canary"), *(shared.glob("*sluice*") if shared.is_dir() else ())},
        "vectors": {(file, file.stat().st_mtime_ns) for file in VECTORS.iterdir()},
        "reference": {SPANNING.read_text()},
    }


@pytest.fixture
def quick() -> Grader:
    """Limits that end what would never end a little sooner than a learner's; what forks its children is there."""
    grader = Grader(seams.child_job("3.1"), Limits(wall_seconds=3.0, case_seconds=0.5, run_seconds=2.0))
    judge("3.1", "pass", grader=grader)
    return grader


@pytest.mark.slow
@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("name", SABOTAGE)
def test_sabotage_scores_nothing_and_leaves_the_machine_as_it_was(name, quick, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = traces()
    report = judge("3.1", SABOTAGE[name], grader=quick)
    assert not report.passed, name
    assert report.status is not Status.NOT_STARTED
    assert report.failed_rule is not None
    assert report.failed_rule.message
    assert len(str(report).splitlines()) <= MAX_LINES
    assert all(now <= before[what] for what, now in traces().items())


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("imports_the_reference", "reference_part"),
        ("derives_from_the_reference", "reference_part"),
        ("opens_the_vectors", "fenced"),
        ("opens_the_reference", "fenced"),
        ("loads_the_reference_file", "fenced"),
        ("reloads_the_reference", "fenced"),
        ("patches_the_builder", "tampered"),
        ("patches_the_enum", "tampered"),
        ("starts_a_program", "fenced"),
        ("opens_a_socket", "fenced"),
        ("forks", "fenced"),
        ("os_exit_at_once", "vanished_loading"),
        ("always_equal", "returns_other"),
        ("opens_a_folder_to_go_round_names", "fenced"),
        ("reads_compiled_reference", "fenced"),
        ("runs_in_a_subinterpreter", "fenced"),
        ("forks_beside_subprocess", "fenced"),
        ("imports_the_closed_again", "fenced"),
        ("loads_native_code", "fenced"),
        ("signals_by_descriptor", "fenced"),
        ("shares_memory", "fenced"),
        ("makes_a_pipe_in_the_file_system", "fenced"),
        ("writes_files_without_end", "fenced"),
        ("a_gigabyte_of_prints", "prints"),
    ],
)
def test_sabotage_is_told_what_it_did(name, code):
    assert judge("3.1", SABOTAGE[name]).failed_rule.finding.code == code


def test_nothing_is_written_outside(tmp_path):
    target = tmp_path / "canary"
    target.write_text("whole")
    lines = [
        f"open({str(target)!r}, 'w')",
        f"import os\nos.remove({str(target)!r})",
        f"import os\nos.mkdir({str(tmp_path / 'd')!r})",
        f"import pathlib\npathlib.Path({str(target)!r}).unlink()",
        f"import shutil\nshutil.rmtree({str(tmp_path)!r})",
    ]
    for line in lines:
        assert judge("3.1", f"{line}\n").failed_rule.finding.code == "fenced", line
    assert target.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("exercise", ["1.1", "2.1", "3.1", "4.1", "5.2", "6.1", "7.1", "10.1", "11.1"])
def test_what_copy_notes_on_a_class_is_no_tampering(exercise):
    # copy.copy of an object with slots writes `__slotnames__` into its class.
    note = (
        "import copyreg\n"
        "from refimpl.memory import Buffer, LocalBufferPool, MemorySegment\n"
        "for each in (Buffer, LocalBufferPool, MemorySegment):\n"
        "    copyreg._slotnames(each)\n"
        "    each.__annotations__\n"
    )
    report = judge(exercise, note + stubs.solution(exercise))
    assert report.passed, str(report)


def test_an_early_exercise_is_answered_without_what_later_ones_teach():
    source = "from refimpl.records import SpanningRecordSerializer\n" + stubs.solution("0.1")
    assert judge("0.1", source).passed  # its name may be there
    report = judge("0.1", source.replace("    return", "    SpanningRecordSerializer()\n    return"))
    assert report.failed_rule.finding.code == "reference_part"
    later = seams.later_exercises("3.1")
    assert later[0] == "3.1"
    assert "0.1" not in later
    modules = seams.child_job("0.1")["modules"]
    for each in map(seams.seam, seams.later_exercises("0.1")):
        if each.extends:
            for method in each.methods:
                assert f'_reference_method("{each.part}.{method}")' in modules[each.module]
        else:
            assert f"{each.part} = _reference_part" in modules[each.module]
        for name in each.hides_too:
            module, _, function = name.rpartition(".")
            assert f"{function} = _reference_part" in modules[module]


def test_sleeping_for_ever_ends_and_leaves_no_process(quick):
    before = set(psutil.Process().children(recursive=True))  # other tests' own, such as the JVM
    report = judge("3.1", "import time\ntime.sleep(3600)\n", grader=quick)
    assert report.status is Status.TIMEOUT
    assert set(psutil.Process().children(recursive=True)) <= before


def test_the_environment_is_not_handed_on(monkeypatch):
    monkeypatch.setenv("SLUICE_SECRET", "x")
    source = "import os\nassert 'SLUICE_SECRET' not in os.environ\n" + stubs.solution("0.1")
    assert judge("0.1", source).passed
