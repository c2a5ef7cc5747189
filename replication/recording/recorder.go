package recording

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
)

// RecorderStats counts what a recorder did.
type RecorderStats struct {
	Bytes    uint64 // given to the writer
	Rows     uint64 // ticks or frames with packets
	Segments uint64
	Dropped  uint64 // ticks or frames that are missing: the writer was too slow, or a Replicate panicked
	// MessagesDropped counts messages to all that are missing, since there were more than a peer's queue holds. It is
	// complete after Close.
	MessagesDropped uint64
}

// A Recorder writes what a server sends, or what a client receives. It belongs to the goroutine of that.
type Recorder struct {
	settings
	head  header
	queue *queue
	index index
	early []string // marks before the first row
	stats RecorderStats
	err   error

	now      uint64 // time of the present row
	rowAt    uint64 // of the latest row
	began    uint64 // of the segment
	open     bool   // there is a segment
	closed   bool
	offset   int64
	sum      uint32
	out      []byte // records
	body     []byte
	interval uint64 // from one segment to the next

	inside    seam.Server
	old, next *feed // of a server
	ticks     replication.Tick
	server    *replication.Server
	complete  bool // the present Replicate has sent everything
	feed      feed // of a client
	lost      bool // the session is not recorded any more
}

// A feed is the packets of a peer since the last row: lengths and packets.
type feed struct {
	welcome []byte
	row     []byte
	peer    seam.Listener
}

func (f *feed) take(packet []byte) error {
	if f.welcome == nil {
		f.welcome = append([]byte{}, packet...)
		return nil
	}
	f.row = appendText(f.row, packet)
	return nil
}

// NewRecorder returns a recorder of everything that any client of the server may see, and of the messages to all. It is
// no peer that the game sees; messages to one client only are not recorded. It records every
// [replication.Server.Replicate] from the next one on by itself; call [Recorder.Close] at the end.
//
// A goroutine calls w.Write, always with complete records.
//
// Panics if w is nil, or if the server is nil or closed.
func NewRecorder(server *replication.Server, w io.Writer, opts ...Option) *Recorder {
	inside := seam.OfServer(server)
	r := newRecorder(w, opts, header{source: fromServer, rate: server.TickRate()}, inside.Schema.FullText())
	r.interval = max(uint64(r.segment)*uint64(r.head.rate)/uint64(time.Second), 1)
	r.inside, r.server, r.ticks = inside, server, server.Tick()
	r.next = r.connect()
	r.start(w)
	*inside.Watchers = append(*inside.Watchers, (*ticking)(r))
	return r
}

func newRecorder(w io.Writer, opts []Option, head header, schema string) *Recorder {
	if w == nil {
		panic("recording: a recorder needs a writer, such as a file")
	}
	r := &Recorder{settings: newSettings(opts), head: head}
	r.head.schema, r.head.meta = schema, r.meta
	size := 0
	for key, value := range r.meta {
		size += len(key) + len(value)
	}
	if size > maxMeta {
		panic(fmt.Sprintf("recording: metadata of %d bytes: use at most %d", size, maxMeta))
	}
	return r
}

// start writes the header. A goroutine runs from now on.
func (r *Recorder) start(w io.Writer) {
	r.queue = newQueue(w, r.settings.queue)
	r.out = r.head.append(r.out)
	r.flush(0)
}

func (r *Recorder) connect() *feed {
	f := &feed{}
	f.peer = r.inside.Listen(f.take, r.old != nil) // what is sent until then is in the old segment
	return f
}

// ticking is the recorder as its server sees it.
type ticking Recorder

// Note is called at each moment of the server.
func (t *ticking) Note(at seam.Moment, _ int) {
	r := (*Recorder)(t)
	switch at {
	case seam.Replicated:
		r.complete = true
	case seam.ReplicateEnds:
		switch {
		case r.err != nil:
			r.drop() // nobody takes what they are sent
		case r.server.Tick() != r.ticks:
			r.tick()
		}
		r.complete = false
	}
}

// tick records the tick of the latest Replicate. It never waits for the writer.
func (r *Recorder) tick() {
	tick := r.server.Tick()
	if r.stats.Segments > 0 {
		r.now += uint64(uint32(tick - r.ticks))
	}
	r.ticks = tick
	if !r.complete { // it panicked, and nobody knows what it has sent
		if r.lose(); r.err == nil {
			r.next = r.connect()
		}
		return
	}
	if r.old != nil {
		r.old.peer.Resolve()
		if (len(r.old.row) > 0 || r.next != nil) && !r.row(r.old.row) {
			r.lose()
			return
		}
		r.old.row = r.old.row[:0]
	}
	switch {
	case r.next != nil:
		if len(r.next.row) == 0 {
			break // of a Replicate that sent nothing
		}
		r.next.peer.Resolve()
		if !r.begin(r.next.welcome, r.now, r.next.row) {
			r.lose()
			return
		}
		r.next.row = r.next.row[:0]
		if r.old != nil {
			r.end(r.old)
		}
		r.old, r.next = r.next, nil
	case r.old == nil: // the queue was full
		r.stats.Dropped++
		var ready bool
		if ready, r.err = r.queue.drained(); ready && r.err == nil {
			r.next = r.connect()
		}
	case r.now-r.began >= r.interval-1:
		r.next = r.connect()
	}
}

