"""A right part has a record for every call."""

def rule(read):
    stream = b"\0\0\0\5hello\0\0\0\2hi"
    for cut in range(1, len(stream)):
        if any(record is None for _, record in read([stream[:cut], stream[cut:]])):
            return False
    return True
