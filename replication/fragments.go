package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A reliable message that does not fit into a packet goes in fragments. Each of them takes an id of the lane and is sent,
// acknowledged and sent again like a message of its own. The receiver keeps them where it keeps all that waits for its turn,
// within the same bounds, and takes them out together when the last one has come and need not wait any more. So what is
// acknowledged as handed over is always whole messages, and nothing of one that is half there outlives its lane.

const (

	// fragmentOverhead is messageOverhead for a fragment: it has a second bit for what it is, and the number of its bytes.
	fragmentOverhead = wire.MessageOverhead + (1+fragmentSizeBits)/8
	fragmentSizeBits = 16
	// maxFragments is the largest number of fragments of a message. An ack has room for as many ids in the smallest packets,
	// so that no fragment is sent again only because nothing could tell that it came.
	maxFragments = 128
	// maxFragmentPackets is how many packets of a tick a lane may fill before it sends no more fragments: a large message
	// leaves room for others.
	maxFragmentPackets = 6
)

// fragments returns the number of fragments of a message, 1 if it goes as a whole.
func (m *messenger) fragments(bytes int) int {
	if bytes <= m.room() {
		return 1
	}
	room := m.mtu - fragmentOverhead
	return (bytes + room - 1) / room
}

// checkSize returns an error if a message of so many bytes can't be sent.
func (m *messenger) checkSize(t *schema.MessageType, bytes int) error {
	switch {
	case !t.Reliable && bytes > m.room():
		return fmt.Errorf("%w: %s takes %d bytes, and %d fit into a packet of %d: unreliable messages go in one; "+
			"make it reliable, send it in pieces, or raise the MTU", schema.ErrMessageTooLarge, t.Name, bytes, m.room(), m.mtu)
	case t.Reliable && m.fragments(bytes) > maxFragments:
		return fmt.Errorf("%w: %s takes %d bytes, and %d go in packets of %d: send it in pieces, or raise the MTU",
			schema.ErrMessageTooLarge, t.Name, bytes, maxFragments*(m.mtu-fragmentOverhead), m.mtu)
	}
	return nil
}

// A turn is what comes next in a lane: a message that is there, with all its fragments.
type turn struct {
	last   *inMessage // the message, or the last of its fragments
	ids    int        // how many it takes
	broken bool       // fragments that make no message: of several types, too many, or of more bytes than the type has
}

// turn returns what comes next, if it is there.
func (l *inLane) turn(types []schema.MessageType) (t turn, ok bool) {
	bytes := 0
	for id := l.next; id != l.top && l.at(id).have; id++ {
		m := l.at(id)
		if t.ids > 0 && (m.fragment == wire.WholeMessage || m.number != t.last.number) {
			t.broken = true
			return t, true
		}
		t.last = m
		t.ids++
		bytes += len(m.data)
		if m.fragment == wire.WholeMessage {
			return t, true
		}
		t.broken = bytes > wire.ByteSize(types[m.number].Layout.Width()) || t.ids == maxFragments && m.fragment == wire.MoreFragments
		if m.fragment == wire.LastFragment || t.broken {
			return t, true
		}
	}
	return turn{}, false
}

// openTurn takes what comes next out of the lane and sets the value of its type to it. It returns false if it is no message:
// whole ones were checked when they came, but fragments can't be one by one.
func (m *messenger) openTurn(l *inLane, t *turn) bool {
	defer l.pop(t.ids)
	switch {
	case t.broken:
		return false
	case t.last.fragment == wire.WholeMessage:
		m.open(t.last.number, t.last.row())
		return true
	}
	m.joined = m.joined[:0]
	for i := range t.ids {
		m.joined = append(m.joined, l.at(l.next+uint32(i)).data...)
	}
	c := &m.schema.Messages[t.last.number].Component
	row, r := m.row[:c.Words], bitbuf.NewReader(m.joined)
	m.packed.DecodeRow(&r, t.last.number, row, nil, nil, 0)
	if r.Finish() != nil || !c.ValidRow(row) {
		return false
	}
	m.read(c, &m.values[t.last.number], row)
	return true
}
