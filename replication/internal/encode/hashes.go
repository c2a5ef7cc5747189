package encode

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// WriteHashes writes the hashes of a slot's state, as far as there is room. next is the slot after the one before, and
// set the component set of that, which it replaces.
func WriteHashes(s *snapshot.Snapshot, w *bitbuf.Writer, slot, next int, set *wire.ComponentSet) {
	info := &s.Slots.Info[slot]
	w.WriteBool(true)
	w.WriteExpGolomb(uint64(slot-next), wire.HashGapOrder)
	w.WriteBits(uint64(info.Generation), 16)
	w.WriteExpGolomb(uint64(s.Tick-s.Slots.ChangedAt[slot]), 0)
	wire.WriteComponentSet(w, &info.Set, set)
	*set = info.Set
	for k := range set.All() {
		row := s.Histories[k].Row(slot)
		columns := s.Schema.Components[k].Columns
		for i := range columns {
			if w.Err() != nil {
				return
			}
			w.WriteBits(columns[i].Digest(row, uint32(s.Tick)))
		}
	}
}
