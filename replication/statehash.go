package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// State hashes prove that what a client holds is what the server has, and name the first
// field that is not. They need no memory of what was sent: the server says what an entity
// is and since when it has not changed, and a client that holds a state of it from that
// time on must hold just that. A packet of them, behind a checksum that it always has:
//
//	kind 8 | tick 32 | entries | 0 | padding
//	entry: 1 | gap, exp-Golomb of order 4 | generation 16 | age, exp-Golomb of order 0 | set against the entry before | digests
//
// Entries are in the order of slots, and the gap is as in state packets. The entity has
// been what it is for age ticks before the packet's. There is a digest for every field of
// every component, in the order of the schema: the code itself if it is one of 8 bits or
// less, or else 8 bits of a hash of its words with the tick, so that a difference that one
// hash misses shows in the next.

const (
	hashGapOrder = 4

	maxHashEvery = 3600
)

// WithStateHash makes the server send every client, on every n-th tick at most, a packet
// with hashes of what it sees, in turns until all had theirs. The client compares them with
// what it holds; [Client.Divergence] names what differs. It is for finding faults: of this
// library, of a transport without checksums, of memory. The packets take up to an MTU, and are
// outside of budgets; see [PeerStats]. Without the option there is none.
//
// Entities are compared if the client holds their newest state, so that those that change
// in every tick are only if the packet of the same tick arrives first. An entity whose
// digests take more than a packet is never compared. Whether the client's world still holds
// what the client does, [Client.Verify] tells.
//
// Panics outside 1 to 3600.
func WithStateHash(n int) ServerOption {
	if n < 1 || n > maxHashEvery {
		panic(fmt.Sprintf("replication: WithStateHash(%d): use 1 to %d ticks", n, maxHashEvery))
	}
	return func(o *serverOptions) { o.hashEvery = delta.Tick(n) }
}

// hashing is where the server stands with a peer's hashes.
type hashing struct {
	next int        // the slot to go on with
	at   delta.Tick // when there were some last
	any  bool
}

// sendHashes sends all peers the hashes that are due.
func (s *Server) sendHashes() {
	every := s.opts.hashEvery
	if every == 0 {
		return
	}
	if s.sender.hashes == nil {
		s.sender.hashes = make([]byte, s.opts.mtu)
	}
	for _, p := range s.peers {
		if p.conn.state == connected && p.acked.itsTurn() && (!p.out.hashing.any || s.snap.tick-p.out.hashing.at >= every) {
			p.out.hashing.any, p.out.hashing.at = true, s.snap.tick
			p.out.sendHashes(s.sender.hashes)
		}
	}
}

func (p *sender) sendHashes(buf []byte) {
	s := p.snap
	w := bitbuf.NewWriter(buf[wire.ChecksumSize:])
	w.WriteBits(uint64(wire.KindHashes), 8)
	w.WriteBits(uint64(s.tick), 32)
	var set delta.Set
	next, count := 0, 0
	slot := p.hashing.next
	for ; slot < s.slots.len(); slot++ {
		b := slot >> 6
		if p.sight.view.sees(b, s.slots.alive[b])>>(slot&63)&1 == 0 {
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
	if p.hashing.next = slot; slot >= s.slots.len() {
		p.hashing.next = 0
	}
	if count == 0 {
		return
	}
	w.WriteBool(false)
	packet := buf[:wire.ChecksumSize+len(w.Bytes())]
	key := p.seal
	key.Off = false
	key.Write(packet, 0, 0)
	p.stats.Hashes += uint64(count)
	p.stats.HashBytes += uint64(len(packet))
	if p.send(packet) != nil {
		p.stats.SendErrors++
	}
}

// writeHashes writes the entry of a slot, as far as there is room.
func writeHashes(s *snapshot, w *bitbuf.Writer, slot, next int, set *delta.Set) {
	info := &s.slots.info[slot]
	w.WriteBool(true)
	w.WriteExpGolomb(uint64(slot-next), hashGapOrder)
	w.WriteBits(uint64(info.generation), 16)
	w.WriteExpGolomb(uint64(s.tick-s.slots.changed[slot]), 0)
	delta.WriteSet(w, &info.set, set)
	*set = info.set
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		row := s.histories[k].Row(slot)
		columns := s.schema.Components[k].Columns
		for i := range columns {
			if w.Err() != nil {
				return
			}
			w.WriteBits(columns[i].Digest(row, uint32(s.tick)))
		}
	}
}

// Divergence returns the first field in which what the client holds was found to differ
// from what the server has, or nil: see [WithStateHash]. There is none when a session
// begins. A difference is no reason to go on: the library has a fault, or memory has.
//
// Want is nil, for hashes don't tell, and Got is what the client holds; a [NetID] where
// the field refers to an entity. If the ends differ in whether there is a component, Field
// is empty and Got and Want are bools.
func (c *Client) Divergence() *Divergence {
	c.mustExist()
	return c.apply.hashes.divergence
}
