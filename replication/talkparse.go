package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A stagedMessage is one of a packet that is not believed yet.
type stagedMessage struct {
	number      int
	lane        int // -1: unreliable
	id          uint32
	fragment    wire.Fragment
	tick        delta.Tick
	first, deps int           // what it waits for, in talkStage.deps
	row         bitbuf.Reader // before its row, or the bytes of a fragment
	bits        int           // of these
}

// A talkStage collects what a packet of messages says before any of it is believed: a packet with a single wrong bit
// changes nothing.
type talkStage struct {
	header   wire.MessageHeader
	index    uint
	report   wire.InputReport
	acks     [wire.Channels]wire.ChannelAck
	messages []stagedMessage
	deps     []dependency
}

// A talkParser reads packets of messages.
type talkParser struct {
	talkStage
	schema   *schema.Schema
	packed   *delta.Packed
	fromPeer bool // else from the server
	slots    uint32
	row      []uint32 // scratch memory
}

// parse reads what stands behind the header of a packet. in are the lanes of messages that come from there.
func (k *talkParser) parse(rest []byte, in *[wire.Channels]inLane) error {
	k.messages, k.deps = k.messages[:0], k.deps[:0]
	r := bitbuf.NewReader(rest)
	index := r.ReadExpGolomb(0)
	if index >= maxTalkPackets {
		return wire.ErrMalformed
	}
	k.index = uint(index)
	k.report = wire.InputReport{}
	if !k.fromPeer {
		k.report.Read(&r, k.schema.Input != nil)
	}
	for i := range k.acks {
		k.acks[i].Present = false
		if i == 0 || k.fromPeer { // clients have one lane
			if err := k.acks[i].Read(&r); err != nil {
				return err
			}
		}
	}
	var x laneContext
	same := [2]int{} // the dependencies of the message before: from, to
	for r.ReadBool() {
		if len(k.messages) == maxPacketMessages {
			return wire.ErrMalformed
		}
		if err := k.parseMessage(&r, in, &x, &same); err != nil {
			return err
		}
	}
	if r.Finish() != nil {
		return wire.ErrMalformed
	}
	return nil
}

func (k *talkParser) parseMessage(r *bitbuf.Reader, in *[wire.Channels]inLane, x *laneContext, same *[2]int) error {
	m := stagedMessage{number: int(r.ReadBits(k.schema.NumberBits())), lane: -1, tick: delta.Tick(k.header.Time)}
	if m.number >= len(k.schema.Messages) {
		return fmt.Errorf("%w: message number %d, where the schema has %d messages", wire.ErrMalformed, m.number, len(k.schema.Messages))
	}
	t := &k.schema.Messages[m.number]
	if t.Reliable {
		m.lane = t.Lane(!k.fromPeer)
		var ok bool
		if x.begun[m.lane] {
			gap := r.ReadExpGolomb(0)
			m.id = x.last[m.lane] + 1 + uint32(gap)
			ok = gap < wire.MaxQueued && int32(m.id-in[m.lane].next) < wire.MaxQueued
		} else {
			m.id, ok = in[m.lane].full(uint16(r.ReadBits(16)))
		}
		if !ok {
			return wire.ErrMalformed
		}
		x.begun[m.lane], x.last[m.lane] = true, m.id
		if t.Long {
			m.fragment.Read(r)
		}
		if !k.fromPeer && m.fragment != wire.MoreFragments {
			age := r.ReadExpGolomb(ageOrder)
			if age > maxMessageAge {
				return wire.ErrMalformed
			}
			m.tick -= delta.Tick(age)
		}
	}
	if !k.fromPeer && t.Waits() && m.fragment != wire.MoreFragments {
		if r.ReadBool() {
			same[0] = len(k.deps)
			if !k.parseDependencies(r) {
				return wire.ErrMalformed
			}
			same[1] = len(k.deps)
		}
		m.first, m.deps = same[0], same[1]-same[0]
	}
	if !k.parseContent(r, t, &m) {
		return wire.ErrMalformed
	}
	k.messages = append(k.messages, m)
	return nil
}

// parseContent reads a row, or passes over the bytes of a fragment, of which nothing is known before all are there.
func (k *talkParser) parseContent(r *bitbuf.Reader, t *schema.MessageType, m *stagedMessage) bool {
	if m.fragment != wire.WholeMessage {
		m.bits = 8 * int(r.ReadBits(fragmentSizeBits))
		m.row = *r
		r.Skip(uint(m.bits))
		return r.Err() == nil && m.bits > 0 && wire.ByteSize(m.bits) <= wire.ByteSize(t.Layout.Width())
	}
	m.row = *r
	from := r.Pos()
	k.packed.DecodeRow(r, m.number, k.row[:t.Words], nil, nil, 0)
	m.bits = r.Pos() - from
	return r.Err() == nil && t.ValidRow(k.row[:t.Words])
}

// parseDependencies reads the list of what a message waits for.
func (k *talkParser) parseDependencies(r *bitbuf.Reader) bool {
	n := r.ReadExpGolomb(0)
	if n > maxDependencies {
		return false
	}
	next := uint64(0)
	for range n {
		gap, wait := r.ReadExpGolomb(dependencyOrder), r.ReadExpGolomb(waitOrder)
		if r.Err() != nil || gap >= uint64(k.slots) || next+gap >= uint64(k.slots) || wait >= 1<<31 {
			return false
		}
		k.deps = append(k.deps, dependency{uint32(next + gap), delta.Tick(k.header.Time) - delta.Tick(wait)})
		next += gap + 1
	}
	return true
}
