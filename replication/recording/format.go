package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
)

const (
	magic       = "ARCHEREC"
	version     = 1
	preamble    = len(magic) + 1
	trailerText = "ARCHEEND"
	trailerSize = int64(4 + len(trailerText))
	checkSize   = 4
	leastRecord = 2 + checkSize

	fromServer, fromClient = 0, 1

	// maxTime bounds times in a file, so that sums don't overflow.
	maxTime = 1 << 60
	// maxMarks and MaxMark bound what marks take in memory.
	maxMarks = 1 << 16
	// MaxMark is the largest size of a mark's text, in bytes.
	MaxMark = 1024
	// maxMeta bounds the metadata.
	maxMeta = 1 << 16
)

// The kinds of records.
const (
	kindHeader byte = 1 + iota
	kindSegment
	kindRow
	kindMark
	kindIndex
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends a record. sum is that of the segment before it; the sum after it is returned.
func appendRecord(b []byte, sum uint32, kind byte, body []byte) ([]byte, uint32) {
	from := len(b)
	b = binary.AppendUvarint(append(b, kind), uint64(len(body)))
	b = append(b, body...)
	sum = crc32.Update(sum, castagnoli, b[from:])
	return binary.LittleEndian.AppendUint32(b, sum), sum
}

var (
	errCut     = errors.New("the file is cut off in the middle of a record")
	errDamaged = errors.New("a record's checksum is wrong: the file is damaged")
	errContent = errors.New("a record's content makes no sense: the file is damaged, or not of this library")
)

// parseRecord reads the record that b begins with. The error is errCut if b ends before it does.
func parseRecord(b []byte, sum uint32) (kind byte, body, rest []byte, after uint32, err error) {
	if len(b) == 0 {
		return 0, nil, nil, 0, errCut
	}
	n, size := binary.Uvarint(b[1:])
	if size < 0 {
		return 0, nil, nil, 0, errDamaged
	}
	if size == 0 || n > uint64(len(b)) || len(b)-1-size-int(n) < checkSize {
		return 0, nil, nil, 0, errCut
	}
	end := 1 + size + int(n)
	after = crc32.Update(sum, castagnoli, b[:end])
	if binary.LittleEndian.Uint32(b[end:]) != after {
		return 0, nil, nil, 0, errDamaged
	}
	return b[0], b[1+size : end], b[end+checkSize:], after, nil
}

// A parser reads varints and texts. After an error all that it reads is empty.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 || v > maxTime {
		p.b, p.bad = nil, true
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) bytes() []byte {
	n := p.uvarint()
	if n > uint64(len(p.b)) {
		p.b, p.bad = nil, true
		return nil
	}
	v := p.b[:n]
	p.b = p.b[n:]
	return v
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// header is the beginning of a file.
type header struct {
	source byte
	rate   int // ticks per second of the server; not known at a client
	schema string
	meta   map[string]string
}

func (h *header) append(b []byte) []byte {
	body := []byte{replication.ProtocolVersion, h.source}
	body = binary.AppendUvarint(body, uint64(h.rate))
	body = appendText(body, h.schema)
	body = binary.AppendUvarint(body, uint64(len(h.meta)))
	for _, key := range slices.Sorted(maps.Keys(h.meta)) {
		body = appendText(appendText(body, key), h.meta[key])
	}
	b, _ = appendRecord(append(append(b, magic...), version), 0, kindHeader, body)
	return b
}

func (h *header) parse(body []byte) error {
	if len(body) < 2 {
		return errContent
	}
	if body[0] != replication.ProtocolVersion {
		return fmt.Errorf("the packets in it are of protocol version %d, and this release reads %d: play it with "+
			"the release that recorded it", body[0], replication.ProtocolVersion)
	}
	p := parser{b: body[2:]}
	h.source, h.rate, h.schema = body[1], int(min(p.uvarint(), maxRate+1)), string(p.bytes())
	h.meta = map[string]string{}
	size := 0
	for n := p.uvarint(); n > 0 && !p.bad && size <= maxMeta; n-- {
		key, value := p.bytes(), p.bytes()
		h.meta[string(key)] = string(value)
		size += len(key) + len(value)
	}
	known := h.source == fromServer && h.rate > 0 && h.rate <= maxRate || h.source == fromClient && h.rate == 0
	if p.bad || size > maxMeta || len(p.b) > 0 || !known {
		return errContent
	}
	return nil
}

// maxRate is the largest tick rate of a server.
const maxRate = 1000

// duration returns a time of the file as a duration.
func (h *header) duration(t uint64) time.Duration {
	if h.source == fromClient {
		return time.Duration(t)
	}
	rate := uint64(h.rate)
	seconds := min(t/rate, uint64(1<<62/time.Second))
	return time.Duration(seconds)*time.Second + time.Duration(t%rate)*time.Second/time.Duration(rate)
}

// clock returns a time of the file for people.
func (h *header) clock(t uint64) time.Duration { return h.duration(t).Round(time.Millisecond) }

// place is where a segment is.
type place struct {
	offset int64
	time   uint64
}

// stamp is a mark in units of the file.
type stamp struct {
	time uint64
	text string
}

// index is what a file's end has.
type index struct {
	time     uint64
	segments []place
	marks    []stamp
}

// append appends the index, which is at an offset of the file.
func (x *index) append(b []byte, at int64) []byte {
	body := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(at)), x.time)
	body = binary.AppendUvarint(body, uint64(len(x.segments)))
	before := place{}
	for _, s := range x.segments {
		body = binary.AppendUvarint(body, uint64(s.offset-before.offset))
		body = binary.AppendUvarint(body, s.time-before.time)
		before = s
	}
	body = binary.AppendUvarint(body, uint64(len(x.marks)))
	when := uint64(0)
	for _, m := range x.marks {
		body = appendText(binary.AppendUvarint(body, m.time-when), m.text)
		when = m.time
	}
	from := len(b)
	b, _ = appendRecord(b, 0, kindIndex, body)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(b)-from)), trailerText...)
}

// parse reads an index that is at the offset end.
func (x *index) parse(body []byte, first, end int64) error {
	p := parser{b: body}
	if p.uvarint() != uint64(end) {
		return errContent // something before it is missing
	}
	x.time = p.uvarint()
	at := place{}
	for n := p.uvarint(); n > 0 && !p.bad; n-- {
		offset, time := p.uvarint(), p.uvarint()
		at.offset, at.time = at.offset+int64(min(offset, uint64(end))), at.time+time
		if at.offset < first || at.offset >= end || at.time > x.time || offset < leastRecord {
			return errContent
		}
		x.segments = append(x.segments, at)
	}
	when := uint64(0)
	for n := p.uvarint(); n > 0 && !p.bad; n-- {
		when += p.uvarint()
		text := p.bytes()
		if when > x.time || len(x.marks) == maxMarks || len(text) > MaxMark {
			return errContent
		}
		x.marks = append(x.marks, stamp{when, string(text)})
	}
	if p.bad || len(p.b) > 0 {
		return errContent
	}
	return nil
}
