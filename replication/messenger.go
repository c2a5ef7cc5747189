package replication

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe" // for the type of addresses; none is computed or converted here

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
)

// A messenger turns messages into rows and bits and back, for a server or a client. What the game hands over becomes bits at
// once, or, if it refers to entities of a server, when the tick is captured: only then is it known what the network calls them.
type messenger struct {
	schema *rawSchema
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
	id      NetID // what it was in the tick before, if known
	known   bool
}

// init prepares a messenger. The directory may be nil if there are no entities in messages and inputs.
func (m *messenger) init(s *rawSchema, d directory, mtu int, down bool, slots uint32) {
	m.schema, m.directory, m.mtu = s, d, mtu
	m.packed = delta.NewPacked(s.talk)
	add := func(c *component) {
		v := reflect.New(c.typ)
		m.values = append(m.values, messageValue{v.Elem(), v.Interface(), v.UnsafePointer()})
		if c.words > len(m.row) {
			m.row = make([]uint32, c.words)
		}
	}
	for i := range s.messages {
		add(&s.messages[i].component)
	}
	if s.input != nil {
		add(s.input)
	}
	m.writer = talkWriter{numberBits: s.numberBits(), down: down, buf: make([]byte, mtu)}
	m.parser = talkParser{schema: s, packed: m.packed, fromPeer: down, slots: slots, row: m.row}
}

// room returns the bytes that a message may take.
func (m *messenger) room() int { return m.mtu - messageOverhead }

// write appends a message to the drafts and returns its index. The caller takes it back with discard if nobody is to get it.
func write[T any](m *messenger, message T) (int, error) {
	number := m.schema.messageNumber(reflect.TypeFor[T]())
	t, v := &m.schema.messages[number], &m.values[number]
	*v.pointer.(*T) = message
	if err := t.checkTexts(v.address); err != nil {
		return 0, err
	}
	m.drafts = append(m.drafts, draft{number: number, row: len(m.rows), place: len(m.bits), bits: -1})
	index := len(m.drafts) - 1
	d, row := &m.drafts[index], m.row[:t.words]
	t.readColumn(row, v.address, 1)
	if t.refers() && m.writer.down {
		m.rows = append(m.rows, row...)
		d.size = m.measure(t, number, row)
	} else {
		if t.refers() {
			m.nameEntities(&t.component, row) // as they are called now
		}
		m.encodeRow(d, row)
		d.size = byteSize(d.bits)
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
func (m *messenger) measure(t *messageType, number int, row []uint32) int {
	most := byteSize(t.layout.Width())
	if most <= wholeBytes {
		return most // it makes no difference
	}
	for _, i := range t.references {
		clear(row[t.columns[i].word:][:2]) // nothing, which takes a bit
	}
	n := len(m.bits)
	bits := m.appendRow(number, row)
	m.bits = m.bits[:n]
	return byteSize(bits + len(t.references)*(delta.ReferenceBits-1))
}

// appendRow appends the bits of a row to those of drafts and returns how many there are.
func (m *messenger) appendRow(number int, row []uint32) (bits int) {
	first, most := len(m.bits), byteSize(m.schema.messages[number].layout.Width())
	m.bits = slices.Grow(m.bits, most)[:first+most]
	w := bitbuf.NewWriter(m.bits[first:])
	m.packed.Costs = m.packed.Costs[:0]
	m.packed.EncodeRow(&w, number, row, nil, nil, 0)
	m.bits = m.bits[:first+len(w.Bytes())]
	return w.Len()
}

// checkTexts returns an error if a text of the message at p is longer than its max: in a component it would be cut and
// counted, but who sends a message is there to be told.
func (c *component) checkTexts(p unsafe.Pointer) error {
	if err := c.fits(p); err != nil {
		return fmt.Errorf("%w: %s", ErrMessageTooLarge, strings.TrimPrefix(err.Error(), "replication: "))
	}
	return nil
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
		t := &m.schema.messages[d.number]
		row := m.rows[d.row:][:t.words]
		m.nameEntities(&t.component, row) // as they are called in this tick
		m.encodeRow(d, row)
	}
	return m.bits[d.place:][:byteSize(d.bits)], d.bits
}

// forgetEntities makes drafts mean no entity any more, since the handles in them are from before a reset of the world. Who got a
// draft's entity shown is known still.
func (m *messenger) forgetEntities() {
	for i := range m.drafts {
		d := &m.drafts[i]
		d.entity = ecs.Entity{}
		t := &m.schema.messages[d.number]
		if d.bits < 0 && t.refers() {
			for _, k := range t.references {
				clear(m.rows[d.row+t.columns[k].word:][:2])
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
func (m *messenger) read(c *component, v *messageValue, row []uint32) {
	v.value.SetZero()
	c.write(v.address, row)
	m.resolve(c, v, row)
}

// open reads a message's row and sets the value of its type to it.
func (m *messenger) open(number int, r bitbuf.Reader) {
	t := &m.schema.messages[number]
	m.packed.DecodeRow(&r, number, m.row[:t.words], nil, nil, 0)
	m.read(&t.component, &m.values[number], m.row[:t.words])
}
