package message

// This file has fragments. A reliable message that does not fit into a packet is sent in fragments.
// Each fragment has an id of the channel, and is sent, acknowledged and retransmitted like a message.
// The receiver keeps fragments with the other messages of the channel, within the same bounds, and
// takes all of a message out together when the last one has arrived and waits for nothing. So only
// complete messages are acknowledged as handled, and a partial message ends with its channel.

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

const (
	// FragmentOverhead is wire.MessageOverhead for a fragment, which has a second bit for its kind
	// and the number of its bytes besides.
	FragmentOverhead = wire.MessageOverhead + (1+FragmentSizeBits)/8
	FragmentSizeBits = 16
	// MaxFragments is the largest number of fragments of a message. An ack in the smallest packet
	// has room for that many ids, so that no fragment is retransmitted only because its arrival
	// could not be acknowledged.
	MaxFragments = 128
	// MaxFragmentPackets is the number of packets that a channel may fill in a tick before it stops
	// sending fragments: a large message leaves room for others.
	MaxFragmentPackets = 6
)

// roomIn returns the largest size of a message that is not fragmented, in bytes.
func roomIn(mtu int) int { return mtu - wire.MessageOverhead }

// Fragments returns the number of fragments of a message in packets of an MTU, 1 if it is not fragmented.
func Fragments(bytes, mtu int) int {
	if bytes <= roomIn(mtu) {
		return 1
	}
	room := mtu - FragmentOverhead
	return (bytes + room - 1) / room
}

// CheckSize returns an error if a pending message can't be sent in packets of an MTU.
func (m *Messenger) CheckSize(pending, mtu int) error {
	d := &m.Pending[pending]
	switch t := &m.schema.Messages[d.number]; {
	case !t.Reliable && d.size > roomIn(mtu):
		return fmt.Errorf("%w: %s takes %d bytes, and %d fit into a packet of %d: unreliable messages go in one; "+
			"make it reliable, send it in pieces, or raise the MTU",
			schema.ErrMessageTooLarge, t.Name, d.size, roomIn(mtu), mtu)
	case t.Reliable && Fragments(d.size, mtu) > MaxFragments:
		return fmt.Errorf("%w: %s takes %d bytes, and %d go in packets of %d: send it in pieces, or raise the MTU",
			schema.ErrMessageTooLarge, t.Name, d.size, MaxFragments*(mtu-FragmentOverhead), mtu)
	}
	return nil
}

// next is the next message of a channel, with all of its fragments.
type next struct {
	last   *InMessage // the message, or its last fragment
	ids    int        // number of ids that it takes
	broken bool       // fragments of several types, too many of them, or more bytes than the type has
}

// nextInOrder returns the next message if all of it has arrived.
func (l *InChannel) nextInOrder(types []schema.MessageType) (t next, ok bool) {
	bytes := 0
	for id := l.Next; id != l.Top && l.at(id).have; id++ {
		m := l.at(id)
		if t.ids > 0 && (m.fragment == wire.Unfragmented || m.number != t.last.number) {
			t.broken = true
			return t, true
		}
		t.last = m
		t.ids++
		bytes += len(m.Data)
		if m.fragment == wire.Unfragmented {
			return t, true
		}
		t.broken = bytes > wire.ByteSize(types[m.number].Layout.Width()) ||
			t.ids == MaxFragments && m.fragment == wire.MoreFragments
		if m.fragment == wire.LastFragment || t.broken {
			return t, true
		}
	}
	return next{}, false
}

// decodeNext takes the next message out of the channel and decodes it into the value of its type. It
// returns false if it is invalid. Only fragments can be: other messages were checked on arrival.
func (m *Messenger) decodeNext(l *InChannel, t *next) bool {
	defer l.pop(t.ids)
	switch {
	case t.broken:
		return false
	case t.last.fragment == wire.Unfragmented:
		m.decode(t.last.number, t.last.row())
		return true
	}
	m.Joined = m.Joined[:0]
	for i := range t.ids {
		m.Joined = append(m.Joined, l.at(l.Next+uint32(i)).Data...)
	}
	c := &m.schema.Messages[t.last.number].Component
	row, r := m.row[:c.Words], bitbuf.NewReader(m.Joined)
	m.Packed.DecodeRow(&r, t.last.number, row, nil, nil, 0)
	if r.Finish() != nil || !c.ValidRow(row) {
		return false
	}
	m.Read(c, &m.Values[t.last.number], row)
	return true
}
