package main

import "fmt"

// figures is how the replication does right now, for one client: the mean of all that this
// process knows of.
type figures struct {
	sent      float64 // kbit/s of the datagrams to it, lost ones included, over the latest second
	raw, json float64 // kbit/s that snapshots would take, see cost
	roundTrip float64 // as outlook.RoundTrip
	age       float64 // as cost.Age

	traffic       traffic
	checks, wrong int // since the beginning, of all clients
	trend         []float64
}

// traffic is what a server has sent to some clients since the beginning, and to all of them together.
type traffic struct {
	Bytes   uint64  // of datagrams
	Packets uint64  // of state
	Lost    uint64  // of these, as the server believes
	Seconds float64 // that each client was there, summed
}

// snapshots returns the kbit/s of snapshots.
func (c *cost) snapshots(sendRate int) (raw, json float64) {
	each := 8 * float64(sendRate) / 1000
	return each * float64(c.Raw), each * float64(c.JSON)
}

// roundTripText says the round trip of clients, if it is known.
func roundTripText(ticks float64, tickRate int) string {
	if ticks == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.0f ms", 1000*ticks/float64(tickRate))
}

// ageText says the age of baselines, if it is known.
func ageText(ticks float64) string {
	switch {
	case ticks == 0:
		return "unknown"
	case ticks > oldestCounted-0.5:
		return fmt.Sprintf("over %d ticks", oldestCounted-1) // all of them
	default:
		return fmt.Sprintf("%.1f ticks", ticks)
	}
}

// sample is how much had been sent at a tick.
type sample struct {
	tick int
	traffic
}

// meter turns what is counted from the beginning into what happens now.
type meter struct {
	samples []sample
	trend   []float64 // kbit/s, one per half second
	trendAt int
}

// trendLength is how many half seconds a trend goes back.
const trendLength = 60

// add takes a sample, and returns the kbit/s per client in the second before it.
func (m *meter) add(s sample, tickRate int) (kbits float64) {
	if len(m.samples) == 0 {
		m.samples = append(m.samples, sample{}) // before anything
	}
	m.samples = append(m.samples, s)
	for len(m.samples) > 2 && m.samples[1].tick <= s.tick-tickRate {
		m.samples = m.samples[1:]
	}
	from := m.samples[0]
	if seconds := s.Seconds - from.Seconds; seconds > 0 {
		kbits = float64(s.Bytes-from.Bytes) * 8 / 1000 / seconds
	}
	if s.tick >= m.trendAt+(tickRate+1)/2 {
		m.trendAt = s.tick
		m.trend = append(m.trend, kbits)
		m.trend = m.trend[max(0, len(m.trend)-trendLength):]
	}
	return kbits
}

// figures is what follows from what the server counts and measures.
func (m *meter) figures(tick int, c *config, now *cost, t traffic) figures {
	f := figures{traffic: t, age: now.Age, sent: m.add(sample{tick, t}, c.tickRate), trend: m.trend}
	f.raw, f.json = now.snapshots(c.sendRate)
	return f
}
