"""Master URLs: read before Spark starts, and said at once if nobody is there."""

from __future__ import annotations

import socket

import pytest

from course.data.master import MasterError, master_of


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("local", True), ("local[2]", True), ("local[*]", True), ("local[2,3]", True),
        ("local-cluster[2,1,1024]", True), ("local-cluster[2, 1, 1024]", True),
        ("spark://127.0.0.1:7077", True), ("spark://localhost:7077", True), ("spark://[::1]:7077", True),
        ("spark://10.0.0.1:7077", False), ("spark://127.0.0.1:7077,10.0.0.1:7077", False), ("spark://head:7077", False),
        ("yarn", False), ("k8s://https://10.0.0.1:443", False),
    ],
)  # fmt: skip
def test_where_executors_are(url: str, is_here: bool) -> None:
    assert master_of(url).is_here is is_here
    assert master_of(url).has_own_workers is url.startswith("local-cluster")


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "local[]", "local[x]", "local-cluster[2]", "spark://", "spark://head", "spark://head:0",
     "spark://head:99999", "spark://head:x", "spark:/head:7077", "mesos://head:5050", " local[2]"],
)  # fmt: skip
def test_what_is_no_master_is_said_with_examples(url: str) -> None:
    with pytest.raises(MasterError, match=r"is no master URL such as local\[2\], local-cluster\[2,1,1024\], spark://"):
        master_of(url)


def test_spark_connect_is_no_such_master_and_why() -> None:
    with pytest.raises(MasterError, match=r"Spark Connect .* has no tasks that work together"):
        master_of("sc://127.0.0.1:15002")


def test_a_dead_master_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        master_of(f"spark://127.0.0.1:{port}").check_that_it_answers()
        master_of(f"spark://127.0.0.1:1,127.0.0.1:{port}").check_that_it_answers()  # one is enough
    with pytest.raises(MasterError, match=r"no master is at spark://.*refused.*; `sluice cluster start` starts one"):
        master_of(f"spark://127.0.0.1:{port}").check_that_it_answers()


def test_only_a_standalone_master_is_asked() -> None:
    for url in ("local[2]", "local-cluster[2,1,1024]", "yarn"):
        master_of(url).check_that_it_answers()
