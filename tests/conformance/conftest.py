"""`--vectors DIR`: run the conformance tests on other files of the format `flink-vectors/1`.

A test module names its file with `TOPIC`, and says with `BY_VERSION` whether our code depends on the version of
Flink; `SIDE` picks those of its cases that are for one end. Its test then gets one `case` (and `version`) at a time.
Nothing here or there knows the visible cases. Of other files, a case that cannot be understood is skipped; of those in
this folder it fails.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from refimpl.config import FlinkVersion

VISIBLE = Path(__file__).parent / "vectors"
KNOWN = {version.value: version for version in FlinkVersion}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--vectors", metavar="DIR", default=None, help="run the conformance tests on the vector files in DIR"
    )


def vector_directory(config: pytest.Config) -> Path:
    """Where the vectors of this run are: `--vectors`, or the copies in this folder."""
    chosen = config.getoption("vectors", default=None)
    if chosen is None:
        return VISIBLE
    directory = Path(chosen)
    if not directory.is_dir():
        raise pytest.UsageError(f"--vectors {chosen}: there is no such directory")
    return directory


def load(path: Path) -> list[dict[str, object]]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("format") != "flink-vectors/1":
        raise pytest.UsageError(f"{path} has format {content.get('format')!r}, not 'flink-vectors/1'")
    cases = content["cases"]
    if len(cases) != content.get("case_count", len(cases)):
        raise pytest.UsageError(f"{path} says it has {content['case_count']} cases, it has {len(cases)}")
    return cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    path = vector_directory(metafunc.config) / f"{metafunc.module.TOPIC}.json"
    names = "case,version" if metafunc.module.BY_VERSION else "case"

    def skipped(reason: str, name: str) -> object:
        values = (None, None) if metafunc.module.BY_VERSION else (None,)
        return pytest.param(*values, marks=pytest.mark.skip(reason=reason), id=name)

    if not path.exists():
        metafunc.parametrize(names, [skipped(f"there is no {path}", "missing")])
        return
    rows = []
    side = getattr(metafunc.module, "SIDE", None)
    for case in load(path):
        if side is not None and case.get("side") != side:
            continue
        versions = [KNOWN[version] for version in case["flink"] if version in KNOWN]
        marks = [pytest.mark.slow] if len(json.dumps(case)) > 100_000 or is_big(case) else []
        if not versions:
            rows.append(skipped(f"no version of {case['flink']} is one of {list(KNOWN)}", case["name"]))
        elif metafunc.module.BY_VERSION:
            rows += [pytest.param(case, v, marks=marks, id=f"{case['name']}@{v.value}") for v in versions]
        else:
            rows.append(pytest.param(case, marks=marks, id=case["name"]))
    metafunc.parametrize(names, rows)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """All vectors that ship with the project can be understood: one that is skipped is one that went untested."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("vectors", default=None) is None:
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr[-1]}; without --vectors no case may be skipped"
    return report


def is_big(case: dict[str, object]) -> bool:
    """Whether a case moves megabytes, as those around the spilling threshold do."""
    records = case.get("records", ())
    return any(isinstance(record, dict) and record["gen_len"] > 1_000_000 for record in records)
