"""A hash code is a hash already."""

from refimpl.producer import KeyGroupSelector, java_hash_code


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        group = java_hash_code(key, self.key_type) % self.max_parallelism
        return group * self.num_channels // self.max_parallelism
