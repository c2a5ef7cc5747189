package recording

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
)

// Timed makes fn get how long each tick of a server takes a recorder.
func Timed(r *Recorder, fn func(time.Duration)) {
	list := *r.inside.Watchers
	for i, w := range list {
		if w == seam.Watcher((*ticking)(r)) {
			list[i] = timed{w, fn}
		}
	}
}

type timed struct {
	seam.Watcher
	fn func(time.Duration)
}

func (t timed) Note(at seam.Moment, bytes int) {
	from := time.Now()
	if t.Watcher.Note(at, bytes); at == seam.ReplicateEnds {
		t.fn(time.Since(from))
	}
}

// Repair gives the records of a file right checks, as far as their lengths allow that, so that a fuzzer gets beyond
// them.
func Repair(file []byte) []byte {
	file = bytes.Clone(file)
	if len(file) < preamble {
		return file
	}
	copy(file, magic)
	file[len(magic)] = version
	sum := uint32(0)
	for b := file[preamble:]; len(b) > 1; {
		n, w := binary.Uvarint(b[1:])
		if w <= 0 || n > uint64(len(b)) || 1+w+int(n)+checkSize > len(b) {
			break
		}
		if b[0] == kindSegment || b[0] == kindIndex {
			sum = 0
		}
		end := 1 + w + int(n)
		sum = crc32.Update(sum, castagnoli, b[:end])
		binary.LittleEndian.PutUint32(b[end:], sum)
		b = b[end+checkSize:]
	}
	return file
}

// Peers returns how many peers a recorder has.
func Peers(r *Recorder) (n int) {
	for _, f := range []*feed{r.old, r.next} {
		if f != nil {
			n++
		}
	}
	return n
}

// Sent counts the packets that a server sends, as those see it who watch.
func Sent(server any) *int {
	c := new(counter)
	list := seam.OfServer(server).Watchers
	*list = append(*list, c)
	return (*int)(c)
}

type counter int

func (c *counter) Note(at seam.Moment, _ int) {
	if at == seam.Sent {
		*c++
	}
}
