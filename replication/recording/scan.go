package recording

import (
	"errors"
	"fmt"
	"io"
)

// window is how much of the file is read at once to scan it.
const window = 256 << 10

// scan finds the segments of a file without an index, up to the first record that is damaged or incomplete.
func (f *file) scan() {
	f.end = f.first
	var b []byte
	at, read, sum := f.first, f.first, uint32(0)
	for holes := 0; ; {
		if len(b) > 0 && (b[0] == kindSegment || b[0] == kindIndex) {
			sum = 0
		}
		kind, body, rest, after, err := parseRecord(b, sum)
		switch {
		case errors.Is(err, errCut) && read < f.size && int64(len(b)) < f.memory:
			more, e := f.read(read, min(f.size-read, max(window, int64(len(b))), f.memory-int64(len(b))))
			if errors.Is(e, io.EOF) {
				f.size = read + int64(len(more)) // less than was given
			} else if e != nil {
				f.spoiled(e)
				return
			}
			b, read = append(append(make([]byte, 0, len(b)+len(more)), b...), more...), read+int64(len(more))
			continue
		case errors.Is(err, errCut) && at == f.size:
			f.spoiled(errors.New("recording: the file has no index: the recorder was not closed"))
			return
		case err == nil && kind == kindIndex:
			f.spoiled(errors.New("recording: the file's end is missing or damaged"))
			return
		case err != nil || !f.note(kind, body, at):
			if err == nil {
				err = errContent
			}
			next, ok := place{}, holes < maxHoles
			if ok {
				next, ok = f.findSegment(at + 1)
			}
			if !ok {
				f.spoiled(f.broken(at, err))
				return
			}
			f.spoiled(f.missing(f.time, next.time, at, err))
			at, read, b, sum = next.offset, next.offset, nil, 0
			holes++
		default:
			sum = after
			at += int64(len(b) - len(rest))
			b, f.end = rest, at
		}
	}
}

// maxHoles is how many times a scan goes on behind damage: to find the end of each takes time.
const maxHoles = 16

// longestStart bounds the record with which a segment begins.
const longestStart = 4096

// findSegment returns where the next segment begins, for all that is to be known of it: its checksum is right, and its
// time is not before what was read.
func (f *file) findSegment(from int64) (next place, ok bool) {
	for from < f.size {
		b, err := f.read(from, min(f.size-from, window, f.memory))
		if err != nil {
			return next, false
		}
		for i := range b {
			if b[i] != kindSegment || len(b)-i < longestStart && from+int64(len(b)) < f.size {
				continue
			}
			kind, body, _, _, err := parseRecord(b[i:min(i+longestStart, len(b))], 0)
			p := parser{b: body}
			time := p.uvarint()
			if err == nil && kind == kindSegment && time >= f.time && !p.bad {
				return place{from + int64(i), time}, true
			}
		}
		if from+int64(len(b)) == f.size {
			break
		}
		from += int64(len(b)) - longestStart
	}
	return next, false
}

// spoiled takes note of damage, if it is the first.
func (f *file) spoiled(err error) {
	if f.damage == nil {
		f.damage = err
	}
}

// broken returns the error of a record that stopped what was read.
func (f *file) broken(at int64, err error) error {
	return fmt.Errorf("recording: the file can be played up to %v only: at offset %d of %d, %w",
		f.head.clock(f.time), at, f.size, err)
}

// missing returns the error of a record because of which what is between two times can't be played.
func (f *file) missing(from, to uint64, at int64, err error) error {
	return fmt.Errorf("recording: what is from %v to %v is missing: at offset %d of %d, %w",
		f.head.clock(from), f.head.clock(to), at, f.size, err)
}

// note takes note of a record that was scanned.
func (f *file) note(kind byte, body []byte, at int64) bool {
	p := parser{b: body}
	switch kind {
	case kindSegment:
		time := p.uvarint()
		if p.bad || time < f.time {
			return false
		}
		f.segments = append(f.segments, place{at, time})
		f.time = time
	case kindRow:
		step := p.uvarint()
		if p.bad || len(f.segments) == 0 || f.time+step > maxTime {
			return false
		}
		f.time += step
	case kindMark:
		if len(f.segments) == 0 || len(body) > MaxMark || len(f.marks) == maxMarks {
			return false
		}
		f.marks = append(f.marks, stamp{f.time, string(body)})
	default:
		return false
	}
	return true
}
