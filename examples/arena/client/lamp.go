//go:build js

package main

import (
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
)

// lamp shows whether this world equals the server's, by the hashes of entities that the server sends.
type lamp struct {
	compared, diverged uint64
	equalAt, differsAt time.Time // the latest comparisons
	bytes              uint64
	arrivedAt          time.Time // a state
}

const (
	lampTime   = 3 * time.Second         // for how long a comparison counts
	silentTime = 1100 * time.Millisecond // after which nothing is known of the present: servers send once a second
)

func (l *lamp) update(s replication.ClientStats, now time.Time) {
	if s.Diverged > l.diverged {
		l.differsAt = now
	} else if s.HashesCompared > l.compared {
		l.equalAt = now
	}
	l.compared, l.diverged = s.HashesCompared, s.Diverged
	if s.Bytes != l.bytes {
		l.bytes, l.arrivedAt = s.Bytes, now
	}
}

func (l *lamp) state(now time.Time) string {
	switch {
	case now.Sub(l.arrivedAt) > silentTime:
		return "silent"
	case now.Sub(l.differsAt) < lampTime:
		return "differs"
	case now.Sub(l.equalAt) < lampTime:
		return "equal"
	}
	return "unknown"
}
