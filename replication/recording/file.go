package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
)

// A file is a recording that is read.
type file struct {
	r      io.ReaderAt
	size   int64
	memory int64 // the most that is read at once
	head   header
	first  int64 // where the segments begin
	end    int64 // where they end
	index
	damage error // why not all of it is played
}

// open checks that the schema is that of the file, and finds the segments.
func (f *file) open(schema *replication.Schema) error {
	if err := f.readHeader(); err != nil {
		return err
	}
	if d := session.CompareSchemas(f.head.schema, schema.Text()); d != nil {
		return &otherSchema{(*replication.SchemaError)(d)}
	}
	f.find()
	return nil
}

// otherSchema is a [replication.SchemaError] in the words of a recording.
type otherSchema struct{ *replication.SchemaError }

func (e *otherSchema) Error() string {
	return fmt.Sprintf("recording: the file was recorded with another schema: line %d: the recording has %q, this "+
		"program %q; register what it was recorded with, which ReadInfo returns", e.Line, e.Server, e.Client)
}

func (e *otherSchema) Unwrap() error { return e.SchemaError }

// readHeader reads the header.
func (f *file) readHeader() error {
	start, err := f.read(0, min(f.size, int64(preamble)))
	if err != nil {
		return err
	}
	switch {
	case len(start) < preamble && strings.HasPrefix(magic, string(start[:min(len(start), len(magic))])):
		return fmt.Errorf("recording: the file has %d bytes: nothing was recorded", f.size)
	case !strings.HasPrefix(string(start), magic):
		return errors.New("recording: the file is no recording: it begins with other bytes than " + magic)
	case start[preamble-1] != version:
		return fmt.Errorf("recording: the file's format is version %d, and this release reads version %d: "+
			"play it with the release that recorded it", start[preamble-1], version)
	}
	kind, body, size, _, err := f.record(int64(preamble), f.size, 0)
	if err == nil && kind != kindHeader {
		err = errContent
	}
	if err == nil {
		err = f.head.parse(body)
	}
	if err != nil {
		return fmt.Errorf("recording: the file's header can't be read: %w", err)
	}
	f.first, f.end = int64(preamble)+size, f.size
	return nil
}

// find finds the segments.
func (f *file) find() {
	if !f.readIndex() {
		f.index = index{}
		f.scan()
	}
}

// read reads some bytes.
func (f *file) read(from, n int64) ([]byte, error) {
	if n > f.memory {
		return nil, fmt.Errorf("recording: %d bytes at offset %d of the file belong together, which is more than the "+
			"%d of WithMemory: the file is damaged, or needs a larger limit", n, from, f.memory)
	}
	b := make([]byte, n)
	if got, err := f.r.ReadAt(b, from); int64(got) < n {
		return b[:got], fmt.Errorf("recording: the file can't be read at offset %d: %w", from+int64(got), err)
	}
	return b, nil
}

// record reads a record that ends before an offset.
func (f *file) record(from, end int64, sum uint32) (kind byte, body []byte, size int64, after uint32, err error) {
	front, err := f.read(from, min(end-from, 1+binary.MaxVarintLen64))
	if err != nil {
		return 0, nil, 0, 0, err
	}
	if len(front) < 2 {
		return 0, nil, 0, 0, errCut
	}
	n, w := binary.Uvarint(front[1:])
	if w < 0 {
		return 0, nil, 0, 0, errDamaged
	}
	if w == 0 || n > uint64(end-from) || int64(n)+int64(1+w+checkSize) > end-from {
		return 0, nil, 0, 0, errCut
	}
	size = int64(n) + int64(1+w+checkSize)
	b, err := f.read(from, size)
	if err != nil {
		return 0, nil, 0, 0, err
	}
	kind, body, _, after, err = parseRecord(b, sum)
	return kind, body, size, after, err
}

// readIndex reads the index at the end, and returns false if there is none.
func (f *file) readIndex() bool {
	if f.size-f.first < trailerSize {
		return false
	}
	b, err := f.read(f.size-trailerSize, trailerSize)
	if err != nil || string(b[4:]) != trailerText {
		return false
	}
	at := f.size - trailerSize - int64(binary.LittleEndian.Uint32(b))
	if at < f.first {
		return false
	}
	kind, body, size, _, err := f.record(at, f.size-trailerSize, 0)
	if err != nil || kind != kindIndex || at+size != f.size-trailerSize || f.parse(body, f.first, at) != nil {
		return false
	}
	f.end = at
	return true
}

// startOf returns when a segment begins, or the end of the file if there are fewer.
func (f *file) startOf(number int) uint64 {
	if number < len(f.segments) {
		return f.segments[number].time
	}
	return f.time
}

// A segment is what a file has from one start to the next.
type segment struct {
	number  int
	time    uint64 // of the latest row that was taken
	welcome []byte // empty: it continues the session of the segment before
	began   bool   // a row was taken
	rest    []byte
	sum     uint32
	at      int64 // offset of rest
}

// load reads a segment into memory.
func (f *file) load(number int) (*segment, error) {
	from, end := f.segments[number].offset, f.end
	if number+1 < len(f.segments) {
		end = f.segments[number+1].offset
	}
	b, err := f.read(from, end-from)
	if err != nil {
		return nil, err
	}
	kind, body, rest, sum, err := parseRecord(b, 0)
	p := parser{b: body}
	s := &segment{number: number, time: p.uvarint(), welcome: p.bytes(), rest: rest, sum: sum}
	if err == nil && (kind != kindSegment || p.bad || len(p.b) > 0 || s.time != f.segments[number].time) {
		err = errContent
	}
	if err != nil {
		return nil, f.broken(from, err)
	}
	s.at = end - int64(len(rest))
	return s, nil
}

// next returns the time of the next row, and its packets, without taking it. ok is false at the end of the segment. If
// that is because of damage, err is not nil.
func (s *segment) next(f *file) (time uint64, packets, rest []byte, sum uint32, ok bool, err error) {
	rest, sum = s.rest, s.sum
	for len(rest) > 0 {
		kind, body, after, newSum, err := parseRecord(rest, sum)
		if err == nil && kind != kindRow && kind != kindMark {
			err = errContent
		}
		if err != nil {
			return 0, nil, nil, 0, false, f.missing(s.time, f.startOf(s.number+1), s.at, err)
		}
		rest, sum = after, newSum
		if kind == kindMark {
			continue
		}
		p := parser{b: body}
		step := p.uvarint()
		if p.bad || s.time+step > maxTime {
			return 0, nil, nil, 0, false, f.broken(s.at, errContent)
		}
		return s.time + step, p.b, rest, sum, true, nil
	}
	return 0, nil, nil, 0, false, nil
}
