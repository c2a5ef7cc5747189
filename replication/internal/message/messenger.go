// Package message carries messages in both directions and inputs to the server, beside the state of
// the world. It owns the channels of reliable messages, the unreliable messages of a tick, and the
// inputs of recent ticks. Values of registered types go in; once per tick packets come out. On the
// other end, packets go in and handlers are called with the values in order. The face calls it for
// each peer and each client.
package message

// This file turns messages into bits and back.

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Messenger turns messages into rows and bits and back, for a server or a client. A message becomes
// bits when the game sends it, or, if it refers to entities of a server, when the tick is captured:
// only then all entities have NetIDs.
type Messenger struct {
	schema *schema.Schema
	Directory
	Packed  *delta.Packed
	Values  []messageValue // by number; the last one is the input
	row     []uint32       // scratch memory, for the largest row
	rows    []uint32       // of pending messages without bits
	Pending []PendingMessage
	bits    []byte // of pending messages
	Writer  Writer
	Parser  messageParser
	inputs  []inputRow // scratch memory, for the inputs of a packet
	Joined  []byte     // scratch memory, for the fragments of a message
}

// messageValue has memory for one message of a type, as a value, a typed pointer and a plain one.
type messageValue struct {
	Value   reflect.Value
	Pointer any
	Address unsafe.Pointer
}

// PendingMessage is a message that the game has sent since the last tick.
type PendingMessage struct {
	number int
	row    int // start in Messenger.rows
	Place  int // start of its bits, if it has any
	bits   int // -1 if it has none yet

	// Upper bounds, exact once the message has bits.
	size int // in bytes

	// The message goes only to peers that see an entity.
	Viewers bool
	Entity  ecs.Entity
	ID      wire.NetID // of the entity in the tick before, if Known
	Known   bool
}

// Init prepares a messenger. The directory may be nil if messages and inputs have no entities.
func (m *Messenger) Init(s *schema.Schema, d Directory, down bool, slots uint32) {
	m.schema, m.Directory = s, d
	m.Packed = delta.NewPacked(s.MessageLayout)
	add := func(c *schema.Component) {
		v := reflect.New(c.Typ)
		m.Values = append(m.Values, messageValue{v.Elem(), v.Interface(), v.UnsafePointer()})
		if c.Words > len(m.row) {
			m.row = make([]uint32, c.Words)
		}
	}
	for i := range s.Messages {
		add(&s.Messages[i].Component)
	}
	if s.Input != nil {
		add(s.Input)
	}
	m.Writer = Writer{numberBits: s.NumberBits(), down: down}
	m.Parser = messageParser{schema: s, packed: m.Packed, fromPeer: down, slots: slots, row: m.row}
}

// Write appends a pending message and returns its index. The caller removes it with Discard if nobody
// is to get it.
func Write[T any](m *Messenger, message T) (int, error) {
	number := m.schema.MessageNumber(reflect.TypeFor[T]())
	t, v := &m.schema.Messages[number], &m.Values[number]
	*v.Pointer.(*T) = message
	if err := t.CheckTexts(v.Address); err != nil {
		return 0, err
	}
	m.Pending = append(m.Pending, PendingMessage{number: number, row: len(m.rows), Place: len(m.bits), bits: -1})
	index := len(m.Pending) - 1
	d, row := &m.Pending[index], m.row[:t.Words]
	t.ReadColumn(row, v.Address, 1)
	if t.Refers() && m.Writer.down {
		m.rows = append(m.rows, row...)
		d.size = m.measure(t, number, row)
	} else {
		if t.Refers() {
			m.NameEntities(&t.Component, row) // by their present NetIDs
		}
		m.encodeRow(d, row)
		d.size = wire.ByteSize(d.bits)
	}
	return index, nil
}

// encodeRow sets the bits of a pending message.
func (m *Messenger) encodeRow(d *PendingMessage, row []uint32) {
	d.Place = len(m.bits)
	d.bits = m.appendRow(d.number, m.schema.Messages[d.number].Layout, row)
}

// measure returns the largest size in bytes of a message whose row still has entities of this world
// instead of NetIDs. It overwrites these.
func (m *Messenger) measure(t *schema.MessageType, number int, row []uint32) int {
	most := wire.ByteSize(t.Layout.Width())
	if most <= wire.MaxUnfragmented {
		return most // it fits into any packet
	}
	entities := 0
	for _, i := range t.References {
		if words := row[t.Columns[i].Word:][:2]; words[0] != 0 { // Arche's zero entity has the ID 0
			clear(words) // nothing, which takes one bit
			entities++
		}
	}
	n := len(m.bits)
	bits := m.appendRow(number, t.Layout, row)
	m.bits = m.bits[:n]
	return wire.ByteSize(bits + entities*(delta.ReferenceBits-1))
}

