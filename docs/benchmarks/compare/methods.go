package main

import (
	"bytes"
	"errors"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protowire"
)

// method is a way to send a state. base is the state at the newest acknowledged tick: all that sender and
// receiver have in common.
type method struct {
	name   string
	encode func(r *recording, base, now state) []byte
	decode func(r *recording, base state, data []byte) (state, error)
	always bool // something is sent even if nothing changed
}

var errData = errors.New("malformed data")

// methods are those that need nothing but the baseline.
var methods = []method{
	{"raw, all entities", encodeRaw, decodeRaw, true},
	{"msgpack", encodeMsgpack, decodeMsgpack, false},
	{"protobuf", encodeProtobuf, decodeProtobuf, false},
	{"mask, fixed width", encodeMasks, decodeMasks, false},
}

const (
	slotOrder = 2 // of the exp-Golomb code of slot gaps
	kindBits  = 2
)

// encodeRaw writes all rows with all codes at fixed width.
func encodeRaw(r *recording, _, now state) []byte {
	w := bitbuf.NewWriter(make([]byte, 16+len(now)*(len(r.components)+64*len(r.widths)+8)/8))
	w.WriteExpGolomb(uint64(len(now)), 8)
	for _, e := range now {
		if w.WriteBool(e != nil); e != nil {
			r.writeSet(&w, e)
			r.writeCodes(&w, e)
		}
	}
	return w.Bytes()
}

func decodeRaw(r *recording, _ state, data []byte) (state, error) {
	in := bitbuf.NewReader(data)
	n := in.ReadExpGolomb(8)
	if n > uint64(8*len(data)) {
		return nil, errData
	}
	s := make(state, n)
	for slot := range s {
		if in.ReadBool() {
			c, _ := r.begin(nil, slot, created)
			r.readSet(&in, c.now)
			r.readCodes(&in, c.now)
			s[slot] = c.now
		}
	}
	return s, in.Finish()
}

func (r *recording) writeSet(w *bitbuf.Writer, e *row) {
	for _, has := range e.has {
		w.WriteBool(has)
	}
}

func (r *recording) readSet(in *bitbuf.Reader, e *row) {
	for k := range e.has {
		e.has[k] = in.ReadBool()
	}
}

// writeCodes writes all codes of the components that the entity has.
func (r *recording) writeCodes(w *bitbuf.Writer, e *row) {
	for k, c := range r.components {
		for i := c.from; i < c.to && e.has[k]; i++ {
			w.WriteBits(e.codes[i], uint(r.widths[i]))
		}
	}
}

func (r *recording) readCodes(in *bitbuf.Reader, e *row) {
	for k, c := range r.components {
		for i := c.from; i < c.to && e.has[k]; i++ {
			e.codes[i] = in.ReadBits(uint(r.widths[i]))
		}
	}
}

// encodeMasks writes what changed: a bit for each component, a bit for each code of a changed one, and the
// changed codes at fixed width.
func encodeMasks(r *recording, base, now state) []byte {
	changes := changesOf(base, now)
	w := bitbuf.NewWriter(make([]byte, 16+len(changes)*(len(r.components)+65*len(r.widths)+80)/8))
	next := 0
	for i := range changes {
		c := &changes[i]
		w.WriteBool(true)
		w.WriteExpGolomb(uint64(c.slot-next), slotOrder)
		next = c.slot + 1
		w.WriteBits(uint64(c.kind), kindBits)
		switch c.kind {
		case created:
			r.writeSet(&w, c.now)
			r.writeCodes(&w, c.now)
		case updated:
			r.writeMasks(&w, c)
		}
	}
	w.WriteBool(false)
	return w.Bytes()
}

func (r *recording) writeMasks(w *bitbuf.Writer, c *change) {
	for k, columns := range r.components {
		if !c.now.has[k] {
			continue
		}
		changed := c.differs(columns)
		w.WriteBool(changed)
		for i := columns.from; i < columns.to && changed; i++ {
			if w.WriteBool(c.now.codes[i] != c.base.codes[i]); c.now.codes[i] != c.base.codes[i] {
				w.WriteBits(c.now.codes[i], uint(r.widths[i]))
			}
		}
	}
}

func decodeMasks(r *recording, base state, data []byte) (state, error) {
	in := bitbuf.NewReader(data)
	var changes []change
	for next := uint64(0); in.ReadBool(); {
		next += in.ReadExpGolomb(slotOrder)
		if in.Err() != nil || next > maxSlots {
			return nil, errData
		}
		c, ok := r.begin(base, int(next), changeKind(in.ReadBits(kindBits)))
		if next++; !ok {
			return nil, errData
		}
		switch c.kind {
		case created:
			r.readSet(&in, c.now)
			r.readCodes(&in, c.now)
		case updated:
			for k, columns := range r.components {
				changed := c.now.has[k] && in.ReadBool()
				for i := columns.from; i < columns.to && changed; i++ {
					if in.ReadBool() {
						c.now.codes[i] = in.ReadBits(uint(r.widths[i]))
					}
				}
			}
		}
		changes = append(changes, c)
	}
	return apply(base, changes), in.Finish()
}

const maxSlots = 1 << 20

// encodeMsgpack writes an array of changed entities: slot, kind, and a map of the changed components to
// arrays of their codes.
func encodeMsgpack(r *recording, base, now state) []byte {
	var b bytes.Buffer
	w := msgpack.NewEncoder(&b)
	w.UseCompactInts(true)
	changes := changesOf(base, now)
	must(w.EncodeArrayLen(len(changes)))
	for i := range changes {
		c := &changes[i]
		must(w.EncodeArrayLen(3))
		must(w.EncodeUint(uint64(c.slot)))
		must(w.EncodeUint(uint64(c.kind)))
		sent := r.sent(c)
		must(w.EncodeMapLen(len(sent)))
		for _, k := range sent {
			must(w.EncodeUint(uint64(k)))
			columns := r.components[k]
			must(w.EncodeArrayLen(columns.to - columns.from))
			for _, code := range c.now.codes[columns.from:columns.to] {
				must(w.EncodeUint(code))
			}
		}
	}
	return b.Bytes()
}

