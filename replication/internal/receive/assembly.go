package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An assembly collects the parts of a state that is larger than a packet.
type assembly struct {
	tick   delta.Tick
	size   int
	bytes  []byte
	got    []bool
	missed int
}

const (
	// MaxLargeBytes bounds a state in parts: rows of at most wire.MaxEntityBits, and a head.
	MaxLargeBytes = wire.MaxEntityBits/8 + 1<<10
	// MaxAssemblies bounds how many states the client collects at a time. Otherwise a server could
	// make it reserve memory for parts that never come.
	MaxAssemblies = 64
)

// readPart reads a part of a state.
func (rc *Receiver) readPart(in entryReader, slot uint32, tick delta.Tick) error {
	age, total, size, index := in.number(), in.number(), in.number(), in.number()
	if in.failed() || !validPart(age, total, size, index) {
		return wire.ErrMalformed
	}
	bytes := make([]byte, min(size, total-index*size))
	if in.bytes(bytes); in.failed() {
		return wire.ErrMalformed
	}
	return rc.staged.addPart(stagedPart{
		slot: slot, tick: tick - delta.Tick(age), total: int(total), size: int(size), index: int(index), bytes: bytes,
	})
}

// validPart reports whether there can be such a part.
func validPart(age, total, size, index uint64) bool {
	return age < 1<<31 && total <= MaxLargeBytes && size != 0 && size <= wire.MaxMTU &&
		index < total && index*size < total
}

// commitPart takes over a part. With the last one, the state becomes a held state.
func (rc *Receiver) commitPart(p *stagedPart, now delta.Tick) error {
	if m := rc.Replicas.At(p.slot); m != nil && m.Any && !p.tick.After(m.Newest) {
		if a := rc.Parts[p.slot]; a != nil && !a.tick.After(m.Newest) {
			delete(rc.Parts, p.slot) // unless they are of a newer state than this part
		}
		rc.stats.Outdated++
		return nil
	}
	a := rc.Parts[p.slot]
	if a != nil && a.tick.After(p.tick) {
		rc.stats.Outdated++
		return nil
	}
	if a == nil || a.tick != p.tick || len(a.bytes) != p.total || a.size != p.size {
		if a == nil && len(rc.Parts) == MaxAssemblies {
			return wire.ErrMissingBaseline // the part is not kept, so the packet must not be acknowledged
		}
		n := (p.total + p.size - 1) / p.size
		a = &assembly{tick: p.tick, size: p.size, bytes: make([]byte, p.total), got: make([]bool, n), missed: n}
		rc.Parts[p.slot] = a
	}
	if a.got[p.index] {
		return nil
	}
	copy(a.bytes[p.index*p.size:], p.bytes)
	a.got[p.index] = true
	if a.missed--; a.missed > 0 {
		return nil
	}
	delete(rc.Parts, p.slot)
	s := &rc.staged
	s.entries, s.words = s.entries[:0], s.words[:0]
	in, e := &rc.in.packed, entryHead{slot: p.slot}
	in.beginState(a.bytes, &e)
	if err := rc.readFull(in, &e, a.tick); err != nil || in.failed() || in.r.Finish() != nil {
		return wire.ErrMissingBaseline // malformed, but the rest of the packet is valid and kept
	}
	if rc.Watches.Trace != nil {
		rc.Watches.Trace.noteAssembled(rc, p.slot, len(a.bytes))
	}
	rc.commitEntry(&s.entries[0], now)
	return nil
}
