"""The key group is the place the record goes to."""

from refimpl.producer import KeyGroupSelector, java_hash_code, murmur_hash


class Selector(KeyGroupSelector):
    def channel_of_key(self, key):
        return murmur_hash(java_hash_code(key, self.key_type)) % self.max_parallelism
