package recording

import (
	"errors"
	"io"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// NewClientRecorder returns a recorder of what a client accepts, with all losses. Make it before the client connects.
// It records every [replication.Client.Frame] by itself; call [Recorder.Close] at the end, after the last one.
//
// There are no starts but those of the client's sessions, so a player seeks by playing from there, and what follows a
// full queue is dropped up to the next session.
//
// Panics if w is nil, or if the client has a session already.
func NewClientRecorder(client *replication.Client, w io.Writer, opts ...Option) *Recorder {
	inside := seam.OfClient(client)
	if client.Status() != replication.StatusConnecting {
		panic("recording: NewClientRecorder of a client that has connected: make the recorder before the first Frame")
	}
	r := newRecorder(w, opts, header{source: fromClient}, inside.Schema.FullText())
	r.interval = uint64(r.segment)
	r.start(w)
	*inside.Received = append(*inside.Received, r.received)
	*inside.Attached = append(*inside.Attached, r.frame)
	return r
}

// received is called with each packet that a client received.
func (r *Recorder) received(packet []byte, err error) {
	if r.closed || r.err != nil {
		return
	}
	if err != nil && !errors.Is(err, replication.ErrMissingBaseline) && !errors.Is(err, replication.ErrMissingModel) {
		return // it changed nothing
	}
	if wire.OpenHandshake(packet) != nil {
		if wire.PacketKind(packet[wire.ChecksumSize]) == wire.KindWelcome {
			r.feed.welcome = append([]byte{}, packet...)
			r.feed.row = r.feed.row[:0] // of the former session, which was forgotten
		}
		return
	}
	r.feed.row = appendText(r.feed.row, packet)
}

// frame is called in each Frame of a client.
func (r *Recorder) frame(dt time.Duration) {
	if r.closed || r.err != nil {
		return
	}
	ok, from := false, r.now
	r.now += uint64(max(dt, 0))
	switch {
	case r.feed.welcome != nil:
		if ok = r.begin(r.feed.welcome, from, r.feed.row); ok {
			r.feed.welcome, r.lost = nil, false
		}
	case !r.open && !r.lost:
		ok = true // nothing to record yet
	case r.lost:
	case from-r.began >= r.interval:
		ok = r.begin(nil, from, r.feed.row)
	default:
		ok = r.row(r.feed.row)
	}
	if !ok { // what comes refers to what is missing, up to the next session
		r.stats.Dropped++
		r.open, r.lost, r.feed.welcome = false, true, nil
		if r.err == nil {
			_, r.err = r.queue.drained()
		}
	}
	r.feed.row = r.feed.row[:0]
}
