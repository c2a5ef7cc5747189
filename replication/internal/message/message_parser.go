package message

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A StagedMessage is one of a packet that is not believed yet.
type StagedMessage struct {
	Number      int
	Lane        int // -1: unreliable
	ID          uint32
	Fragment    wire.Fragment
	Tick        delta.Tick
	First, Deps int           // what it waits for, in talkStage.deps
	row         bitbuf.Reader // before its row, or the bytes of a fragment
	Bits        int           // of these
}

// A talkStage collects what a packet of messages says before any of it is believed: a packet with a single wrong bit
// changes nothing.
type talkStage struct {
	Header   wire.MessageHeader
	Index    uint
	Report   wire.InputReport
	Acks     [wire.Channels]wire.ChannelAck
	Messages []StagedMessage
	Deps     []wire.Dependency
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

// Parse reads what stands behind the header of a packet. in are the lanes of messages that come from there.
func (k *talkParser) Parse(rest []byte, in *[wire.Channels]InLane) error {
	k.Messages, k.Deps = k.Messages[:0], k.Deps[:0]
	r := bitbuf.NewReader(rest)
	index := r.ReadExpGolomb(0)
	if index >= MaxTalkPackets {
		return wire.ErrMalformed
	}
	k.Index = uint(index)
	k.Report = wire.InputReport{}
	if !k.fromPeer {
		k.Report.Read(&r, k.schema.Input != nil)
	}
	for i := range k.Acks {
		k.Acks[i].Present = false
		if i == 0 || k.fromPeer { // clients have one lane
			if err := k.Acks[i].Read(&r); err != nil {
				return err
			}
		}
	}
	var x laneContext
	same := [2]int{} // the dependencies of the message before: from, to
	for r.ReadBool() {
		if len(k.Messages) == MaxPacketMessages {
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

func (k *talkParser) parseMessage(r *bitbuf.Reader, in *[wire.Channels]InLane, x *laneContext, same *[2]int) error {
	m := StagedMessage{Number: int(r.ReadBits(k.schema.NumberBits())), Lane: -1, Tick: delta.Tick(k.Header.Time)}
	if m.Number >= len(k.schema.Messages) {
		return fmt.Errorf("%w: message number %d, where the schema has %d messages", wire.ErrMalformed, m.Number, len(k.schema.Messages))
	}
	t := &k.schema.Messages[m.Number]
	if t.Reliable {
		m.Lane = t.Lane(!k.fromPeer)
		var ok bool
		if x.begun[m.Lane] {
			gap := r.ReadExpGolomb(0)
			m.ID = x.last[m.Lane] + 1 + uint32(gap)
			ok = gap < wire.MaxQueued && int32(m.ID-in[m.Lane].Next) < wire.MaxQueued
		} else {
			m.ID, ok = in[m.Lane].full(uint16(r.ReadBits(16)))
		}
		if !ok {
			return wire.ErrMalformed
		}
		x.begun[m.Lane], x.last[m.Lane] = true, m.ID
		if t.Long {
			m.Fragment.Read(r)
		}
		if !k.fromPeer && m.Fragment != wire.MoreFragments {
			age := r.ReadExpGolomb(AgeOrder)
			if age > MaxMessageAge {
				return wire.ErrMalformed
			}
			m.Tick -= delta.Tick(age)
		}
	}
	if !k.fromPeer && t.Waits() && m.Fragment != wire.MoreFragments {
		if r.ReadBool() {
			same[0] = len(k.Deps)
			if !k.parseDependencies(r) {
				return wire.ErrMalformed
			}
			same[1] = len(k.Deps)
		}
		m.First, m.Deps = same[0], same[1]-same[0]
	}
	if !k.parseContent(r, t, &m) {
		return wire.ErrMalformed
	}
	k.Messages = append(k.Messages, m)
	return nil
}

// parseContent reads a row, or passes over the bytes of a fragment, of which nothing is known before all are there.
func (k *talkParser) parseContent(r *bitbuf.Reader, t *schema.MessageType, m *StagedMessage) bool {
	if m.Fragment != wire.WholeMessage {
		m.Bits = 8 * int(r.ReadBits(FragmentSizeBits))
		m.row = *r
		r.Skip(uint(m.Bits))
		return r.Err() == nil && m.Bits > 0 && wire.ByteSize(m.Bits) <= wire.ByteSize(t.Layout.Width())
	}
	m.row = *r
	from := r.Pos()
	k.packed.DecodeRow(r, m.Number, k.row[:t.Words], nil, nil, 0)
	m.Bits = r.Pos() - from
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
		gap, wait := r.ReadExpGolomb(DependencyOrder), r.ReadExpGolomb(WaitOrder)
		if r.Err() != nil || gap >= uint64(k.slots) || next+gap >= uint64(k.slots) || wait >= 1<<31 {
			return false
		}
		k.Deps = append(k.Deps, wire.Dependency{Slot: uint32(next + gap), Tick: delta.Tick(k.Header.Time) - delta.Tick(wait)})
		next += gap + 1
	}
	return true
}
