"""The formula, group by group."""

from refimpl.producer import KeyGroupSelector, java_hash_code, murmur_hash


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        group = murmur_hash(java_hash_code(key, self.key_type)) % self.max_parallelism
        return group * self.num_channels // self.max_parallelism
