package message

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// InChannel keeps reliable messages that arrived until they are the next in order.
type InChannel struct {
	ring     ring[InMessage]
	Next     uint32 // id of the message that is handled next
	Top      uint32 // one more than the newest id that arrived
	Size     int    // bytes of the messages
	acksLeft int    // number of acks to send
}

// InMessage is a message, or a fragment of one, that waits for messages before it or for a state of
// the world.
type InMessage struct {
	have     bool
	number   int
	fragment wire.Fragment
	tick     delta.Tick // of the state to which it belongs
	statedAt delta.Tick // tick of the packet that had its dependencies
	until    uint32     // when an unreliable message is dropped, as ClientMessages.awake
	bits     int
	Data     []byte
	deps     []wire.Dependency
}

// ackTimes is the number of times that arrivals are acknowledged: if all acks are lost, the sender
// retransmits everything.
const ackTimes = 2

// maxKeptBytes bounds the memory that a place keeps for the data of its next message.
const maxKeptBytes = 256

// Fill fills the place with a message. statedAt is the tick of the packet that had its dependencies.
func (m *InMessage) Fill(s *StagedMessage, deps []wire.Dependency, statedAt delta.Tick) {
	m.have, m.number, m.fragment, m.tick, m.statedAt, m.bits = true, s.Number, s.Fragment, s.Tick, statedAt, s.Bits
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

func (l *InChannel) at(id uint32) *InMessage { return l.ring.at(id) }

// Places returns the number of messages for which there is memory.
func (l *InChannel) Places() int { return len(l.ring.places) }

// full completes the id of a message, and returns false if no honest sender sends that id now.
func (l *InChannel) full(low uint16) (id uint32, ok bool) {
	id = wire.Extend16(low, l.Next)
	return id, int32(id-l.Next) < wire.MaxQueued
}

// take keeps a message that arrived. It returns false if the message had arrived before, or if there
// is no room for it.
func (l *InChannel) take(s *StagedMessage, deps []wire.Dependency, statedAt delta.Tick) bool {
	l.acksLeft = ackTimes
	ahead := int32(s.ID - l.Next)
	if ahead < 0 {
		return false
	}
	l.ring.fit(l.Next, uint32(ahead)+1)
	m := l.at(s.ID)
	if m.have {
		if statedAt.After(m.statedAt) { // the client has acknowledged some of the dependencies
			m.deps, m.statedAt = append(m.deps[:0], deps...), statedAt
		}
		return false
	}
	if l.Size+wire.ByteSize(s.Bits) > MaxQueuedBytes {
		return false // more than an honest sender sends: it may retransmit it
	}
	l.Size += wire.ByteSize(s.Bits)
	m.Fill(s, deps, statedAt)
	if int32(s.ID+1-l.Top) > 0 {
		l.Top = s.ID + 1
	}
	return true
}

// pop removes the next ids, all of which have arrived.
func (l *InChannel) pop(ids int) {
	for range ids {
		m := l.at(l.Next)
		l.Size -= wire.ByteSize(m.bits)
		m.clear()
		l.Next++
	}
	if l.Next == l.Top {
		l.ring.emptied()
	}
	l.acksLeft = ackTimes
}

// ack fills in the ids that arrived, in at most the given number of words. received is the newest
// time of a packet that arrived.
func (l *InChannel) ack(a *wire.ChannelAck, received uint32, words int) {
	l.acksLeft--
	a.Present, a.Received, a.Next = true, uint16(received), uint16(l.Next)
	a.Count = min(int(l.Top-l.Next+31)/32, words, len(a.Words))
	clear(a.Words[:a.Count])
	for i := range uint32(a.Count * 32) {
		if int(i) < l.Places() && l.at(l.Next+i).have {
			a.Words[i/32] |= 1 << (i % 32)
		}
	}
}
