package ackstate

import "github.com/arche-replicate/arche-replicate/delta"

// A path that drops packets above some size looks like one that works: small packets arrive, and so do their acks. The
// difference is that large packets get lost again and again while smaller ones arrive.

// sizeSeconds is the time for which the largest packet that arrived is remembered at least, and twice that at most.
const sizeSeconds = 5

// packetSizes compares the sizes of packets that arrive with those of packets that get lost.
type packetSizes struct {
	since   delta.Tick
	largest [2]uint16 // packet that arrived since that tick, and in the time before
	least   uint16    // packet that got lost and was larger than these, since a larger one arrived
	lost    bool      // such a packet got lost since the last that arrived
	Row     uint64    // how often that was followed by one that arrived, since a larger one did
}

// Largest returns the size of the largest packet that arrived of late.
func (s *packetSizes) Largest() uint16 { return max(s.largest[0], s.largest[1]) }

// arrive notes that a packet was acknowledged.
func (s *packetSizes) arrive(bytes uint16, now delta.Tick, rate int) {
	if age := now - s.since; age > delta.Tick(sizeSeconds*rate) {
		s.largest[1], s.largest[0], s.since = s.largest[0], 0, now
		if age > delta.Tick(2*sizeSeconds*rate) {
			s.largest[1] = 0
		}
	}
	s.largest[0] = max(s.largest[0], bytes)
	switch {
	case s.least > 0 && bytes >= s.least:
		s.least, s.lost, s.Row = 0, false, 0
	case s.lost:
		s.lost = false
		s.Row++
	}
}

// lose notes that a packet counts as lost.
func (s *packetSizes) lose(bytes uint16) {
	if bytes <= s.Largest() {
		return
	}
	s.lost = true
	if s.least == 0 || bytes < s.least {
		s.least = bytes
	}
}
