package recording

import (
	"io"
	"time"
)

// Info is what is known of a recording without its schema.
type Info struct {
	Schema   string // the text of the schema, see [replication.Schema.Text]
	TickRate int    // of the server, in ticks per second; 0 if a client recorded, which does not know it
	Duration time.Duration
	Meta     map[string]string
}

// ReadInfo reads what is known of the recording in r, which has size bytes, without its schema: tools make that from
// its text. Of the options, only [WithMemory] counts.
//
// The error is that of [NewPlayer]. What is wrong with parts of the recording is no error: see [Player.Damage].
//
// Panics if r is nil.
func ReadInfo(r io.ReaderAt, size int64, opts ...Option) (Info, error) {
	if r == nil {
		panic("recording: ReadInfo needs a file")
	}
	f := &file{r: r, size: max(size, 0), memory: newSettings(opts).memory}
	if err := f.readHeader(); err != nil {
		return Info{}, err
	}
	f.find()
	h := &f.head
	return Info{Schema: h.schema, TickRate: h.rate, Duration: h.duration(f.time), Meta: h.meta}, nil
}
