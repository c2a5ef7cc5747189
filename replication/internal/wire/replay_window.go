package wire

// seenTicks is the number of latest times whose packets of messages a receiver remembers.
const seenTicks = 128

// ReplayWindow remembers which packets of messages of the latest times arrived, so that none is used
// twice.
type ReplayWindow struct {
	Newest uint32
	Any    bool
	far    farJump           // of a packet that Believes refused
	seen   [seenTicks]uint16 // by time modulo seenTicks: bit by index
}

// Near returns the time near which short times are completed.
func (s *ReplayWindow) Near() uint32 { return s.Newest }

// Believes reports whether the time of a packet may be the one that it was completed to. A short time is that of a
// packet whose sender knew that a time not long before had arrived. If that is not so, the packet is from before a
// pause, and 2^16 too late. Without a checksum, one that is farther ahead than usual is believed as
// [ReceiveWindow.Near] does it: if a time near to it was refused just before. near is the time that it was completed
// by, if any is known.
func (s *ReplayWindow) Believes(h *MessageHeader, near uint32, known, checked bool) bool {
	ahead := int32(h.Time - near)
	if h.Long || !known || ahead <= 0 {
		return true
	}
	return ahead <= ShortTime && (checked || ahead <= WindowSize || s.far.confirms(h.Time))
}

// Fresh reports whether a packet is new: it has not arrived before and is not older than the window.
func (s *ReplayWindow) Fresh(time uint32, index uint) bool {
	if !s.Any || int32(time-s.Newest) > 0 {
		return true
	}
	return s.Newest-time < seenTicks && s.seen[time%seenTicks]>>index&1 == 0
}

// Add notes that a fresh packet arrived.
func (s *ReplayWindow) Add(time uint32, index uint) {
	s.Reach(time)
	s.seen[time%seenTicks] |= 1 << index
}

// Reach makes time the newest one if it is newer.
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
		s.Newest, s.far = time, farJump{}
	}
}
