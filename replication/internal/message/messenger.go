// Package message has reliable and unreliable messages, and the inputs of clients.
package message

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

// A Messenger turns messages into rows and bits and back, for a server or a client. What the game hands over becomes bits at
// once, or, if it refers to entities of a server, when the tick is captured: only then is it known what the network calls them.
type Messenger struct {
	schema *schema.Schema
	mtu    int
	Directory
	Packed  *delta.Packed
	Values  []messageValue // by number; the last one is for inputs
	row     []uint32       // scratch memory, for the largest row
	rows    []uint32       // of drafts that wait for their bits
	Pending []PendingMessage
	bits    []byte // of drafts
	Writer  Writer
	Parser  messageParser
	inputs  []inputRow // scratch memory, for those of a packet
	Joined  []byte     // scratch memory, for a message from its fragments
}

// A messageValue is memory for one message of a type: its address as a pointer to that type, and plain.
type messageValue struct {
	Value   reflect.Value
	Pointer any
	Address unsafe.Pointer
}

// A PendingMessage is a message that was handed over since the last tick.
type PendingMessage struct {
	number int
	row    int // where it begins in rows
	Place  int // of its bits, once they are known
	bits   int // -1: they are not known

	// What it takes at most, and precisely so once its bits are known.
	size      int // in bytes
	fragments int // 1 if it is to go as a whole

	// To those only that see an entity.
	Viewers bool
	Entity  ecs.Entity
	ID      wire.NetID // what it was in the tick before, if known
	Known   bool
}

// Init prepares a messenger. The directory may be nil if there are no entities in messages and inputs.
func (m *Messenger) Init(s *schema.Schema, d Directory, mtu int, down bool, slots uint32) {
	m.schema, m.Directory, m.mtu = s, d, mtu
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
	m.Writer = Writer{numberBits: s.NumberBits(), down: down, buf: make([]byte, mtu)}
	m.Parser = messageParser{schema: s, packed: m.Packed, fromPeer: down, slots: slots, row: m.row}
}

// room returns the bytes that a message may take.
func (m *Messenger) room() int { return m.mtu - wire.MessageOverhead }

// Write appends a message to the drafts and returns its index. The caller takes it back with Discard if nobody is to get it.
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
			m.NameEntities(&t.Component, row) // as they are called now
		}
		m.encodeRow(d, row)
		d.size = wire.ByteSize(d.bits)
	}
	d.fragments = m.Fragments(d.size)
	if err := m.checkSize(t, d.size); err != nil {
		m.Discard()
		return 0, err
	}
	return index, nil
}

// encodeRow sets the bits of a draft.
func (m *Messenger) encodeRow(d *PendingMessage, row []uint32) {
	d.Place = len(m.bits)
	d.bits = m.appendRow(d.number, m.schema.Messages[d.number].Layout, row)
}

// measure returns how many bytes a message takes at most whose row has entities of this world where the wire has their names.
// It takes the row for memory.
func (m *Messenger) measure(t *schema.MessageType, number int, row []uint32) int {
	most := wire.ByteSize(t.Layout.Width())
	if most <= wire.MaxUnfragmented {
		return most // it makes no difference
	}
	entities := 0
	for _, i := range t.References {
		if words := row[t.Columns[i].Word:][:2]; words[0] != 0 { // Arche's zero entity has the ID 0
			clear(words) // nothing, which takes a bit
			entities++
		}
	}
	n := len(m.bits)
	bits := m.appendRow(number, t.Layout, row)
	m.bits = m.bits[:n]
	return wire.ByteSize(bits + entities*(delta.ReferenceBits-1))
}

// InputRow sets the row of an input, which is valid until the next message, and returns an error if it is too large.
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

// appendRow appends the bits of a row to those of drafts and returns how many there are.
func (m *Messenger) appendRow(number int, layout *delta.Component, row []uint32) (bits int) {
	first, most := len(m.bits), wire.ByteSize(layout.Width())
	m.bits = slices.Grow(m.bits, most)[:first+most]
	w := bitbuf.NewWriter(m.bits[first:])
	m.Packed.Costs = m.Packed.Costs[:0]
	m.Packed.EncodeRow(&w, number, row, nil, nil, 0)
	m.bits = m.bits[:first+len(w.Bytes())]
	return w.Len()
}

// Discard takes the last draft back.
func (m *Messenger) Discard() {
	d := &m.Pending[len(m.Pending)-1]
	m.rows, m.bits = m.rows[:d.row], m.bits[:d.Place]
	m.Pending = m.Pending[:len(m.Pending)-1]
}

// Encode returns the bits of a draft, the same for all who get it. It is called in Replicate, where entities that were spawned
// when the message was sent have their slots, and in replication.SendToServer.
func (m *Messenger) Encode(d *PendingMessage) (data []byte, bits int) {
	if d.bits < 0 {
		t := &m.schema.Messages[d.number]
		row := m.rows[d.row:][:t.Words]
		m.NameEntities(&t.Component, row) // as they are called in this tick
		m.encodeRow(d, row)
	}
	return m.bits[d.Place:][:wire.ByteSize(d.bits)], d.bits
}

// ForgetEntities makes drafts mean no entity any more, since the handles in them are from before a reset of the world. Who got a
// draft's entity shown is known still.
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

// Clear forgets the drafts. Memory that a rare burst took is given back.
func (m *Messenger) Clear() {
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

// Read sets a value to what a row says. Fields that are not replicated are zero.
func (m *Messenger) Read(c *schema.Component, v *messageValue, row []uint32) {
	v.Value.SetZero()
	c.Write(v.Address, row)
	m.resolve(c, v, row)
}

// open reads a message's row and sets the value of its type to it.
func (m *Messenger) open(number int, r bitbuf.Reader) {
	t := &m.schema.Messages[number]
	m.Packed.DecodeRow(&r, number, m.row[:t.Words], nil, nil, 0)
	m.Read(&t.Component, &m.Values[number], m.row[:t.Words])
}

// readInputs reads the bits of a packet of inputs.
func (m *Messenger) readInputs(rest []byte, near delta.Tick) ([]inputRow, error) {
	in := m.schema.Input
	if m.inputs == nil {
		m.inputs = makeInputRows(maxRepeated, in.Words)
	}
	r := bitbuf.NewReader(rest)
	return parseInputs(&r, m.Packed, len(m.schema.Messages), in, near, m.inputs)
}

// resolve sets the fields of a value that refer to entities to those that the row names. They are zero before.
func (m *Messenger) resolve(c *schema.Component, v *messageValue, row []uint32) {
	for _, i := range c.References {
		if words := row[c.Columns[i].Word:][:2]; words[0] != 0 {
			c.WriteEntity(v.Address, i, m.EntityOf(wire.NetID{Slot: words[0] - 1, Generation: uint16(words[1])}))
		}
	}
}
