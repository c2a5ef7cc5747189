"""The checksum of packets: section 2 of the wire format. And the fingerprint of schemas: section 12."""

HANDSHAKE_KEY = 0x61726368


def _table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _table()


def crc32c(data, key=0):
    """CRC-32C of the data, continued from a key."""
    register = key ^ 0xFFFFFFFF
    for byte in data:
        register = register >> 8 ^ _TABLE[(register ^ byte) & 0xFF]
    return register ^ 0xFFFFFFFF


def packet_key(session_key, sequence=0, tick=0):
    """The key of a packet, from which its checksum is continued: the session key, and the full sequence and tick."""
    return session_key ^ (sequence * 0x9E3779B1 + tick * 0x85EBCA6B) & 0xFFFFFFFF


def session_key(fingerprint, session, to_server):
    """The key of a session, in one direction."""
    return crc32c(fingerprint.to_bytes(8, "little") + session.to_bytes(8, "little") + bytes([to_server]))


def fingerprint(text):
    """FNV-1a of 64 bits over the schema text."""
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h
