package recording

import (
	"fmt"
	"time"
)

// An Option is a setting of a recorder or a player.
type Option func(*settings)

type settings struct {
	segment time.Duration
	queue   int
	memory  int64
	meta    map[string]string
}

func newSettings(opts []Option) settings {
	s := settings{segment: time.Second, queue: 4 << 20, memory: 64 << 20}
	for _, opt := range opts {
		if opt == nil {
			panic("recording: an option is nil: leave it out")
		}
		opt(&s)
	}
	return s
}

// WithSegment sets how often a recording starts anew, every second by default. A player seeks to such a start and plays
// from there: shorter segments make larger files and faster seeks.
//
// Panics if it is not 100 ms to an hour.
func WithSegment(d time.Duration) Option {
	if d < 100*time.Millisecond || d > time.Hour {
		panic(fmt.Sprintf("recording: a segment of %v: use 100ms to an hour", d))
	}
	return func(s *settings) { s.segment = d }
}

// WithQueue sets how many bytes may wait for the writer, 4 MiB by default. What comes while the queue is full is
// dropped; see [RecorderStats].
//
// Panics if it is less than 64 KiB.
func WithQueue(bytes int) Option {
	if bytes < 64<<10 {
		panic(fmt.Sprintf("recording: a queue of %d bytes: use 65536 or more", bytes))
	}
	return func(s *settings) { s.queue = bytes }
}

// WithMemory sets how many bytes a player reads into memory at once, 64 MiB by default: at most one segment, the header
// or the index.
//
// Panics if it is less than 64 KiB.
func WithMemory(bytes int) Option {
	if bytes < 64<<10 {
		panic(fmt.Sprintf("recording: a memory of %d bytes: use 65536 or more", bytes))
	}
	return func(s *settings) { s.memory = int64(bytes) }
}

// WithMeta adds an entry to the metadata of a recording, such as the name of the level. See [Player.Meta].
//
// NewRecorder panics if all entries together have more than 64 KiB.
func WithMeta(key, value string) Option {
	return func(s *settings) {
		if s.meta == nil {
			s.meta = map[string]string{}
		}
		s.meta[key] = value
	}
}
