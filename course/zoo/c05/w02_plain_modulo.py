"""A hash code modulo the number of channels spreads well enough."""

from refimpl.producer import KeyGroupSelector, java_hash_code


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        return java_hash_code(key, self.key_type) % self.num_channels
