"""What executors are sent, and what is said when they lack something; without Spark."""

from __future__ import annotations

import importlib
import zipfile
from pathlib import Path

import cloudpickle
import pytest

from refimpl.drivers.spark import explain_failure, needed_by
from refimpl.drivers.spark.executors import _zipped
from refimpl.errors import LocalUsageError

FILES = {
    "mine_one.py": "import json, numpy, mine_two\nfrom mine_pack.deep import more\ndef work(n): return n",
    "mine_two.py": "def work(n): return n",
    "mine_three.py": "def work(n): return n",
    "mine_pack/deep/more.py": "from . import other\nimport mine_one",
    "mine_pack/deep/other.py": "",
    "mine_pack/broken.py": "def:",
}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_job_needs_what_it_refers_to_and_what_that_imports_but_not_what_is_installed(mine: Path) -> None:
    import numpy as np

    job = cloudpickle.dumps([importlib.import_module("mine_one").work, np.mean, zipfile.ZipFile])
    assert needed_by(job, []) == ["mine_one", "mine_pack", "mine_two", "refimpl"]
    assert needed_by(cloudpickle.dumps(print), ["mine_three"]) == ["mine_three", "refimpl"]


def test_the_archive_holds_every_python_file_and_is_one_for_equal_content(mine: Path) -> None:
    first = _zipped("mine_pack", mine)
    assert zipfile.ZipFile(first).namelist() == [
        "mine_pack/__init__.py",
        "mine_pack/deep/__init__.py",
        "mine_pack/broken.py",
        "mine_pack/deep/more.py",
        "mine_pack/deep/other.py",
    ]
    assert _zipped("mine_pack", mine) == first
    (mine / "mine_pack" / "deep" / "other.py").write_text("x = 1")
    assert _zipped("mine_pack", mine) != first


def test_a_package_that_is_none_and_a_module_that_executors_lack_are_named(mine: Path) -> None:
    with pytest.raises(LocalUsageError, match="there is no package 'nowhere_at_all'"):
        needed_by(b"N.", ["nowhere_at_all"])
    said = "PythonException: ...\n  File x\nModuleNotFoundError: No module named 'cloudpickle'\n"
    assert str(explain_failure(RuntimeError(said), "4")) == (
        "the executors have no module 'cloudpickle'; install it for their Python, or name it in `packages`"
    )
