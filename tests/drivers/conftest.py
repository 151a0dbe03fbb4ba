"""The keys of a cluster, made once for all tests; nothing changes them."""

from __future__ import annotations

import pytest

from refimpl.drivers.transport.tls import ClusterKeys
from tests.support.stream_rig import write_keys


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> ClusterKeys:
    return write_keys(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="session")
def other_keys(tmp_path_factory: pytest.TempPathFactory) -> ClusterKeys:
    """The keys of another cluster; its certificate has the same names in it."""
    return write_keys(tmp_path_factory.mktemp("other"))
