"""A client that takes state packets: sections 2 to 4, 9 and 11 of the wire format.

It implements the rules for received packets. It sends nothing: acks and the search for a silent server are missing.
"""

from bits import BitReader, Malformed, after, signed
from checksum import HANDSHAKE_KEY, crc32c, packet_key, session_key
from compact import read_compact
from packed import read_full, read_packed

KIND_WELCOME, KIND_STATE, KIND_SETTLED_STATE = 1, 3, 6


class Missing(Malformed):
    """A valid packet whose baseline or model is missing: it is not acknowledged, and its baseline is reported."""


class Header:
    """The header of a state packet."""

    def __init__(self, sequence, tick, interval, complete, settled):
        self.sequence, self.tick, self.interval = sequence, tick, interval
        self.complete, self.settled = complete, settled
        self.model = None  # of Compact, to be kept


class Slot:
    """The states of a slot that the client holds."""

    def __init__(self):
        self.states = []  # in the order of their ticks, without empty ones
        self.newest = None  # empty or not
        self.parts = None


class Parts:
    """A state that is being assembled: section 9."""

    def __init__(self, tick, part):
        self.tick, self.total, self.size, self.data = tick, part.total, part.size, {}

    def add(self, part):
        self.data[part.index] = part.data

    def complete(self):
        """The bytes, or None if some are missing."""
        if len(self.data) * self.size < self.total:
            return None
        return b"".join(self.data[i] for i in sorted(self.data))


