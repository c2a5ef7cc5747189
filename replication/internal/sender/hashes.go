package sender

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A hashing sends a peer hashes of the state of the entities that it sees, a packet at a time, so
// that the client finds divergences.
type hashing struct {
	next int        // the slot to continue with
	At   delta.Tick // of the last hashes
	Any  bool       // there were some
}

// send sends hashes of as many entities as fit into a packet, which is written to buf.
func (h *hashing) send(o *outbox, buf []byte) {
	s := o.snap
	w := bitbuf.NewWriter(buf[wire.ChecksumSize:])
	w.WriteBits(uint64(wire.KindHashes), 8)
	w.WriteBits(uint64(s.Tick), 32)
	var set wire.ComponentSet
	slot, next, count := h.next, 0, 0
	for ; slot < s.Slots.Len(); slot++ {
		b := slot >> 6
		if o.sight.View.Sees(b, s.Slots.Alive[b])>>(slot&63)&1 == 0 {
			continue
		}
		mark, before := w.Mark(), set
		encode.WriteHashes(s, &w, slot, next, &set)
		if w.Remaining() > 0 { // the end takes a bit
			next = slot + 1
			count++
			continue
		}
		w.Rollback(mark)
		set = before
		if count > 0 {
			break // the slot begins the next packet
		}
	}
	if h.next = slot; slot >= s.Slots.Len() {
		h.next = 0
	}
	if count == 0 {
		return
	}
	w.WriteBool(false)
	packet := buf[:wire.ChecksumSize+len(w.Bytes())]
	key := o.key
	key.Off = false
	key.Write(packet, 0, 0)
	o.stats.Hashes += uint64(count)
	o.stats.HashBytes += uint64(len(packet))
	o.Transmit(packet)
}
