"""Reports about inputs in message packets of a server: section 15 of the wire format."""

from bits import BitReader, Malformed, after, signed, unzigzag
from checksum import packet_key
from client import checked

KIND_MESSAGES = 5


class Reports:
    """Takes the message packets of a session whose schema has an input and no messages. They have reports and no acks."""

    def __init__(self, client):
        self.key = client.key
        self.newest = client.tick  # of the packets that arrived
        self.seen = set()  # times and indexes

    def receive(self, packet):
        """Accepts a packet, and returns what it has, by name."""
        got = self.decode(packet)
        if (got["time"], got["index"]) in self.seen or after(self.newest, got["time"]) >= 128:
            raise Malformed("seen before, or too old")
        self.seen.add((got["time"], got["index"]))
        if after(got["time"], self.newest) > 0:
            self.newest = got["time"]
        return got

    def decode(self, packet, checksum=True):
        """Reads a packet. This changes nothing."""
        body = packet[4:]
        if not body or body[0] & ~0x40 != KIND_MESSAGES:
            raise Malformed("no packet of messages")
        size = 4 if body[0] & 0x40 else 2
        if len(body) < 1 + size:
            raise Malformed("header")
        time = int.from_bytes(body[1 : 1 + size], "little")
        if size == 2:
            time = (self.newest + signed(time - self.newest, 16)) & 0xFFFFFFFF
        if checksum:
            checked(packet, packet_key(self.key, 0, time))
        r = BitReader(body[1 + size :])
        got = {"time": time, "index": r.exp_golomb(0)}
        if got["index"] > 15:
            raise Malformed("index")
        if r.bit():
            read_report(r, time, got)
        if r.bit():
            raise Malformed("an ack, where the client sends no messages")
        if r.bit():
            raise Malformed("a message, where the schema has none")
        if r.left >= 8 or r.bits(r.left):
            raise Malformed("padding")
        return got


def read_report(r, time, got):
    """Reads a report, for a schema that has an input."""
    got["echo"] = r.bits(16)
    got["held"] = r.exp_golomb(0)
    got["gathered"] = r.exp_golomb(2)
    got["late"] = r.bits(8)
    if r.bit():
        got["margin"] = unzigzag(r.exp_golomb(2))
        got["input"] = (time + 128 - r.bits(8)) & 0xFFFFFFFF
    if r.bit():
        misses = r.bits(32)
        if misses == 0:
            raise Malformed("no misses")
        got["missed"] = [(time - i) & 0xFFFFFFFF for i in reversed(range(32)) if misses >> i & 1]
