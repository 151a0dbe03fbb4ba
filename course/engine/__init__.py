"""Clusters of our own engine on this machine, by `sluice engine`."""
