package main

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

// A layout is an order of the bytes that zstd gets for a tick: what changed since the acknowledged
// state, in the components that changed.
type layout struct {
	name    string
	columns bool // by column; otherwise by entity
	deltas  bool // differences from the acknowledged codes; otherwise the codes
}

// layouts are tried for each recording, because none is the best for all.
var layouts = []layout{
	{"rows of codes", false, false},
	{"rows of differences", false, true},
	{"columns of codes", true, false},
	{"columns of differences", true, true},
}

// A transcript writes numbers, or reads them.
type transcript struct {
	writes bool
	b      []byte
	bad    bool
}

// number writes v and returns it, or returns what it reads.
func (s *transcript) number(v uint64) uint64 {
	if s.writes {
		s.b = binary.AppendUvarint(s.b, v)
		return v
	}
	v, n := binary.Uvarint(s.b)
	if n <= 0 {
		s.bad, s.b = true, nil
		return 0
	}
	s.b = s.b[n:]
	return v
}

// flag is number for a bool.
func (s *transcript) flag(v bool) bool {
	n := uint64(0)
	if v {
		n = 1
	}
	return s.number(n) == 1
}

// code writes or reads changes in a layout.
func (l *layout) code(s *transcript, r *recording, base state, changes []change) []change {
	n := s.number(uint64(len(changes)))
	if n > maxSlots {
		s.bad, n = true, 0
	}
	if !s.writes {
		changes = make([]change, n)
	}
	present := make([]bool, int(n)*len(r.components)) // which components are sent
	parts := []func(i int){func(i int) { l.head(s, r, base, changes, i) }}
	for k := range r.components {
		parts = append(parts, func(i int) {
			c := &changes[i]
			if s.bad || c.now == nil {
				return
			}
			sent := &present[i*len(r.components)+k]
			switch c.kind {
			case created:
				c.now.has[k] = s.flag(c.now.has[k])
				*sent = c.now.has[k]
			case updated:
				*sent = c.now.has[k] && s.flag(s.writes && c.differs(r.components[k]))
			}
		})
	}
	for k, columns := range r.components {
		for column := columns.from; column < columns.to; column++ {
			parts = append(parts, func(i int) {
				if !s.bad && present[i*len(r.components)+k] {
					l.value(s, &changes[i], column)
				}
			})
		}
	}
	if l.columns {
		for _, part := range parts {
			for i := range changes {
				part(i)
			}
		}
		return changes
	}
	for i := range changes {
		for _, part := range parts {
			part(i)
		}
	}
	return changes
}

// head codes slot and kind of a change.
func (l *layout) head(s *transcript, r *recording, base state, changes []change, i int) {
	next := 0
	if i > 0 {
		next = changes[i-1].slot + 1
	}
	head := s.number(uint64(changes[i].slot-next)<<2 | uint64(changes[i].kind))
	if s.writes || s.bad {
		return
	}
	slot := uint64(next) + head>>2
	ok := slot <= maxSlots
	if ok {
		changes[i], ok = r.begin(base, int(slot), changeKind(head&3))
	}
	s.bad = s.bad || !ok
}

// value codes a code of a change.
func (l *layout) value(s *transcript, c *change, column int) {
	code := &c.now.codes[column]
	if !l.deltas || c.kind == created {
		*code = s.number(*code)
		return
	}
	was := c.base.codes[column]
	*code = was + uint64(unzigzag(s.number(zigzag(int64(*code-was)))))
}

// dictionarySize is the size of the dictionary: the latest acknowledged ticks.
const dictionarySize = 32 << 10

// A dictionary is what was sent in earlier ticks, as zstd got it.
type dictionary struct {
	sent [][]byte // by tick
}

// upTo returns the bytes of the ticks up to a number of them, the latest at the end.
func (d *dictionary) upTo(ticks int) (b []byte) {
	ticks = max(ticks, 0)
	from, size := ticks, 0
	for from > 0 && size < dictionarySize {
		from--
		size += len(d.sent[from])
	}
	for _, sent := range d.sent[from:ticks] {
		b = append(b, sent...)
	}
	return b
}

// magic begins each frame of zstd. It need not be sent.
var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// A compressor compresses with a dictionary of acknowledged ticks.
type compressor struct{ encoder *zstd.Encoder }

func newCompressor(level zstd.EncoderLevel) *compressor {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
	must(err)
	return &compressor{e}
}

// compress returns a frame without its first bytes.
func (c *compressor) compress(plain, dict []byte) []byte {
	option := zstd.WithEncoderDictDelete()
	if len(dict) >= 8 {
		option = zstd.WithEncoderDictRaw(0, dict)
	}
	must(c.encoder.ResetWithOptions(nil, option))
	return c.encoder.EncodeAll(plain, nil)[len(magic):]
}

// decompress is the receiver's side of compress.
func decompress(data, dict []byte) ([]byte, error) {
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(1 << 26)}
	if len(dict) >= 8 {
		options = append(options, zstd.WithDecoderDictRaw(0, dict))
	}
	d, err := zstd.NewReader(nil, options...)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(append(magic[:len(magic):len(magic)], data...), nil)
}
