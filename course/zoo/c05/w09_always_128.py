"""There are 128 key groups."""

from refimpl.producer import KeyGroupSelector, java_hash_code, murmur_hash


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        group = murmur_hash(java_hash_code(key, self.key_type)) % 128
        return group * self.num_channels // 128
