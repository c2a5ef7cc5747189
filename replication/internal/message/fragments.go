package message

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A reliable message that does not fit into a packet goes in fragments. Each of them takes an id of the channel and is sent,
// acknowledged and sent again like a message of its own. The receiver keeps them where it keeps all that waits for its turn,
// within the same bounds, and takes them out together when the last one has come and need not wait any more. So what is
// acknowledged as handed over is always whole messages, and nothing of one that is half there outlives its channel.

const (

	// FragmentOverhead is wire.MessageOverhead for a fragment: it has a second bit for what it is, and the number of its bytes.
	FragmentOverhead = wire.MessageOverhead + (1+FragmentSizeBits)/8
	FragmentSizeBits = 16
	// MaxFragments is the largest number of fragments of a message. An ack has room for as many ids in the smallest packets,
	// so that no fragment is sent again only because nothing could tell that it came.
	MaxFragments = 128
	// MaxFragmentPackets is how many packets of a tick a channel may fill before it sends no more fragments: a large message
	// leaves room for others.
	MaxFragmentPackets = 6
)

// Fragments returns the number of fragments of a message, 1 if it goes as a whole.
func (m *Messenger) Fragments(bytes int) int {
	if bytes <= m.room() {
		return 1
	}
	room := m.mtu - FragmentOverhead
	return (bytes + room - 1) / room
}

// checkSize returns an error if a message of so many bytes can't be sent.
func (m *Messenger) checkSize(t *schema.MessageType, bytes int) error {
	switch {
	case !t.Reliable && bytes > m.room():
		return fmt.Errorf("%w: %s takes %d bytes, and %d fit into a packet of %d: unreliable messages go in one; "+
			"make it reliable, send it in pieces, or raise the MTU", schema.ErrMessageTooLarge, t.Name, bytes, m.room(), m.mtu)
	case t.Reliable && m.Fragments(bytes) > MaxFragments:
		return fmt.Errorf("%w: %s takes %d bytes, and %d go in packets of %d: send it in pieces, or raise the MTU",
			schema.ErrMessageTooLarge, t.Name, bytes, MaxFragments*(m.mtu-FragmentOverhead), m.mtu)
	}
	return nil
}

// A next is what comes next in a channel: a message that is there, with all its fragments.
type next struct {
	last   *InMessage // the message, or the last of its fragments
	ids    int        // how many it takes
	broken bool       // fragments that make no message: of several types, too many, or of more bytes than the type has
}

// nextInOrder returns what comes next, if it is there.
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
		t.broken = bytes > wire.ByteSize(types[m.number].Layout.Width()) || t.ids == MaxFragments && m.fragment == wire.MoreFragments
		if m.fragment == wire.LastFragment || t.broken {
			return t, true
		}
	}
	return next{}, false
}

// openNext takes what comes next out of the channel and sets the value of its type to it. It returns false if it is no message:
// whole ones were checked when they came, but fragments can't be one by one.
func (m *Messenger) openNext(l *InChannel, t *next) bool {
	defer l.pop(t.ids)
	switch {
	case t.broken:
		return false
	case t.last.fragment == wire.Unfragmented:
		m.open(t.last.number, t.last.row())
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