// InputRow returns the row of an input, or an error if the input is too large. The row is valid until
// the next message.
func (m *Messenger) InputRow(v *messageValue) ([]uint32, error) {
	in, number := m.schema.Input, len(m.schema.Messages)
	if err := in.CheckTexts(v.Address); err != nil {
		return nil, err
	}
	row := m.row[:in.Words]
	in.ReadColumn(row, v.Address, 1)
	if in.Refers() {
		m.NameEntities(in, row)
	}
	if in.Layout.Width() <= schema.MaxInputBits {
		return row, nil
	}
	n := len(m.bits)
	bits := m.appendRow(number, in.Layout, row)
	m.bits = m.bits[:n]
	if bits > schema.MaxInputBits {
		return nil, fmt.Errorf("%w: %s takes %d bytes, and an input %d at most: send what is rare in a message",
			schema.ErrMessageTooLarge, in.Name, wire.ByteSize(bits), schema.MaxInputBits/8)
	}
	return row, nil
}

// appendRow appends the bits of a row to those of pending messages and returns their number.
func (m *Messenger) appendRow(number int, layout *delta.Component, row []uint32) (bits int) {
	first, most := len(m.bits), wire.ByteSize(layout.Width())
	m.bits = slices.Grow(m.bits, most)[:first+most]
	w := bitbuf.NewWriter(m.bits[first:])
	m.Packed.Costs = m.Packed.Costs[:0]
	m.Packed.EncodeRow(&w, number, row, nil, nil, 0)
	m.bits = m.bits[:first+len(w.Bytes())]
	return w.Len()
}

// Discard removes the last pending message.
func (m *Messenger) Discard() {
	d := &m.Pending[len(m.Pending)-1]
	m.rows, m.bits = m.rows[:d.row], m.bits[:d.Place]
	m.Pending = m.Pending[:len(m.Pending)-1]
}

// Encode returns the bits of a pending message, the same for all receivers. Replicate calls it after
// the entities that had spawned when the message was sent got their slots; so does
// replication.SendToServer.
func (m *Messenger) Encode(d *PendingMessage) (data []byte, bits int) {
	if d.bits < 0 {
		t := &m.schema.Messages[d.number]
		row := m.rows[d.row:][:t.Words]
		m.NameEntities(&t.Component, row) // by their NetIDs in this tick
		m.encodeRow(d, row)
	}
	return m.bits[d.Place:][:wire.ByteSize(d.bits)], d.bits
}

// ForgetEntities removes the entities from pending messages, since their handles are from before a
// reset of the world. The NetIDs that select viewers remain.
func (m *Messenger) ForgetEntities() {
	for i := range m.Pending {
		d := &m.Pending[i]
		d.Entity = ecs.Entity{}
		t := &m.schema.Messages[d.number]
		if d.bits < 0 && t.Refers() {
			for _, k := range t.References {
				clear(m.rows[d.row+t.Columns[k].Word:][:2])
			}
		}
	}
}

// clear forgets the pending messages. It gives back the memory of a rare burst.
func (m *Messenger) clear() {
	const keep = 1 << 14
	m.Pending, m.rows, m.bits = m.Pending[:0], m.rows[:0], m.bits[:0]
	if cap(m.rows) > keep {
		m.rows = nil
	}
	if cap(m.bits) > 4*keep {
		m.bits = nil
	}
	if cap(m.Pending) > keep {
		m.Pending = nil
	}
}

// Read sets a value from a row. Fields that are not replicated become zero.
func (m *Messenger) Read(c *schema.Component, v *messageValue, row []uint32) {
	v.Value.SetZero()
	c.Write(v.Address, row)
	m.resolve(c, v, row)
}

// decode sets the value of a message's type from the bits of its row.
func (m *Messenger) decode(number int, r bitbuf.Reader) {
	t := &m.schema.Messages[number]
	m.Packed.DecodeRow(&r, number, m.row[:t.Words], nil, nil, 0)
	m.Read(&t.Component, &m.Values[number], m.row[:t.Words])
}

// RowOf returns the row of a message of the packet that was parsed last, or nil if that has only a part of it. The row
// is valid until the next message.
func (m *Messenger) RowOf(s *StagedMessage) []uint32 {
	if s.Fragment != wire.Unfragmented {
		return nil
	}
	r, row := s.row, m.row[:m.schema.Messages[s.Number].Words]
	m.Packed.DecodeRow(&r, s.Number, row, nil, nil, 0)
	return row
}

// readInputs reads the bits of a packet of inputs. near is a tick near the inputs' ticks. had are the
// inputs that the server has; it is nil if the packet has no stamps.
func (m *Messenger) readInputs(rest []byte, near delta.Tick, had *inputRing) ([]inputRow, error) {
	in := m.schema.Input
	if m.inputs == nil {
		m.inputs = makeInputRows(maxRepeated, in.Words)
	}
	r := bitbuf.NewReader(rest)
	return parseInputs(&r, m.Packed, len(m.schema.Messages), in, near, m.inputs, had)
}

// resolve sets the references of a value, which are zero before, to the entities that the row names.
func (m *Messenger) resolve(c *schema.Component, v *messageValue, row []uint32) {
	for _, i := range c.References {
		if words := row[c.Columns[i].Word:][:2]; words[0] != 0 {
			c.WriteEntity(v.Address, i, m.EntityOf(wire.NetID{Slot: words[0] - 1, Generation: uint16(words[1])}))
		}
	}
}
