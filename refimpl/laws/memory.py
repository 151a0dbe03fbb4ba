"""Memory: no pool has more out than its share, and together they have what there is."""

from __future__ import annotations

from refimpl.job.deployment import Deployment
from refimpl.laws.holders import local_pools_of, remote_channels_of
from refimpl.memory.network_pool import NetworkBufferPool

__all__ = ["check_given_back", "check_memory"]


def check_memory(*deployments: Deployment) -> None:
    """No pool takes more than its share, and together they never promise or hold more than there is.

    The deployments are all those of one TaskManager, which share its pool. Shares are dealt anew when
    another deployment comes or goes, or a remote channel gives its exclusive buffers back, and one may
    come out smaller than what its pool has out, which then drains. Before that the bound is strict.
    """
    network_pool, channels, pools = deployments[0].pool, remote_channels_of(deployments), local_pools_of(deployments)
    has_dealt_anew = len(deployments) > 1 or any(channel.is_released for channel in channels)
    num_overdraft = max(deployment.config.max_overdraft_buffers for deployment in deployments)
    for pool in pools:
        limit = (pool.num_max if has_dealt_anew else pool.size) + num_overdraft
        assert pool.is_destroyed or pool.num_requested <= limit, (
            f"{pool.name} has {pool.num_requested} segments, its share is {pool.size}, its limit {limit}"
        )
    total = len(network_pool.segments)
    exclusive = sum(len(channel.buffers.exclusive_buffers) for channel in channels)
    num_out = sum(pool.num_requested for pool in pools)
    assert num_out + exclusive + network_pool.num_free == total, (
        f"{num_out} segments are with local pools, {exclusive} with remote channels and "
        f"{network_pool.num_free} are free, together not {total}"
    )
    sizes = sum(pool.size for pool in pools if not pool.is_destroyed)
    assert sizes + exclusive <= total, (
        f"local pools may use {sizes} segments and remote channels have {exclusive}, there are {total}"
    )


def check_given_back(*pools: NetworkBufferPool) -> None:
    """Where nothing is deployed any more, every segment is home, and none is promised.

    Raises:
        AssertionError: something was kept by attempts that are no more.
    """
    for pool in pools:
        num_out, num_promised = len(pool.segments) - pool.num_free, pool.promises.num_promised
        assert num_out == num_promised == 0, (
            f"of {len(pool.segments)} segments {num_out} are out and {num_promised} are promised, and nothing is "
            f"deployed that could give them back"
        )
