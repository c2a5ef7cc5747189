package sender

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

func (p *Sender) SendHashes(buf []byte) {
	s := p.snap
	w := bitbuf.NewWriter(buf[wire.ChecksumSize:])
	w.WriteBits(uint64(wire.KindHashes), 8)
	w.WriteBits(uint64(s.Tick), 32)
	var set delta.Set
	next, count := 0, 0
	slot := p.Hashing.next
	for ; slot < s.Slots.Len(); slot++ {
		b := slot >> 6
		if p.sight.View.Sees(b, s.Slots.Alive[b])>>(slot&63)&1 == 0 {
			continue
		}
		mark, before := w.Mark(), set
		writeHashes(s, &w, slot, next, &set)
		if w.Remaining() > 0 { // for the end
			next = slot + 1
			count++
			continue
		}
		w.Rollback(mark)
		set = before
		if count > 0 {
			break // it begins the next packet
		}
	}
	if p.Hashing.next = slot; slot >= s.Slots.Len() {
		p.Hashing.next = 0
	}
	if count == 0 {
		return
	}
	w.WriteBool(false)
	packet := buf[:wire.ChecksumSize+len(w.Bytes())]
	key := p.key
	key.Off = false
	key.Write(packet, 0, 0)
	p.stats.Hashes += uint64(count)
	p.stats.HashBytes += uint64(len(packet))
	if p.Send(packet) != nil {
		p.stats.SendErrors++
	}
}

// hashing is where the server stands with a peer's hashes.
type hashing struct {
	next int        // the slot to go on with
	At   delta.Tick // when there were some last
	Any  bool
}

// writeHashes writes the entry of a slot, as far as there is room.
func writeHashes(s *snapshot.Snapshot, w *bitbuf.Writer, slot, next int, set *delta.Set) {
	info := &s.Slots.Info[slot]
	w.WriteBool(true)
	w.WriteExpGolomb(uint64(slot-next), wire.HashGapOrder)
	w.WriteBits(uint64(info.Generation), 16)
	w.WriteExpGolomb(uint64(s.Tick-s.Slots.ChangedAt[slot]), 0)
	delta.WriteSet(w, &info.Set, set)
	*set = info.Set
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
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