class Client:
    def __init__(self, schema, max_slots=1 << 20):
        self.schema = schema
        self.max_slots = max_slots + schema.resources
        self.slots = {}
        self.seen = set()  # sequences
        self.times = {}  # ticks and intervals of packets that are to be acknowledged, by sequence
        self.models = {}  # of Compact, by sequence
        self.sent = {}  # by tick: slots of which its packets had states
        self.complete = False

    # ---- the handshake

    def welcome(self, packet, nonce):
        """Takes the answer to a hello: section 3."""
        body = checked(packet, packet_key(HANDSHAKE_KEY))
        if len(body) != 38 or body[0] != KIND_WELCOME or body[1] != 1:
            raise Malformed("no welcome of this version")
        number = lambda at, size: int.from_bytes(body[at : at + size], "little")
        flags, self.window = body[2], body[3]
        if flags & ~3 or not 8 <= self.window <= 120:
            raise Malformed("flags or window")
        if number(4, 8) != nonce:
            raise Malformed("a welcome for another client")
        self.session, self.tick, self.sequence = number(12, 8), number(20, 4), number(24, 4)
        self.instance = number(28, 8)
        self.tickrate = number(36, 2)
        if not 1 <= self.tickrate <= 1000:
            raise Malformed("tick rate")
        self.checksums = flags & 1 == 0
        self.compact = flags & 2 != 0
        self.key = session_key(self.schema.fingerprint, self.session, to_server=0)
        self.first = True  # no state packet has arrived yet

    # ---- state packets

    def receive(self, packet):
        """Accepts a state packet, completely or not at all."""
        header, entries = self.decode(packet)
        self.take(header, entries)
        return header, entries

    def decode(self, packet, trace=None, checksum=True):
        """Reads a packet. This changes nothing."""
        body = packet[4:] if self.checksums else packet
        header, at = self.header(body)
        if self.checksums and checksum:
            checked(packet, packet_key(self.key, header.sequence, header.tick))
        self.check_sequence(header.sequence)
        if self.compact:
            kept, low = body[0] >> 3 & 1, body[0] >> 4 & 3
            entries, model = read_compact(body[at:], low, header.sequence, header.tick, self, trace)
            if model is None and (kept or low):
                raise Malformed("a model of nothing")
            header.model = model if kept else None
        else:
            entries = read_packed(BitReader(body[at:], body[0] >> 3 & 7, trace), header.tick, self)
        for e in entries:
            self.assemble(e, header.tick)
        return header, entries

    def header(self, body):
        """The header, with sequence and tick completed, and its size."""
        if not body or body[0] & 7 not in (KIND_STATE, KIND_SETTLED_STATE):
            raise Malformed("no state packet")
        short, implied = body[0] >> 7 == 1, body[0] >> 6 & 1 == 1
        size = 4 if not short else 1 if self.checksums else 2
        end = 1 + size if short and implied else 1 + 2 * size if short else 10
        if len(body) < end:
            raise Malformed("header")
        sequence = int.from_bytes(body[1 : 1 + size], "little")
        tick = int.from_bytes(body[1 + size : 1 + 2 * size], "little")  # if it is not implied
        complete = short or implied  # bit 6 of a long header is the complete flag
        if short:
            sequence = (self.sequence + signed(sequence - self.sequence, 8 * size)) & 0xFFFFFFFF
            back, (reference, interval) = self.reference(sequence)
            if implied:
                tick = reference + back * interval
            else:
                tick = reference + (tick - reference) % (1 << 8 * size)
        else:
            interval = body[9]
            if not 1 <= interval <= 60:
                raise Malformed("interval")
        return Header(sequence, tick & 0xFFFFFFFF, interval, complete, body[0] & 7 == KIND_SETTLED_STATE), end

    def reference(self, sequence):
        """The packet from which a short header is completed: how many before it, and its tick and interval."""
        for back in range(1, 128):
            times = self.times.get((sequence - back) & 0xFFFFFFFF)
            if times is not None:
                return back, times
        raise Malformed("a short header without a reference")

    def check_sequence(self, sequence):
        if sequence in self.seen or not self.first and after(self.sequence, sequence) >= 1024:
            raise Malformed("seen before, or too old")

    # ---- what entries need while they are read

    def check_slot(self, slot):
        if slot >= self.max_slots:
            raise Malformed("slot beyond the client's limit")

    def check_despawn(self, slot):
        if self.schema.resources and slot == 0:
            raise Malformed("despawn of the resources")

    def baselines(self, slot, *ticks):
        """The states that were valid at ticks, None for None."""
        return [None if tick is None else self.valid(slot, tick) for tick in ticks]

    def valid(self, slot, tick):
        """The newest state that is not after a tick."""
        for state in reversed(self.slots.get(slot, Slot()).states):
            if after(tick, state.tick) >= 0:
                return state
        raise Missing("baseline: slot %d, tick %d" % (slot, tick))

    def slots_of(self, tick):
        """The slots of which the packets of a tick had states, in ascending order."""
        if not self.sent.get(tick):
            raise Missing("slots of tick %d" % tick)
        return sorted(self.sent[tick])

    def model(self, sequence):
        """The model that a packet of Compact begins with."""
        if sequence not in self.models:
            raise Missing("model of sequence %d" % sequence)
        return self.models[sequence]

    # ---- parts

    def assemble(self, entry, tick):
        """Adds the state to a part that completes it."""
        if entry.part is None:
            return
        part_tick = (tick - entry.part.age) & 0xFFFFFFFF
        slot = self.slots.get(entry.slot, Slot())
        if slot.newest and after(part_tick, slot.newest.tick) <= 0:
            return
        parts = slot.parts
        if parts is None or after(part_tick, parts.tick) > 0:
            parts = Parts(part_tick, entry.part)
        elif after(part_tick, parts.tick) < 0:
            return
        if (parts.total, parts.size) != (entry.part.total, entry.part.size):
            raise Malformed("parts of one state that differ in size")
        entry.parts = Parts(part_tick, entry.part)
        entry.parts.data.update(parts.data)
        entry.parts.add(entry.part)
        data = entry.parts.complete()
        if data is not None:
            entry.state = self.read_collected(data, part_tick, entry.slot)

    def read_collected(self, data, tick, slot):
        r = BitReader(data)
        state = read_full(r, tick, slot, self, [])
        if r.left >= 8 or r.bits(r.left):
            raise Malformed("padding of a large state")
        return state

    # ---- applying

    def take(self, header, entries):
        self.seen.add(header.sequence)
        self.times[header.sequence] = header.tick, header.interval
        if self.first or after(header.sequence, self.sequence) > 0:
            self.sequence = header.sequence
        if self.first or after(header.tick, self.tick) > 0:
            self.tick = header.tick
        self.first = False
        self.complete = self.complete or header.complete
        for e in entries:
            slot = self.slots.setdefault(e.slot, Slot())
            if e.state is not None and e.part is None and not e.state.empty and e.how != "apart":
                self.sent.setdefault(header.tick, set()).add(e.slot)
            if e.state is not None:
                self.hold(slot, e.state)
            elif getattr(e, "parts", None) is not None:
                slot.parts = e.parts
        if header.model is not None:
            self.models[header.sequence] = header.model
        self.forget()

    def hold(self, slot, state):
        if slot.newest is None or after(state.tick, slot.newest.tick) > 0:
            slot.newest = state
        if not state.empty:
            slot.states = [s for s in slot.states if s.tick != state.tick]
            slot.states.append(state)
            slot.states.sort(key=lambda s: -after(self.tick, s.tick))
        if slot.parts and after(slot.parts.tick, slot.newest.tick) <= 0:
            slot.parts = None

    def forget(self):
        """Section 11, holding: drops states that no honest server uses any more."""
        self.seen = {s for s in self.seen if after(self.sequence, s) < 1024}
        self.times = {s: self.times[s] for s in self.times if s in self.seen}
        for sequence in sorted(self.models, key=lambda s: after(self.sequence, s))[64:]:
            del self.models[sequence]
        self.sent = {t: s for t, s in self.sent.items() if after(self.tick, t) < 2 * self.window}
        for slot in self.slots.values():
            while len(slot.states) > 1 and after(self.tick, slot.states[1].tick) >= 2 * self.window:
                del slot.states[0]

    def shown(self):
        """What the client shows: for every slot that is not empty its newest state."""
        return {n: s.newest for n, s in sorted(self.slots.items()) if s.newest and not s.newest.empty}


def checked(packet, continued_from):
    """The body of a packet, if its checksum is right."""
    body = packet[4:]
    if len(packet) < 4 or int.from_bytes(packet[:4], "little") != crc32c(body, continued_from):
        raise Malformed("checksum")
    return body
