"""Python has a hash function of its own."""

from refimpl.producer import KeyGroupSelector, murmur_hash


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        group = murmur_hash(hash(key)) % self.max_parallelism
        return group * self.num_channels // self.max_parallelism
