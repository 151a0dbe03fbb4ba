"""Records and cuts are drawn at random, the same each time."""

import random


def encode(records):
    return b"".join(len(each).to_bytes(4, "big") + each for each in records)


def cut(stream, generator):
    while stream:
        size = generator.randint(1, 9)
        yield stream[:size]
        stream = stream[size:]


def records_come_back(read):
    generator = random.Random(7)
    for _ in range(200):
        records = [generator.randbytes(generator.randint(0, 12)) for _ in range(6)]
        answers = read(list(cut(encode(records), generator)))
        if [each for _, each in answers if each is not None] != records:
            return False
    return True
