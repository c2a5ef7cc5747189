package replication

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An inLane keeps reliable messages that came until it is their turn.
type inLane struct {
	ring []inMessage // by id modulo their number, a power of two
	next uint32      // id of the message that is handed over next
	top  uint32      // one more than the newest id that came
	size int         // bytes of messages kept
	due  int         // how many times the sender has to be told what came
}

// An inMessage is a message, or a fragment of one, that waits for its turn, or for the world.
type inMessage struct {
	have     bool
	number   int
	fragment wire.Fragment
	tick     delta.Tick // of the state that it belongs to
	said     delta.Tick // of the packet that told what it waits for
	until    uint32     // if it is unreliable: when it is forgotten, in client ticks
	bits     int
	data     []byte
	deps     []dependency
}

// ackTimes is how often the same is acknowledged: an ack may be lost, and then the sender would send all again.
const ackTimes = 2

// maxKeptBytes is the room that stays with a place for messages when its message is gone.
const maxKeptBytes = 256

// set fills the place with a message of which r reads the bits.
func (m *inMessage) set(s *stagedMessage, deps []dependency, said delta.Tick) {
	m.have, m.number, m.fragment, m.tick, m.said, m.bits = true, s.number, s.fragment, s.tick, said, s.bits
	m.deps = append(m.deps[:0], deps...)
	n := wire.ByteSize(s.bits)
	if cap(m.data) < n {
		m.data = make([]byte, n)
	}
	m.data = m.data[:n]
	r := s.row
	r.ReadBytes(m.data[:s.bits/8])
	if rest := s.bits % 8; rest > 0 {
		m.data[n-1] = byte(r.ReadBits(uint(rest)))
	}
}

// clear empties the place.
func (m *inMessage) clear() {
	m.have = false
	if cap(m.data) > maxKeptBytes {
		m.data = nil
	}
}

// row returns a reader of the message's row.
func (m *inMessage) row() bitbuf.Reader { return bitbuf.NewReader(m.data) }

func (l *inLane) at(id uint32) *inMessage { return &l.ring[id&uint32(len(l.ring)-1)] }

// full completes the id of a message, and returns false if no honest sender sends it now.
func (l *inLane) full(low uint16) (id uint32, ok bool) {
	id = wire.Extend16(low, l.next)
	return id, int32(id-l.next) < wire.MaxQueued
}

// take keeps a message that came, unless it did before. It reports whether it is a new one.
func (l *inLane) take(s *stagedMessage, deps []dependency, said delta.Tick) bool {
	l.due = ackTimes
	ahead := int32(s.id - l.next)
	if ahead < 0 {
		return false
	}
	for int(ahead) >= len(l.ring) {
		l.grow()
	}
	m := l.at(s.id)
	if m.have {
		if said.After(m.said) { // what it waits for has become less
			m.deps, m.said = append(m.deps[:0], deps...), said
		}
		return false
	}
	if l.size+wire.ByteSize(s.bits) > maxQueuedBytes {
		return false // more than an honest sender sends: it may do so again
	}
	l.size += wire.ByteSize(s.bits)
	m.set(s, deps, said)
	if int32(s.id+1-l.top) > 0 {
		l.top = s.id + 1
	}
	return true
}

func (l *inLane) grow() {
	ring := make([]inMessage, max(minQueued, 2*len(l.ring)))
	for i := range l.ring {
		id := l.next + uint32(i)
		ring[id&uint32(len(ring)-1)] = *l.at(id)
	}
	l.ring = ring
}

// pop takes the next ids out, which are there.
func (l *inLane) pop(ids int) {
	for range ids {
		m := l.at(l.next)
		l.size -= wire.ByteSize(m.bits)
		m.clear()
		l.next++
	}
	l.due = ackTimes
}

// ack fills in what came, in at most so many words. heard is the newest time of a packet that came.
func (l *inLane) ack(a *wire.ChannelAck, heard uint32, words int) {
	l.due--
	a.Present, a.Heard, a.Next = true, uint16(heard), uint16(l.next)
	a.Count = min(int(l.top-l.next+31)/32, words, len(a.Words))
	clear(a.Words[:a.Count])
	for i := range uint32(a.Count * 32) {
		if int(i) < len(l.ring) && l.at(l.next+i).have {
			a.Words[i/32] |= 1 << (i % 32)
		}
	}
}
