package replication

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// hashCheck is what state hashes of the server told.
type hashCheck struct {
	view   *worldView
	recv   *receiver
	schema *schema.Schema
	stats  *clientCounters

	divergence *divergence // the first that was found
}

// receiveHashes takes a packet of state hashes, and reports whether it is one.
func (h *hashCheck) receiveHashes(packet []byte, key wire.Key) (bool, error) {
	if len(packet) <= wire.ChecksumSize || packet[wire.ChecksumSize] != byte(wire.KindHashes) {
		return false, nil
	}
	sums := !key.Off
	key.Off = false // these have one always
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

// readHashes reads the body of a packet of state hashes, and reports whether it is well
// formed. If that is known, it compares.
func (h *hashCheck) readHashes(body []byte, compare bool) bool {
	r := bitbuf.NewReader(body)
	r.ReadBits(8)
	tick := delta.Tick(r.ReadBits(32))
	var set delta.Set
	next := uint64(0)
	for r.ReadBool() {
		gap := r.ReadExpGolomb(sender.HashGapOrder)
		if gap >= uint64(h.recv.mirrors.limit) || next+gap >= uint64(h.recv.mirrors.limit) {
			return false
		}
		slot := uint32(next + gap)
		next += gap + 1
		generation := uint16(r.ReadBits(16))
		age := r.ReadExpGolomb(0)
		set = delta.ReadSet(&r, &set, len(h.schema.Components))
		if r.Err() != nil {
			return false
		}
		var state *heldState
		if compare {
			state = h.recv.comparable(slot, tick, age)
		}
		var d *divergence
		if state != nil {
			d = compareSets(h.schema, state, generation, &set)
		}
		for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
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

// compareRow reads the digests of a component and returns how the state differs from them.
// Without a state it only reads.
func (h *hashCheck) compareRow(r *bitbuf.Reader, k int, state *heldState, tick delta.Tick) (d *divergence) {
	comp := &h.schema.Components[k]
	var row []uint32
	if state != nil {
		row = state.row(k, comp.Words)
	}
	for i := range comp.Columns {
		col := &comp.Columns[i]
		bits := uint(schema.DigestBits)
		if col.Codec.Words() == 1 {
			bits = min(bits, col.Codec.Bits)
		}
		want := r.ReadBits(bits)
		if row == nil || d != nil {
			continue
		}
		if own, _ := col.Digest(row, uint32(tick)); own != want {
			d = &divergence{Component: comp.Name, Field: col.Path, Got: heldValue(comp, i, row)}
		}
	}
	return d
}

// noteHashes notes that a state was compared, and how it differs.
func (h *hashCheck) noteHashes(slot uint32, state *heldState, d *divergence) {
	h.stats.HashesCompared++
	if d == nil {
		return
	}
	h.stats.Diverged++
	if h.divergence != nil {
		return
	}
	d.NetID, d.Tick = wire.NetID{Slot: slot, Generation: state.generation}, uint32(state.tick)
	if of, facet := h.view.of(state); facet {
		d.NetID = of
	}
	d.Entity, _ = h.view.entity(d.NetID)
	h.divergence = d
}

// compareSets returns how a state differs in what it is of.
func compareSets(s *schema.Schema, state *heldState, generation uint16, set *delta.Set) *divergence {
	if state.generation != generation {
		return &divergence{Got: state.generation, Want: generation}
	}
	for k := range s.Components {
		if is, want := state.shape.set.Has(k), set.Has(k); is != want {
			return &divergence{Component: s.Components[k].Name, Got: is, Want: want}
		}
	}
	return nil
}
