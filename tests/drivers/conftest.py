"""The keys of a cluster, made once for all tests; nothing changes them."""

from __future__ import annotations

import logging

import pytest

from refimpl.drivers.transport.few_warnings import FewWarnings
from refimpl.drivers.transport.tls import ClusterKeys
from tests.support.stream_rig import write_keys


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> ClusterKeys:
    return write_keys(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="session")
def other_keys(tmp_path_factory: pytest.TempPathFactory) -> ClusterKeys:
    """The keys of another cluster; its certificate has the same names in it."""
    return write_keys(tmp_path_factory.mktemp("other"))


@pytest.fixture(autouse=True)
def all_warnings() -> None:
    """Each test sees the warnings it causes, however many others have caused."""
    for name in ("sluice.drivers.cluster", "sluice.drivers.ends", "sluice.drivers.streams"):
        for each in logging.getLogger(name).filters:
            if isinstance(each, FewWarnings):
                each.forget()
