package replication

import (
	"reflect"
	"slices"
	"unsafe" // for the type of addresses; none is computed or converted here

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A messenger turns messages into rows and bits and back, for a server or a client. What the game hands over becomes bits at
// once, or, if it refers to entities of a server, when the tick is captured: only then is it known what the network calls them.
type messenger struct {
	schema *schema.Schema
	mtu    int
	directory
	packed *delta.Packed
	values []messageValue // by number; the last one is for inputs
	row    []uint32       // scratch memory, for the largest row
	rows   []uint32       // of drafts that wait for their bits
	drafts []draft
	bits   []byte // of drafts
	writer talkWriter
	parser talkParser
	inputs []inputRow // scratch memory, for those of a packet
	joined []byte     // scratch memory, for a message from its fragments
}

// A messageValue is memory for one message of a type: its address as a pointer to that type, and plain.
type messageValue struct {
	value   reflect.Value
	pointer any
	address unsafe.Pointer
}

// A draft is a message that was handed over since the last tick.
type draft struct {
	number int
	row    int // where it begins in rows
	place  int // of its bits, once they are known
	bits   int // -1: they are not known

	// What it takes at most, and precisely so once its bits are known.
	size      int // in bytes
	fragments int // 1 if it is to go as a whole

	// To those only that see an entity.
	viewers bool
	entity  ecs.Entity
	id      netID // what it was in the tick before, if known
	known   bool
}

// init prepares a messenger. The directory may be nil if there are no entities in messages and inputs.
func (m *messenger) init(s *schema.Schema, d directory, mtu int, down bool, slots uint32) {
	m.schema, m.directory, m.mtu = s, d, mtu
	m.packed = delta.NewPacked(s.Talk)
	add := func(c *schema.Component) {
		v := reflect.New(c.Typ)
		m.values = append(m.values, messageValue{v.Elem(), v.Interface(), v.UnsafePointer()})
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
	m.writer = talkWriter{numberBits: s.NumberBits(), down: down, buf: make([]byte, mtu)}
	m.parser = talkParser{schema: s, packed: m.packed, fromPeer: down, slots: slots, row: m.row}
}

// room returns the bytes that a message may take.
func (m *messenger) room() int { return m.mtu - wire.MessageOverhead }

// write appends a message to the drafts and returns its index. The caller takes it back with discard if nobody is to get it.
func write[T any](m *messenger, message T) (int, error) {
	number := m.schema.MessageNumber(reflect.TypeFor[T]())
	t, v := &m.schema.Messages[number], &m.values[number]
	*v.pointer.(*T) = message
	if err := t.CheckTexts(v.address); err != nil {
		return 0, err
	}
	m.drafts = append(m.drafts, draft{number: number, row: len(m.rows), place: len(m.bits), bits: -1})
	index := len(m.drafts) - 1
	d, row := &m.drafts[index], m.row[:t.Words]
	t.ReadColumn(row, v.address, 1)
	if t.Refers() && m.writer.down {
		m.rows = append(m.rows, row...)
		d.size = m.measure(t, number, row)
	} else {
		if t.Refers() {
			m.nameEntities(&t.Component, row) // as they are called now
		}
		m.encodeRow(d, row)
		d.size = wire.ByteSize(d.bits)
	}
	d.fragments = m.fragments(d.size)
	if err := m.checkSize(t, d.size); err != nil {
		m.discard()
		return 0, err
	}
	return index, nil
}

// encodeRow sets the bits of a draft.
func (m *messenger) encodeRow(d *draft, row []uint32) {
	d.place = len(m.bits)
	d.bits = m.appendRow(d.number, row)
}

// measure returns how many bytes a message takes at most whose row has entities of this world where the wire has their names.
// It takes the row for memory.
func (m *messenger) measure(t *schema.MessageType, number int, row []uint32) int {
	most := wire.ByteSize(t.Layout.Width())
	if most <= wire.MaxWholeMessage {
		return most // it makes no difference
	}
	for _, i := range t.References {
		clear(row[t.Columns[i].Word:][:2]) // nothing, which takes a bit
	}
	n := len(m.bits)
	bits := m.appendRow(number, row)
	m.bits = m.bits[:n]
	return wire.ByteSize(bits + len(t.References)*(delta.ReferenceBits-1))
}

// appendRow appends the bits of a row to those of drafts and returns how many there are.
func (m *messenger) appendRow(number int, row []uint32) (bits int) {
	first, most := len(m.bits), wire.ByteSize(m.schema.Messages[number].Layout.Width())
	m.bits = slices.Grow(m.bits, most)[:first+most]
	w := bitbuf.NewWriter(m.bits[first:])
	m.packed.Costs = m.packed.Costs[:0]
	m.packed.EncodeRow(&w, number, row, nil, nil, 0)
	m.bits = m.bits[:first+len(w.Bytes())]
	return w.Len()
}

// discard takes the last draft back.
func (m *messenger) discard() {
	d := &m.drafts[len(m.drafts)-1]
	m.rows, m.bits = m.rows[:d.row], m.bits[:d.place]
	m.drafts = m.drafts[:len(m.drafts)-1]
}

// encode returns the bits of a draft, the same for all who get it. It is called in Replicate, where entities that were spawned
// when the message was sent have their slots, and in [SendToServer].
func (m *messenger) encode(d *draft) (data []byte, bits int) {
	if d.bits < 0 {
		t := &m.schema.Messages[d.number]
		row := m.rows[d.row:][:t.Words]
		m.nameEntities(&t.Component, row) // as they are called in this tick
		m.encodeRow(d, row)
	}
	return m.bits[d.place:][:wire.ByteSize(d.bits)], d.bits
}

// forgetEntities makes drafts mean no entity any more, since the handles in them are from before a reset of the world. Who got a
// draft's entity shown is known still.
func (m *messenger) forgetEntities() {
	for i := range m.drafts {
		d := &m.drafts[i]
		d.entity = ecs.Entity{}
		t := &m.schema.Messages[d.number]
		if d.bits < 0 && t.Refers() {
			for _, k := range t.References {
				clear(m.rows[d.row+t.Columns[k].Word:][:2])
			}
		}
	}
}

// clear forgets the drafts. Memory that a rare burst took is given back.
func (m *messenger) clear() {
	const keep = 1 << 14
	m.drafts, m.rows, m.bits = m.drafts[:0], m.rows[:0], m.bits[:0]
	if cap(m.rows) > keep {
		m.rows = nil
	}
	if cap(m.bits) > 4*keep {
		m.bits = nil
	}
	if cap(m.drafts) > keep {
		m.drafts = nil
	}
}

// read sets a value to what a row says. Fields that are not replicated are zero.
func (m *messenger) read(c *schema.Component, v *messageValue, row []uint32) {
	v.value.SetZero()
	c.Write(v.address, row)
	m.resolve(c, v, row)
}

// open reads a message's row and sets the value of its type to it.
func (m *messenger) open(number int, r bitbuf.Reader) {
	t := &m.schema.Messages[number]
	m.packed.DecodeRow(&r, number, m.row[:t.Words], nil, nil, 0)
	m.read(&t.Component, &m.values[number], m.row[:t.Words])
}
