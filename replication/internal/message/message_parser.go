package message

// This file reads packets of messages.

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// StagedMessage is a message of a packet that is not checked to its end yet.
type StagedMessage struct {
	Number      int
	Channel     int // -1: unreliable
	ID          uint32
	Fragment    wire.Fragment
	Tick        delta.Tick
	First, Deps int           // its dependencies in messageStage.Deps: index and number
	row         bitbuf.Reader // at its row, or the bytes of a fragment
	Bits        int           // of the row or the bytes
}

// messageStage collects the content of a packet of messages before any of it is used: a packet with a
// single wrong bit changes nothing.
type messageStage struct {
	Header   wire.MessageHeader
	index    uint
	report   wire.InputReport
	acks     [wire.Channels]wire.ChannelAck
	Messages []StagedMessage
	Deps     []wire.Dependency
}

// messageParser reads packets of messages.
type messageParser struct {
	messageStage
	schema   *schema.Schema
	packed   *delta.Packed
	fromPeer bool // packets come from clients, else from the server
	slots    uint32
	row      []uint32 // scratch memory
}

// Parse reads a packet behind its header. in are the channels that receive its messages.
func (k *messageParser) Parse(rest []byte, in *[wire.Channels]InChannel) error {
	k.Messages, k.Deps = k.Messages[:0], k.Deps[:0]
	r := bitbuf.NewReader(rest)
	index := r.ReadExpGolomb(0)
	if index >= MaxMessagePackets {
		return wire.ErrMalformed
	}
	k.index = uint(index)
	k.report = wire.InputReport{}
	if !k.fromPeer {
		k.report.Read(&r, k.schema.Input != nil)
	}
	for i := range k.acks {
		k.acks[i].Present = false
		if i == 0 || k.fromPeer { // clients send on one channel
			if err := k.acks[i].Read(&r); err != nil {
				return err
			}
		}
	}
	var x channelContext
	same := [2]int{} // dependencies of the message before: start and end
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

// parseMessage reads a message. x and same have what it shares with the messages before it.
func (k *messageParser) parseMessage(
	r *bitbuf.Reader, in *[wire.Channels]InChannel, x *channelContext, same *[2]int,
) error {
	m := StagedMessage{Number: int(r.ReadBits(k.schema.NumberBits())), Channel: -1, Tick: delta.Tick(k.Header.Time)}
	if m.Number >= len(k.schema.Messages) {
		return fmt.Errorf("%w: message number %d, where the schema has %d messages",
			wire.ErrMalformed, m.Number, len(k.schema.Messages))
	}
	t := &k.schema.Messages[m.Number]
	if t.Reliable {
		m.Channel = t.Channel(!k.fromPeer)
		var ok bool
		if x.begun[m.Channel] {
			gap := r.ReadExpGolomb(0)
			m.ID = x.last[m.Channel] + 1 + uint32(gap)
			ok = gap < wire.MaxQueued && int32(m.ID-in[m.Channel].Next) < wire.MaxQueued
		} else {
			m.ID, ok = in[m.Channel].full(uint16(r.ReadBits(16)))
		}
		if !ok {
			return wire.ErrMalformed
		}
		x.begun[m.Channel], x.last[m.Channel] = true, m.ID
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

// parseContent reads a row, or skips the bytes of a fragment, which can't be checked before all
// fragments are there.
func (k *messageParser) parseContent(r *bitbuf.Reader, t *schema.MessageType, m *StagedMessage) bool {
	if m.Fragment != wire.Unfragmented {
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

// parseDependencies reads the dependencies of a message.
func (k *messageParser) parseDependencies(r *bitbuf.Reader) bool {
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
		tick := delta.Tick(k.Header.Time) - delta.Tick(wait)
		k.Deps = append(k.Deps, wire.Dependency{Slot: uint32(next + gap), Tick: tick})
		next += gap + 1
	}
	return true
}
