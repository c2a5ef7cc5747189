package message

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An InChannel keeps reliable messages that came until it is their turn.
type InChannel struct {
	Ring     []InMessage // by id modulo their number, a power of two
	Next     uint32      // id of the message that is handed over next
	Top      uint32      // one more than the newest id that came
	Size     int         // bytes of messages kept
	acksLeft int         // how many times the sender has to be told what came
}

// An InMessage is a message, or a fragment of one, that waits for its turn, or for the world.
type InMessage struct {
	have     bool
	number   int
	fragment wire.Fragment
	tick     delta.Tick // of the state that it belongs to
	said     delta.Tick // of the packet that told what it waits for
	until    uint32     // if it is unreliable: when it is forgotten, in client ticks
	bits     int
	Data     []byte
	deps     []wire.Dependency
}

// ackTimes is how often the same is acknowledged: an ack may be lost, and then the sender would send all again.
const ackTimes = 2

// maxKeptBytes is the room that stays with a place for messages when its message is gone.
const maxKeptBytes = 256

// Fill fills the place with a message of which r reads the bits.
func (m *InMessage) Fill(s *StagedMessage, deps []wire.Dependency, said delta.Tick) {
	m.have, m.number, m.fragment, m.tick, m.said, m.bits = true, s.Number, s.Fragment, s.Tick, said, s.Bits
	m.deps = append(m.deps[:0], deps...)
	n := wire.ByteSize(s.Bits)
	if cap(m.Data) < n {
		m.Data = make([]byte, n)
	}
	m.Data = m.Data[:n]
	r := s.row
	r.ReadBytes(m.Data[:s.Bits/8])
	if rest := s.Bits % 8; rest > 0 {
		m.Data[n-1] = byte(r.ReadBits(uint(rest)))
	}
}

// clear empties the place.
func (m *InMessage) clear() {
	m.have = false
	if cap(m.Data) > maxKeptBytes {
		m.Data = nil
	}
}

// row returns a reader of the message's row.
func (m *InMessage) row() bitbuf.Reader { return bitbuf.NewReader(m.Data) }

func (l *InChannel) at(id uint32) *InMessage { return &l.Ring[id&uint32(len(l.Ring)-1)] }

// full completes the id of a message, and returns false if no honest sender sends it now.
func (l *InChannel) full(low uint16) (id uint32, ok bool) {
	id = wire.Extend16(low, l.Next)
	return id, int32(id-l.Next) < wire.MaxQueued
}

// take keeps a message that came, unless it did before. It reports whether it is a new one.
func (l *InChannel) take(s *StagedMessage, deps []wire.Dependency, said delta.Tick) bool {
	l.acksLeft = ackTimes
	ahead := int32(s.ID - l.Next)
	if ahead < 0 {
		return false
	}
	for int(ahead) >= len(l.Ring) {
		l.grow()
	}
	m := l.at(s.ID)
	if m.have {
		if said.After(m.said) { // what it waits for has become less
			m.deps, m.said = append(m.deps[:0], deps...), said
		}
		return false
	}
	if l.Size+wire.ByteSize(s.Bits) > MaxQueuedBytes {
		return false // more than an honest sender sends: it may do so again
	}
	l.Size += wire.ByteSize(s.Bits)
	m.Fill(s, deps, said)
	if int32(s.ID+1-l.Top) > 0 {
		l.Top = s.ID + 1
	}
	return true
}

func (l *InChannel) grow() {
	ring := make([]InMessage, max(minQueued, 2*len(l.Ring)))
	for i := range l.Ring {
		id := l.Next + uint32(i)
		ring[id&uint32(len(ring)-1)] = *l.at(id)
	}
	l.Ring = ring
}

// pop takes the next ids out, which are there.
func (l *InChannel) pop(ids int) {
	for range ids {
		m := l.at(l.Next)
		l.Size -= wire.ByteSize(m.bits)
		m.clear()
		l.Next++
	}
	l.acksLeft = ackTimes
}

// ack fills in what came, in at most so many words. heard is the newest time of a packet that came.
func (l *InChannel) ack(a *wire.ChannelAck, received uint32, words int) {
	l.acksLeft--
	a.Present, a.Received, a.Next = true, uint16(received), uint16(l.Next)
	a.Count = min(int(l.Top-l.Next+31)/32, words, len(a.Words))
	clear(a.Words[:a.Count])
	for i := range uint32(a.Count * 32) {
		if int(i) < len(l.Ring) && l.at(l.Next+i).have {
			a.Words[i/32] |= 1 << (i % 32)
		}
	}
}
