"""The slots of the entries of a packet in the Packed coding: section 4 of the wire format."""

from bits import Malformed, length

UPDATE = 0
FREE_UPDATES = 4096


def read_slots(r, base_tick, client):
    """Returns the entries of a packet as pairs of a slot and a kind, in ascending order of slots, and how the packet refers."""
    reference, start, end, how = read_range(r, base_tick, client)
    inside = [slot for slot in reference if start <= slot and (end is None or slot < end)]
    kept = read_kept(r, inside) if inside else []
    if len(kept) > FREE_UPDATES + r.left:
        raise Malformed("more updates than bits")
    if end is None:
        end = inside[-1] + 1 if inside else start
    listed = read_listed(r, bool(reference), start, end, set(kept))
    return sorted([(slot, UPDATE) for slot in kept] + listed), how


def read_range(r, base_tick, client):
    """The reference, the range of slots that the packet is about, and "range", "apart" or nothing."""
    if r.bit():
        reference = client.slots_of(base_tick)
        r.note("reference", "all %d slots of tick %d" % (len(reference), base_tick))
        return reference, 0, None, ""
    if not r.bit():
        apart = r.bit()
        r.note("reference", "none, and the packet is apart" if apart else "none")
        return [], 0, None, "apart" if apart else ""
    reference = client.slots_of(base_tick)
    has_start, has_end = r.bit(), r.bit()
    start = read_end(r, 0, 6, client.max_slots) if has_start else 0
    end = read_end(r, start >> 6, 4, client.max_slots) if has_end else None
    if end is not None and start > end:
        raise Malformed("range of the reference")
    r.note("reference", "slots %d to %s of tick %d" % (start, "the last" if end is None else end, base_tick))
    return reference, start, end, "range"


def read_end(r, block, order, limit):
    """An end of a range of slots: its block, counted from another one, and its place in the block."""
    block += r.exp_golomb(order)
    if block > (limit >> 6) + 1:
        raise Malformed("end of a range")
    return block << 6 | (r.bits(6) if r.bit() else 0)


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
