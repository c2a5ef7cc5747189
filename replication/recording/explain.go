package recording

import (
	"fmt"
	"slices"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An explainer makes a Packet of what the client read in a packet.
type explainer struct {
	fn        func(*Packet)
	inside    *seam.Client
	trace     *receive.Trace
	packed    *delta.Packed // of messages; nil: there are none
	buf       []byte
	columns   []column // of components, by field of the layout
	messages  []column // of messages
	costs     []int64  // by column of a component
	resources archeutil.ResourceSet
	stats     replication.ClientStats // before the packet

	now *Packet
	at  PacketPart // what the parts of an entry have in common
}

// A column is which column of which component a field of a layout belongs to.
type column struct{ component, index int }

// appendColumns appends the columns of a component.
func appendColumns(columns []column, k int, c *schema.Component) []column {
	for i := range c.Columns {
		for range c.Columns[i].Codec.AppendLayout(nil, "") {
			columns = append(columns, column{k, i})
		}
	}
	return columns
}

func newExplainer(inside *seam.Client, fn func(*Packet)) *explainer {
	s := inside.Schema
	x := &explainer{fn: fn, inside: inside, trace: receive.NewTrace(s), resources: archeutil.ResourcesOf(s)}
	for k := range s.Components {
		x.columns = appendColumns(x.columns, k, &s.Components[k])
	}
	if inside.Messages == nil {
		return x
	}
	x.packed, x.buf = delta.NewPacked(s.MessageLayout), make([]byte, wire.MaxMTU)
	for k := range s.Messages {
		x.messages = appendColumns(x.messages, k, &s.Messages[k].Component)
	}
	return x
}

// costsOf returns what the columns of component k took, in so many units for each of the costs, and its mask.
func (x *explainer) costsOf(columns []column, k, n int, costs []delta.Cost, unit int64) (fields []int64, mask int64) {
	x.costs = append(x.costs[:0], make([]int64, n)...)
	for _, cost := range costs {
		switch f := int(cost.Field); {
		case f == len(columns)+k:
			mask += int64(cost.Bits) * unit
		case f < len(columns) && columns[f].component == k:
			x.costs[columns[f].index] += int64(cost.Bits) * unit
		}
	}
	return x.costs, mask
}

// add adds a part of so many units of cost.
func (x *explainer) add(what, detail string, cost int64) *PacketPart {
	part := x.at
	part.What, part.Detail, part.Bits = what, detail, float64(cost)/delta.CostUnit
	x.now.Parts = append(x.now.Parts, part)
	return &x.now.Parts[len(x.now.Parts)-1]
}

// receive gives the client a packet, and explains it.
func (x *explainer) receive(p *Player, packet []byte) {
	x.trace.Reset()
	x.stats = p.client.Stats()
	if m := x.inside.Messages; m != nil {
		m.Parser.Header, m.Parser.Messages = wire.MessageHeader{}, m.Parser.Messages[:0]
	}
	x.inside.Recv.Watches.Trace = x.trace
	err := p.client.Receive(packet)
	x.inside.Recv.Watches.Trace = nil
	x.explain(p, packet, err)
}

// explain explains a packet that the client has received.
func (x *explainer) explain(p *Player, packet []byte, err error) {
	x.now = &Packet{At: p.Position(), Kind: "unknown", Bytes: len(packet), Err: err}
	x.at = PacketPart{Slot: -1}
	header := ""
	switch m := x.inside.Messages; {
	case x.trace.Begun:
		x.state(int64(len(packet)))
		x.fn(x.now)
		return
	case m != nil && m.Parser.Header.Kind == wire.KindMessages:
		x.message(err)
	case len(packet) > wire.ChecksumSize && wire.KindOf(packet[wire.ChecksumSize:]) == wire.KindHashes:
		x.now.Kind = "hashes"
		x.hashes(p.client)
	case len(packet) > wire.ChecksumSize && wire.KindOf(packet[wire.ChecksumSize:]) == wire.KindDisconnect:
		x.now.Kind, header = "disconnect", "the session ends"
	}
	rest := 8 * int64(len(packet)) * delta.CostUnit
	for i := range x.now.Parts {
		rest -= int64(x.now.Parts[i].Bits * delta.CostUnit)
	}
	x.at = PacketPart{Slot: -1}
	if x.now.Kind == "messages" {
		header = "checksum, time, acks, and what precedes each message"
	}
	x.add("header", header, rest)
	last := len(x.now.Parts) - 1
	x.now.Parts = slices.Insert(x.now.Parts[:last], 0, x.now.Parts[last])
	x.fn(x.now)
}

// welcome explains the packet with which a session begins.
func (x *explainer) welcome(p *Player, packet []byte, m *wire.Welcome) {
	x.now = &Packet{
		At: p.Position(), Kind: "welcome", Bytes: len(packet), Tick: replication.Tick(m.Tick), Sequence: m.Sequence,
	}
	x.at = PacketPart{Slot: -1}
	coding, sums := replication.Packed, "checksums"
	if m.Compact {
		coding = replication.Compact
	}
	if m.NoChecksum {
		sums = "no checksums"
	}
	text := fmt.Sprintf("session %016x of server %016x, %s, %s, %d ticks per second, window %d ticks",
		m.Session, m.Instance, coding, sums, m.TickRate, m.Window)
	x.add("header", text, 8*int64(len(packet))*delta.CostUnit)
	x.fn(x.now)
}

// hashes explains state hashes.
func (x *explainer) hashes(c *replication.Client) {
	now := c.Stats()
	text := fmt.Sprintf("%d states compared, %d not held", now.HashesCompared-x.stats.HashesCompared,
		now.HashesSkipped-x.stats.HashesSkipped)
	if n := now.Diverged - x.stats.Diverged; n > 0 {
		text += fmt.Sprintf(", %d DIFFER, first %+v", n, *c.Divergence())
	}
	x.add("checks", text, 0)
}

// message explains a packet of messages.
func (x *explainer) message(err error) {
	m := x.inside.Messages
	x.now.Kind, x.now.Tick = "messages", replication.Tick(m.Parser.Header.Time)
	if err != nil {
		return // what was read of it may not be valid
	}
	for i := range m.Parser.Messages {
		s := &m.Parser.Messages[i]
		t := &x.inside.Schema.Messages[s.Number]
		x.at = PacketPart{Slot: -1, Component: t.Name, Tick: s.Tick}
		text := "unreliable"
		if s.Channel >= 0 {
			text = fmt.Sprintf("reliable, number %d", s.ID)
		}
		row := m.RowOf(s)
		if row == nil {
			x.add("fragment", text, int64(s.Bits)*delta.CostUnit)
			continue
		}
		x.add("message", text, 0)
		x.packed.Costs = x.packed.Costs[:0]
		w := bitbuf.NewWriter(x.buf)
		x.packed.EncodeRow(&w, s.Number, row, nil, nil, 0)
		fields, _ := x.costsOf(x.messages, s.Number, len(t.Columns), x.packed.Costs, delta.CostUnit)
		for i := range t.Columns {
			x.field(&t.Component, i, row, nil, fields[i])
		}
	}
}
