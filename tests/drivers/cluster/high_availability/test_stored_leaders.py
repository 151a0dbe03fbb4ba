"""Who leads, for those who look: from when a leader has begun until it gives up, as far as it can be read."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from refimpl.cluster.fencing import FencingToken
from refimpl.drivers.cluster.high_availability.election import Granted, LeaderElection
from refimpl.drivers.cluster.high_availability.leaders import Leadership
from refimpl.drivers.cluster.high_availability.leases import LeaseFolder
from refimpl.drivers.cluster.high_availability.stored_leaders import StoredLeaders
from refimpl.state.store import MemoryStore
from tests.support.polling import until


def found_in(leases: LeaseFolder) -> Mapping[str, Leadership]:
    """Who leads, as somebody finds who looks now."""
    leaders = StoredLeaders(leases)
    leaders.close()
    return leaders.all()


def test_a_leader_is_found_from_when_it_has_begun_until_it_gives_up() -> None:
    leases = LeaseFolder(MemoryStore())
    now_s = [0.0]
    one, other = (LeaderElection(leases, "rm", f"rm@h:{each}", clock_s=lambda: now_s[0]) for each in (1, 2))
    assert found_in(leases) == {}
    (granted,) = one.step()
    assert found_in(leases) == {}
    assert one.publish(granted.token)
    assert found_in(leases) == {"rm": ("rm@h:1", granted.token)}
    now_s[0] = one.next_deadline
    one.step()
    assert found_in(leases) == {"rm": ("rm@h:1", granted.token)}
    one.release()
    assert found_in(leases) == {}
    (next_one,) = other.step()
    assert isinstance(next_one, Granted)
    assert found_in(leases) == {}
    assert other.publish(next_one.token)
    assert found_in(leases) == {"rm": ("rm@h:2", next_one.token)}


def test_who_leads_a_job_is_found_until_it_is_withdrawn_under_the_same_token() -> None:
    leases = LeaseFolder(MemoryStore())
    leaders = StoredLeaders(leases)
    leaders.publish("job-1", ("jm@h:1", FencingToken(3)))
    assert found_in(leases) == {"job-1": ("jm@h:1", FencingToken(3))}
    leaders.withdraw("job-1", FencingToken(2))
    assert found_in(leases) == {"job-1": ("jm@h:1", FencingToken(3))}
    leaders.withdraw("job-1", FencingToken(3))
    assert found_in(leases) == {}
    leaders.close()


def test_what_cannot_be_read_stays_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    leaders = StoredLeaders(leases := LeaseFolder(store))
    leaders.publish("job-1", ("jm@h:1", FencingToken(1)))
    until(lambda: leaders.all() == {"job-1": ("jm@h:1", FencingToken(1))})
    (key,) = store.files
    whole, store.files[key] = store.files[key], b"x"
    until(lambda: "it cannot be known who leads" in caplog.text)
    assert leaders.all() == {"job-1": ("jm@h:1", FencingToken(1))}
    store.files[key] = whole
    leaders.publish("job-2", ("jm@h:2", FencingToken(1)))
    until(lambda: len(leaders.all()) == 2)
    leaders.close()
    assert leaders.all() == found_in(leases)
