package clock

// A paceMeter measures how many ticks the server makes in a tick of the client, however wrong the client's time is.
// That shows games which measure time in another unit, or not at all.
type paceMeter struct {
	tick uint32  // of the server, when the present span began
	at   float64 // when that was
	any  bool    // they are valid
	pace float64 // in the span before; 0: there was none
}

// paceSpan is how long a span is, in seconds of the server.
const paceSpan = 5

// note notes that a packet of a tick of the server arrived.
func (m *paceMeter) note(tick uint32, now float64, rate uint32) {
	passed := int32(tick - m.tick)
	switch {
	case !m.any:
		m.tick, m.at, m.any = tick, now, true
	case passed >= int32(paceSpan*rate):
		m.pace = float64(passed) / max(now-m.at, 1e-6)
		m.tick, m.at = tick, now
	}
}
