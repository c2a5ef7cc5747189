package wire

// seenTicks is how many times back a receiver remembers which packets of messages it got.
const seenTicks = 128

// ReplayWindow knows which packets of the last times came, so that none is taken twice.
type ReplayWindow struct {
	Newest uint32
	Any    bool
	seen   [seenTicks]uint16 // by time modulo seenTicks: bit by index
}

// Near returns a time that short ones are completed with.
func (s *ReplayWindow) Near() uint32 { return s.Newest }

// Fresh reports whether a packet has not come yet and is not too old to tell.
func (s *ReplayWindow) Fresh(time uint32, index uint) bool {
	if !s.Any || int32(time-s.Newest) > 0 {
		return true
	}
	return s.Newest-time < seenTicks && s.seen[time%seenTicks]>>index&1 == 0
}

// Add notes that a fresh packet came.
func (s *ReplayWindow) Add(time uint32, index uint) {
	s.Reach(time)
	s.seen[time%seenTicks] |= 1 << index
}

// Reach makes time the newest one if it is.
func (s *ReplayWindow) Reach(time uint32) {
	if !s.Any {
		s.Any, s.Newest = true, time
		return
	}
	ahead := int32(time - s.Newest)
	for i := uint32(1); ahead > 0 && i <= min(uint32(ahead), seenTicks); i++ {
		s.seen[(s.Newest+i)%seenTicks] = 0
	}
	if ahead > 0 {
		s.Newest = time
	}
}
