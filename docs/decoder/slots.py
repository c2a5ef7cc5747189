"""The slots of the entries of a packet in the Packed coding: section 4 of the wire format."""

from bits import Malformed, length

UPDATE = 0
FREE_UPDATES = 4096


def read_slots(r, base_tick, client):
    """Returns the entries of a packet as pairs of a slot and a kind, in ascending order of slots, and whether it is apart."""
    reference, first, last, apart = read_range(r, base_tick, client)
    inside = reference[first:last]
    kept = read_kept(r, inside) if inside else []
    if len(kept) > FREE_UPDATES + r.left:
        raise Malformed("more updates than bits")
    start = reference[first - 1] + 1 if first else 0
    end = max(start, reference[last - 1] + 1 if last else 0)
    listed = read_listed(r, bool(reference), start, end, set(kept))
    return sorted([(slot, UPDATE) for slot in kept] + listed), apart


def read_range(r, base_tick, client):
    """The reference, the range of it that the packet is about, and whether the packet is apart."""
    if r.bit():
        reference = client.slots_of(base_tick)
        r.note("reference", "all %d slots of tick %d" % (len(reference), base_tick))
        return reference, 0, len(reference), 0
    if not r.bit():
        apart = r.bit()
        r.note("reference", "none, and the packet is apart" if apart else "none")
        return [], 0, 0, apart
    reference = client.slots_of(base_tick)
    n = len(reference)
    has_first, has_last = r.bit(), r.bit()
    first = r.bits(length(n)) if has_first else 0
    last = r.bits(length(n)) if has_last else n
    if first > last or last > n:
        raise Malformed("range of the reference")
    r.note("reference", "slots %d to %d of the %d of tick %d" % (first, last, n, base_tick))
    return reference, first, last, 0


def read_kept(r, inside):
    """The slots of the range that have an update."""
    n = len(inside)
    with_update = r.bit() == 1
    count = r.exp_golomb((length(n) - 1) >> 2)
    if count > n:
        raise Malformed("slots of the range")
    r.note("slots with" if with_update else "slots without", "%d of %d" % (count, n))
    order = gap_order(n - count, count)
    listed, at = [], -1
    for _ in range(count):
        at += 1 + r.rice(order)
        if at >= n:
            raise Malformed("a slot beyond the range")
        listed.append(inside[at])
        r.note("gap", "slot %d" % inside[at])
    if with_update:
        return listed
    without = set(listed)
    return [slot for slot in inside if slot not in without]


def read_listed(r, refers, start, end, kept):
    """The other entries."""
    count = r.exp_golomb(0)
    if 2 * count > r.left:
        raise Malformed("more entries than bits")
    r.note("others", count)
    if count == 0:
        return []
    if refers and not r.bit():
        order = gap_order(end - start - len(kept) - count, count)
    else:
        order = r.bits(4)
    r.note("order", "gaps in Rice of order %d" % order)
    kept = sorted(kept)
    listed, free = [], start - 1
    before = 0  # kept slots before the entry
    for _ in range(count):
        free += 1 + r.rice(order)
        while before < len(kept) and kept[before] <= free + before:
            before += 1
        r.note("gap", "slot %d" % (free + before))
        kind = r.unary(5)
        r.note("kind", KINDS[kind])
        listed.append((free + before, kind))
    return listed


KINDS = ["update", "named update", "full state", "despawn", "set change", "part"]


def gap_order(gaps, entries):
    """The order of the Rice code for gaps with a sum."""
    return min(length(max(gaps, 0) * 7 // 10 // max(entries, 1)), 15)