// must is for writers to memory, which do not fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// sent returns the components of a change that differ from the baseline.
func (r *recording) sent(c *change) (sent []int) {
	for k, columns := range r.components {
		if c.kind == created && c.now.has[k] || c.kind == updated && c.now.has[k] && c.differs(columns) {
			sent = append(sent, k)
		}
	}
	return sent
}

func decodeMsgpack(r *recording, base state, data []byte) (state, error) {
	in := msgpack.NewDecoder(bytes.NewReader(data))
	n, err := in.DecodeArrayLen()
	var changes []change
	number := func(limit int) (v int) {
		if err == nil {
			v, err = in.DecodeInt()
		}
		if err == nil && (v < 0 || v >= limit) {
			err = errData
		}
		return v
	}
	length := func(of func() (int, error), want int) (v int) {
		if err == nil {
			v, err = of()
		}
		if err == nil && want >= 0 && v != want {
			err = errData
		}
		return v
	}
	for i := 0; i < n && err == nil; i++ {
		length(in.DecodeArrayLen, 3)
		slot, kind := number(maxSlots), number(int(removed)+1)
		c, ok := r.begin(base, slot, changeKind(kind))
		if !ok && err == nil {
			err = errData
		}
		m := length(in.DecodeMapLen, -1)
		for j := 0; j < m && err == nil; j++ {
			k := number(len(r.components))
			if err == nil && c.now == nil {
				err = errData
			}
			if err != nil {
				break
			}
			columns := r.components[k]
			length(in.DecodeArrayLen, columns.to-columns.from)
			if c.kind == created {
				c.now.has[k] = true
			}
			for x := columns.from; x < columns.to && err == nil; x++ {
				c.now.codes[x], err = in.DecodeUint64()
			}
		}
		changes = append(changes, c)
	}
	return apply(base, changes), err
}

// The numbers of the fields of an entity in protobuf, as if generated from
//
//	message State { repeated Entity entity = 1; }
//	message Entity { uint32 slot = 1; Kind kind = 2; Position position = 3; Rotation rotation = 4; ... }
//	message Position { uint32 x = 1; uint32 y = 2; ... }
const (
	protoEntity    = 1
	protoSlot      = 1
	protoKind      = 2
	protoComponent = 3
)

// encodeProtobuf writes changed entities with their changed components. Zeros are left out, as the format
// has it.
func encodeProtobuf(r *recording, base, now state) (b []byte) {
	changes := changesOf(base, now)
	for i := range changes {
		c := &changes[i]
		var e []byte
		field := func(b []byte, number protowire.Number, v uint64) []byte {
			if v == 0 {
				return b
			}
			return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
		}
		e = field(e, protoSlot, uint64(c.slot))
		e = field(e, protoKind, uint64(c.kind))
		for _, k := range r.sent(c) {
			columns := r.components[k]
			var m []byte
			for i := columns.from; i < columns.to; i++ {
				m = field(m, protowire.Number(i-columns.from+1), c.now.codes[i])
			}
			e = protowire.AppendTag(e, protowire.Number(protoComponent+k), protowire.BytesType)
			e = protowire.AppendBytes(e, m)
		}
		b = protowire.AppendTag(b, protoEntity, protowire.BytesType)
		b = protowire.AppendBytes(b, e)
	}
	return b
}

func decodeProtobuf(r *recording, base state, data []byte) (state, error) {
	var changes []change
	err := fields(data, func(number int, _ uint64, e []byte) bool {
		if number != protoEntity {
			return false
		}
		head := [2]uint64{}
		if fields(e, func(number int, v uint64, _ []byte) bool {
			if number < protoComponent {
				head[number-1] = v
			}
			return true
		}) != nil || head[0] > maxSlots || head[1] > uint64(removed) {
			return false
		}
		c, ok := r.begin(base, int(head[0]), changeKind(head[1]))
		changes = append(changes, c)
		return ok && fields(e, func(number int, _ uint64, m []byte) bool {
			k := number - protoComponent
			if k < 0 {
				return true
			}
			if k >= len(r.components) || c.now == nil {
				return false
			}
			columns := r.components[k]
			if c.kind == created {
				c.now.has[k] = true
			}
			clear(c.now.codes[columns.from:columns.to])
			return fields(m, func(number int, v uint64, _ []byte) bool {
				i := columns.from + number - 1
				if i >= columns.to {
					return false
				}
				c.now.codes[i] = v
				return true
			}) == nil
		}) == nil
	})
	return apply(base, changes), err
}

// fields calls each for the fields of a message, until it returns false.
func fields(data []byte, each func(number int, v uint64, b []byte) bool) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errData
		}
		data = data[n:]
		var v uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(data)
		default:
			return errData
		}
		if n < 0 || !each(int(number), v, b) {
			return errData
		}
		data = data[n:]
	}
	return nil
}

// byteWidth returns the bytes that hold a number of bits.
func byteWidth(width uint8) int { return (int(width) + 7) / 8 }

// zigzag maps a difference to an unsigned number.
func zigzag(d int64) uint64 { return uint64(d<<1 ^ d>>63) }

func unzigzag(z uint64) int64 { return int64(z>>1) ^ -int64(z&1) }

func bytesOf(v uint64) int { return (bits.Len64(v) + 7) / 8 }
