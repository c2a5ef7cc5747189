package apply

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// hashCheck compares received states with the state hashes that a server sends.
type hashCheck struct {
	view   *worldView
	recv   *receive.Receiver
	schema *schema.Schema
	stats  *counters.ClientCounters

	Divergence *Divergence // the first one that was found
}

// ReceiveHashes takes a packet. It reports whether it is one of state hashes.
func (h *hashCheck) ReceiveHashes(packet []byte, key wire.Key) (bool, error) {
	if len(packet) <= wire.ChecksumSize || packet[wire.ChecksumSize] != byte(wire.KindHashes) {
		return false, nil
	}
	sums := !key.Off
	key.Off = false // state hashes always have a checksum
	if !key.Matches(packet, 0, 0) {
		return sums, wire.ErrChecksum
	}
	body := packet[wire.ChecksumSize:]
	if !h.readHashes(body, false) {
		return true, wire.ErrMalformed
	}
	h.readHashes(body, true)
	return true, nil
}

// readHashes reads the body of a packet of state hashes, and reports whether it is well formed. If
// compare is set, it compares them.
func (h *hashCheck) readHashes(body []byte, compare bool) bool {
	r := bitbuf.NewReader(body)
	r.ReadBits(8)
	tick := delta.Tick(r.ReadBits(32))
	var set wire.ComponentSet
	next := uint64(0)
	for r.ReadBool() {
		gap := r.ReadExpGolomb(wire.HashGapOrder)
		if gap >= uint64(h.recv.Replicas.Limit) || next+gap >= uint64(h.recv.Replicas.Limit) {
			return false
		}
		slot := uint32(next + gap)
		next += gap + 1
		generation := uint16(r.ReadBits(16))
		age := r.ReadExpGolomb(0)
		set = wire.ReadComponentSet(&r, &set, len(h.schema.Components))
		if r.Err() != nil {
			return false
		}
		var state *receive.HeldState
		if compare {
			state = h.recv.Comparable(slot, tick, age)
		}
		var d *Divergence
		if state != nil {
			d = compareSets(h.schema, state, generation, &set)
		}
		for k := range set.All() {
			if d == nil {
				d = h.compareRow(&r, k, state, tick)
			} else {
				h.compareRow(&r, k, nil, tick)
			}
			if r.Err() != nil {
				return false
			}
		}
		if state != nil {
			h.noteHashes(slot, state, d)
		}
	}
	return r.Finish() == nil
}

// compareRow reads the digests of a component and returns how the state differs from them. Without
// a state it only reads.
func (h *hashCheck) compareRow(r *bitbuf.Reader, k int, state *receive.HeldState, tick delta.Tick) (d *Divergence) {
	comp := &h.schema.Components[k]
	var row []uint32
	if state != nil {
		row = state.Row(k, comp.Words)
	}
	for i := range comp.Columns {
		col := &comp.Columns[i]
		bits := uint(field.DigestBits)
		if col.Codec.Words() == 1 {
			bits = min(bits, col.Codec.Bits)
		}
		want := r.ReadBits(bits)
		if row == nil || d != nil {
			continue
		}
		if own, _ := col.Digest(row, uint32(tick)); own != want {
			d = &Divergence{Component: comp.Name, Field: col.Path, Got: comp.Value(i, row)}
		}
	}
	return d
}

// noteHashes counts a comparison, and records how the state differs.
func (h *hashCheck) noteHashes(slot uint32, state *receive.HeldState, d *Divergence) {
	h.stats.HashesCompared++
	if d == nil {
		return
	}
	h.stats.Diverged++
	if h.Divergence != nil {
		return
	}
	d.NetID, d.Tick = h.view.named(slot, state.Generation), state.Tick
	if of, isSubEntity := h.view.of(state); isSubEntity {
		d.NetID = of
	}
	d.Entity, _ = h.view.Entity(d.NetID)
	h.Divergence = d
}

// compareSets returns how a state differs in generation or component set.
func compareSets(s *schema.Schema, state *receive.HeldState, generation uint16, set *wire.ComponentSet) *Divergence {
	if state.Generation != generation {
		return &Divergence{Got: state.Generation, Want: generation}
	}
	for k := range s.Components {
		if is, want := state.Layout.Set.Has(k), set.Has(k); is != want {
			return &Divergence{Component: s.Components[k].Name, Got: is, Want: want}
		}
	}
	return nil
}
