package replication

// seenTicks is how many times back a receiver remembers which packets of messages it got.
const seenTicks = 128

// seenTimes knows which packets of the last times came, so that none is taken twice.
type seenTimes struct {
	newest uint32
	any    bool
	seen   [seenTicks]uint16 // by time modulo seenTicks: bit by index
}

// near returns a time that short ones are completed with.
func (s *seenTimes) near() uint32 { return s.newest }

// fresh reports whether a packet has not come yet and is not too old to tell.
func (s *seenTimes) fresh(time uint32, index uint) bool {
	if !s.any || int32(time-s.newest) > 0 {
		return true
	}
	return s.newest-time < seenTicks && s.seen[time%seenTicks]>>index&1 == 0
}

// add notes that a fresh packet came.
func (s *seenTimes) add(time uint32, index uint) {
	s.reach(time)
	s.seen[time%seenTicks] |= 1 << index
}

// reach makes time the newest one if it is.
func (s *seenTimes) reach(time uint32) {
	if !s.any {
		s.any, s.newest = true, time
		return
	}
	ahead := int32(time - s.newest)
	for i := uint32(1); ahead > 0 && i <= min(uint32(ahead), seenTicks); i++ {
		s.seen[(s.newest+i)%seenTicks] = 0
	}
	if ahead > 0 {
		s.newest = time
	}
}
