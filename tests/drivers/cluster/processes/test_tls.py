"""Clusters of real processes that have keys: each connection shows them, and whoever has others or none is refused."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from socket import AF_INET
from typing import Any

import psutil
import pytest

from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.high_availability.cluster_folder import ClusterFolder
from refimpl.drivers.cluster.high_availability.stored_leaders import StoredLeaders
from refimpl.drivers.cluster.processes.cluster_processes import ClusterProcesses
from refimpl.drivers.cluster.processes.node import ClusterNode
from refimpl.drivers.cluster.processes.node_options import TASK_MANAGER, NodeOptions
from refimpl.drivers.cluster.rpc.sealed_stream import Hello, request_seal
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.drivers.transport.addresses import is_loopback
from refimpl.drivers.transport.refusals import HandshakeError
from refimpl.drivers.transport.streams import Security, connect
from refimpl.drivers.transport.tls import ClusterKeys
from refimpl.errors import ConfigError, RemoteProtocolError, RemoteTransportError
from tests.drivers.cluster.processes.test_batch import squares as batch_squares
from tests.drivers.cluster.processes.test_cluster_processes import NUM_RECORDS, PARALLELISM, results, squares
from tests.support.batch_jobs import batch_config
from tests.support.polling import until
from tests.support.stream_rig import write_keys

WITHIN_S = 120.0


@pytest.fixture
def keys(tmp_path: Path) -> ClusterKeys:
    return write_keys(tmp_path / "keys")


@pytest.fixture
def processes(tmp_path: Path, keys: ClusterKeys) -> Iterator[ClusterProcesses]:
    options = NodeOptions("", keys=str(keys.key.parent), heartbeat_interval_ms=500, heartbeat_timeout_ms=30_000)
    with ClusterProcesses(tmp_path / "cluster", 2, options) as made:
        made.wait_until_up()
        yield made


@pytest.fixture
def leaders(processes: ClusterProcesses) -> Iterator[StoredLeaders]:
    made = StoredLeaders(processes.folder.leases)
    yield made
    made.close()


def client_with(
    security: Security | None, processes: ClusterProcesses, leaders: StoredLeaders, timeout_s: float = WITHIN_S
) -> ClusterClient:
    return ClusterClient(RpcService(processes.folder.secret, security=security), leaders, timeout_s)


def ports(processes: ClusterProcesses) -> dict[str, list[int]]:
    """Where each process of the cluster listens."""
    return {name: [each.laddr.port for each in listening(process)] for name, process in processes.process_ids.items()}


def listening(process: int) -> list[Any]:
    """The sockets at which a process listens."""
    return [each for each in psutil.Process(process).net_connections(kind="tcp") if each.status == psutil.CONN_LISTEN]


def check_that_all_ports_need_keys(processes: ClusterProcesses, keys: ClusterKeys, others: ClusterKeys) -> int:
    """Ask at each port with the keys, with others, and with none; how many there are."""
    found = [port for each in ports(processes).values() for port in each]
    for port in found:
        connect("127.0.0.1", port, keys, WITHIN_S).close()
        with pytest.raises(HandshakeError, match="another certificate"):
            connect("127.0.0.1", port, others, WITHIN_S)
        plain = connect("127.0.0.1", port, None, WITHIN_S)
        hello = Hello("envelopes", "127.0.0.1:1", f"127.0.0.1:{port}")
        with pytest.raises((OSError, RemoteProtocolError)):
            request_seal(plain, processes.folder.secret, hello, 1 << 20, WITHIN_S)
        plain.close()
    return len(found)


def test_a_session_with_keys_runs_a_job_and_each_port_of_it_asks_for_them(
    processes: ClusterProcesses, leaders: StoredLeaders, keys: ClusterKeys, tmp_path: Path
) -> None:
    client = client_with(keys, processes, leaders)
    client.submit("squares", squares(tmp_path / "gate", tmp_path / "out"))
    until(lambda: client.status("squares").get("running") == 2 * PARALLELISM)
    assert len(client.status("squares")["task_managers"]) == 2
    until(lambda: client.status("squares").get("checkpoints"))
    num_ports = check_that_all_ports_need_keys(processes, keys, write_keys(tmp_path / "others"))
    assert num_ports >= 6  # one for each process, and one for the data of each TaskManager
    (tmp_path / "gate").touch()
    assert client.wait("squares")["state"] == "finished"
    assert results(tmp_path / "out") == [number * number for number in range(NUM_RECORDS)]
    client.close()


def test_results_are_served_to_who_has_the_keys(
    processes: ClusterProcesses, leaders: StoredLeaders, keys: ClusterKeys, tmp_path: Path
) -> None:
    """A batch job, whose results outlive the regions that have written them."""
    (tmp_path / "notes").mkdir()
    client = client_with(keys, processes, leaders)
    client.submit("squares", batch_squares(tmp_path, batch_config(tmp_path / "spilled")))
    until(lambda: (tmp_path / "notes" / "waits").exists())
    assert check_that_all_ports_need_keys(processes, keys, write_keys(tmp_path / "others")) >= 6
    (tmp_path / "gate").touch()
    assert client.wait("squares")["state"] == "finished"
    assert results(tmp_path / "out") == [number * number for number in range(400)]
    client.close()


@pytest.mark.parametrize("has_keys", [False, True], ids=["no keys", "other keys"])
def test_a_client_that_is_none_of_the_cluster_hears_why(
    processes: ClusterProcesses, leaders: StoredLeaders, tmp_path: Path, has_keys: bool
) -> None:
    others = write_keys(tmp_path / "others") if has_keys else None
    client = client_with(others, processes, leaders)
    why = "another certificate" if has_keys else r"without a word.*--tls"
    with pytest.raises(RemoteTransportError, match=f"list: the cluster refuses this process: .*{why}"):
        client.jobs()
    client.close()


def test_a_client_with_keys_is_refused_where_there_are_none(tmp_path: Path, keys: ClusterKeys) -> None:
    with ClusterProcesses(tmp_path / "cluster", 1) as processes:
        processes.wait_until_up()
        leaders = StoredLeaders(processes.folder.leases)
        client = client_with(keys, processes, leaders)
        with pytest.raises(RemoteTransportError, match=r"the cluster refuses this process: .*handshake"):
            client.jobs()
        client.close()
        leaders.close()


def test_who_is_only_slow_is_waited_for(processes: ClusterProcesses, leaders: StoredLeaders, keys: ClusterKeys) -> None:
    """A Dispatcher that is killed while it is asked is no refusal: the next one answers."""
    client = client_with(keys, processes, leaders)
    assert client.jobs() == []
    processes.signal("dispatcher", signal.SIGKILL)
    assert client.jobs() == []
    client.close()


def outside_address() -> str | None:
    """An address of this machine that others could reach; none if it has no network."""
    found = [each.address for those in psutil.net_if_addrs().values() for each in those if each.family == AF_INET]
    return next((each for each in found if not is_loopback(each)), None)


def test_beyond_this_machine_a_cluster_listens_where_it_is_told_to_and_nowhere_else(
    tmp_path: Path, keys: ClusterKeys
) -> None:
    host = outside_address()
    if host is None:
        pytest.skip("this machine has no address but loopback")
    options = NodeOptions("", host=host, keys=str(keys.key.parent))
    with ClusterProcesses(tmp_path / "cluster", 2, options) as processes:
        processes.wait_until_up()
        leaders = StoredLeaders(processes.folder.leases)
        client = ClusterClient(RpcService(processes.folder.secret, host, security=keys), leaders, WITHIN_S)
        client.submit("squares", squares(tmp_path / "gate", tmp_path / "out"))
        until(lambda: client.status("squares").get("checkpoints"))
        found = {each.laddr.ip for process in processes.process_ids.values() for each in listening(process)}
        assert found == {host}
        (tmp_path / "gate").touch()
        assert client.wait("squares")["state"] == "finished"
        client.close()
        leaders.close()
    assert results(tmp_path / "out") == [number * number for number in range(NUM_RECORDS)]


def test_without_keys_no_process_listens_beyond_this_machine(tmp_path: Path) -> None:
    folder = ClusterFolder.make(tmp_path / "cluster")
    with pytest.raises(ConfigError, match="can be reached from outside this machine, and without cluster keys"):
        ClusterNode(folder, NodeOptions(TASK_MANAGER, host="0.0.0.0"))
