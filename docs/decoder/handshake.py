"""Hellos, and disconnects that refuse them: section 3 of the wire format."""

from bits import Malformed
from checksum import HANDSHAKE_KEY, packet_key
from client import checked

KIND_HELLO, KIND_DISCONNECT = 0, 7


def hello(packet):
    """The fields of a hello, by name."""
    body = checked(packet, packet_key(HANDSHAKE_KEY))
    if len(body) < 60 or body[0] != KIND_HELLO:
        raise Malformed("no hello")
    number = lambda at, size: int.from_bytes(body[at : at + size], "little")
    size = number(35, 2)
    if size > 512 or len(body) != max(60, 37 + size):
        raise Malformed("size of a hello")
    return {
        "version": number(1, 1),
        "fingerprint": number(2, 8),
        "nonce": number(10, 8),
        "offset": number(18, 4),
        "session": number(22, 8),
        "codings": number(30, 1),
        "slots": number(31, 4),
        "data": body[37 : 37 + size].hex(),
    }


def refusal(packet):
    """The fields of a disconnect that refuses a hello, by name."""
    body = checked(packet, packet_key(HANDSHAKE_KEY))
    if not 10 <= len(body) <= 138 or body[0] != KIND_DISCONNECT:
        raise Malformed("no disconnect")
    try:
        text = body[10:].decode()
    except UnicodeDecodeError:
        raise Malformed("text") from None
    return {"code": body[1], "nonce": int.from_bytes(body[2:10], "little"), "text": text}