// lose ends the segment, since some of it is missing.
func (r *Recorder) lose() {
	r.stats.Dropped++
	if r.err == nil {
		_, r.err = r.queue.drained()
	}
	r.drop()
}

// end closes a peer.
func (r *Recorder) end(f *feed) {
	f.peer.Close()
	r.stats.MessagesDropped += f.peer.Stats.MessagesDropped
}

// drop closes the peers.
func (r *Recorder) drop() {
	for _, f := range []*feed{r.old, r.next} {
		if f != nil {
			r.end(f)
		}
	}
	r.old, r.next, r.open = nil, nil, false
}

// begin begins a segment whose first row is of the time after at. If there is no room, nothing of it is kept.
func (r *Recorder) begin(welcome []byte, at uint64, packets []byte) bool {
	r.body = appendText(binary.AppendUvarint(r.body[:0], at), welcome)
	before, rowAt, start := r.sum, r.rowAt, place{r.offset, at}
	r.out, r.sum = appendRecord(r.out, 0, kindSegment, r.body)
	r.rowAt = at
	if !r.row(packets) {
		r.sum, r.rowAt = before, rowAt
		return false
	}
	r.stats.Segments++
	r.index.segments = append(r.index.segments, start)
	r.began, r.open = at, true
	for len(r.early) > 0 && r.mark(r.early[0]) { // without room, in the next segment
		r.early = r.early[1:]
	}
	return true
}

// row appends a row.
func (r *Recorder) row(packets []byte) bool {
	r.body = append(binary.AppendUvarint(r.body[:0], r.now-r.rowAt), packets...)
	before := r.sum
	r.out, r.sum = appendRecord(r.out, r.sum, kindRow, r.body)
	if !r.flush(before) {
		return false
	}
	r.stats.Rows++
	r.rowAt = r.now
	r.index.time = r.now
	return true
}

// flush hands over the records in out. If there is no room, the sum is what it was before.
func (r *Recorder) flush(before uint32) bool {
	ok := r.queue.put(r.out)
	if ok {
		r.offset += int64(len(r.out))
		r.stats.Bytes += uint64(len(r.out))
	} else {
		r.sum = before
		if n := len(r.out); n > r.settings.queue {
			r.err = fmt.Errorf("recording: what belongs together has %d bytes, more than the queue of %d: "+
				"make it larger by WithQueue", n, r.settings.queue)
		}
	}
	r.out = r.out[:0]
	return ok
}

// Mark puts a text at the moment of the latest Replicate or Frame, such as what a player reports: see [Player.Marks].
// Up to 16 marks before the first one are at the beginning. It returns false if it is not kept: nothing is recorded at
// present, there are 65,536 marks, or the queue is full.
//
// Panics if the text has more than MaxMark bytes.
func (r *Recorder) Mark(text string) bool {
	if len(text) > MaxMark {
		panic(fmt.Sprintf("recording: a mark of %d bytes: use at most %d", len(text), MaxMark))
	}
	if r.closed || r.err != nil || len(r.index.marks) == maxMarks {
		return false
	}
	if r.stats.Segments == 0 && r.stats.Dropped == 0 && len(r.early) < maxEarly {
		r.early = append(r.early, text)
		return true
	}
	return r.open && (r.now == r.rowAt || r.server == nil || r.row(nil)) && r.mark(text)
}

// maxEarly is how many marks there may be before the first row, which has room for them.
const maxEarly = 16

// mark appends a mark.
func (r *Recorder) mark(text string) bool {
	before := r.sum
	r.out, r.sum = appendRecord(r.out, r.sum, kindMark, append(r.body[:0], text...))
	if !r.flush(before) {
		return false
	}
	r.index.marks = append(r.index.marks, stamp{r.rowAt, text})
	return true
}

// Err returns what has ended the recording: the error of the writer, or one tick that is larger than the queue; or nil.
func (r *Recorder) Err() error {
	if !r.closed && r.err == nil {
		_, r.err = r.queue.drained()
	}
	return r.err
}

// Stats returns the recorder's counters.
func (r *Recorder) Stats() RecorderStats { return r.stats }

// Close ends the recording, waits until the writer has taken everything, and returns the error of [Recorder.Err]. It
// does not close the writer.
func (r *Recorder) Close() error {
	if r.closed {
		return r.err
	}
	if r.server != nil {
		if r.open && r.now > r.rowAt {
			r.row(nil) // so that the recording is as long as what it is of
		}
		r.drop()
		*r.inside.Watchers = r.inside.Watchers.Without((*ticking)(r))
	}
	r.closed = true // not before: closing peers panics in a Replicate
	tail := r.index.append(nil, r.offset)
	r.stats.Bytes += uint64(len(tail))
	if err := r.queue.close(tail); r.err == nil {
		r.err = err
	}
	return r.err
}
