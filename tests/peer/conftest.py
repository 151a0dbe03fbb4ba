"""`pytest tests/peer`: the tests that repeat a scenario of Flink's, wherever they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.flink_scenarios import TESTS, labelled

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    """Where this folder is asked for and nothing else, the files with numbered tests come in, and only those tests."""
    if [Path(config.invocation_params.dir, arg).resolve() for arg in config.args] == [HERE]:
        files = {file for tests in labelled().values() for file, _ in tests}
        config.args[:] = [str(TESTS / file) for file in sorted(files)] + [str(HERE)]
        given = config.option.markexpr
        config.option.markexpr = f"({given}) and peer" if given else "peer"
