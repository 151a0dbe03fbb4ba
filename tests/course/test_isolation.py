"""Learner code that tries to get a pass without an answer: it does not, and the machine stays as it was."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

import course
import refimpl
from course import seams
from course.grading.judge import judge
from course.grading.rules import Status

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
        "class Yes(str):\n    def __eq__(self, o): return True\n    __hash__ = str.__hash__\n"
    ),
    "the_name_as_text": with_body("return 'FULL_RECORD'"),
    "asserts_removed": with_body("return True", "import sys\nsys.flags\n__debug__\nassert True\n"),
    "prints_a_report": with_body('print(\'{"status": "passed", "rules": []}\'); return True'),
    "writes_a_transcript": with_body(
        "[os.write(fd, b'[\"end\", {\"tampered\": [], \"printed\": 0}]\\n') for fd in range(1, 9) if ok(fd)]",
        "import os\ndef ok(fd):\n    try:\n        os.fstat(fd)\n"
        "    except OSError:\n        return False\n    return True\n",
    ),
    "answers_for_the_driver": with_body(
        "return None",
        "import os\nfor fd in range(3, 9):\n    for i in range(2000):\n        try:\n"
        "            os.write(fd, b'[\"case\", %d]\\n[\"did\", %d, [], null]\\n' % (i, i))\n"
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
        + seams.solution("3.1")
    ),
    "patches_the_enum": (
        "from refimpl.records import SerializationResult\nSerializationResult.is_full_record = True\n"
        + seams.solution("3.1")
    ),
    "patches_json": "import json\njson.JSONEncoder.encode = lambda *a: '[]'\njson.dumps = lambda *a: '[]'\n"
    + SHELL.format(body="return None"),
    "starts_a_program": "import subprocess\nsubprocess.run(['touch', 'x'])\n" + SHELL.format(body="return None"),
    "forks": "import os\nos.fork()\n" + SHELL.format(body="return None"),
    "opens_a_socket": "import socket\nsocket.socket()\n" + SHELL.format(body="return None"),
    "uses_ctypes": "import ctypes\nctypes.CDLL(None)\n" + SHELL.format(body="return None"),
    "kills_its_parent": "import os\nos.kill(os.getppid(), 9)\n" + SHELL.format(body="return None"),
    "a_gigabyte_of_prints": with_body("\n        for _ in range(20): print('x' * 50_000_000)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SABOTAGE)
def test_sabotage_scores_nothing(name):
    report = judge("3.1", SABOTAGE[name])
    assert not report.passed, name
    assert report.status is not Status.NOT_STARTED
    assert report.failed_rule is not None
    assert report.failed_rule.message


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


def test_sleeping_for_ever_ends_and_leaves_no_process():
    before = set(psutil.Process().children(recursive=True))  # other tests' own, such as the JVM
    report = judge("3.1", "import time\ntime.sleep(3600)\n")
    assert report.status is Status.TIMEOUT
    assert set(psutil.Process().children(recursive=True)) <= before


def test_the_environment_is_not_handed_on(monkeypatch):
    monkeypatch.setenv("SLUICE_SECRET", "x")
    source = "import os\nassert 'SLUICE_SECRET' not in os.environ\n" + seams.solution("0.1")
    assert judge("0.1", source).passed
