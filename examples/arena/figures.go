package main

import (
	"fmt"
	"time"
)

// figures are the current costs and results for one client, averaged over all clients that this
// process knows.
type figures struct {
	sent      float64 // kbit/s of datagrams, lost ones included, over the latest second
	raw, json float64 // kbit/s that snapshots would take, see cost
	roundTrip float64 // in ticks; 0 if unknown
	age       float64 // as cost.Age

	delay           time.Duration // of interpolation, of clients elsewhere
	starved, frames uint64        // of these

	traffic       traffic
	elsewhere     bool
	nobody        bool // no client is there
	checks, wrong int  // since the beginning, summed over all clients
	trend         []float64
}

// traffic is everything that a server has sent to some clients since the beginning, summed.
type traffic struct {
	Bytes   uint64  // of datagrams
	Packets uint64  // of state
	Lost    uint64  // of these, marked lost by the server
	Seconds float64 // connected time, summed over clients
}

// snapshots returns the kbit/s of snapshots.
func (c *cost) snapshots(sendRate int) (raw, json float64) {
	each := 8 * float64(sendRate) / 1000
	return each * float64(c.Raw), each * float64(c.JSON)
}

// roundTripText formats the clients' round trip, if it is known.
func roundTripText(ticks float64, tickRate int) string {
	if ticks == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.0f ms", 1000*ticks/float64(tickRate))
}

// ageText formats the age of baselines, if it is known.
func ageText(ticks float64) string {
	switch {
	case ticks == 0:
		return "unknown"
	case ticks > oldestCounted-0.5:
		return fmt.Sprintf("over %d ticks", oldestCounted-1) // all are older
	default:
		return fmt.Sprintf("%.1f ticks", ticks)
	}
}

// sample is the traffic up to a tick.
type sample struct {
	tick int
	traffic
}

// meter converts counts since the beginning into current rates.
type meter struct {
	samples []sample
	trend   []float64 // kbit/s, one per half second
	trendAt int
}

// trendLength is the length of a trend in half seconds.
const trendLength = 60

// add takes a sample, and returns the kbit/s per client in the second before it.
func (m *meter) add(s sample, tickRate int) (kbits float64) {
	if len(m.samples) == 0 {
		m.samples = append(m.samples, sample{}) // the start
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

// figures computes the figures from measurements and what is known of clients.
func (m *meter) figures(tick int, c *config, now *cost, rows []row) figures {
	f := figures{age: now.Age, nobody: true}
	var roundTrip mean
	for i, row := range rows {
		f.traffic.Bytes += row.bytes
		f.traffic.Packets += row.Packets
		f.traffic.Lost += row.Lost
		f.traffic.Seconds += row.seconds
		f.checks += row.checks
		f.wrong += row.Mismatches
		if !row.left {
			f.nobody = false
			roundTrip.add(row.RoundTrip)
		}
		if i == 0 {
			f.delay, f.starved, f.frames = row.delay, row.starved, row.frames
		}
	}
	f.roundTrip, f.sent, f.trend = roundTrip.value(), m.add(sample{tick, f.traffic}, c.tickRate), m.trend
	f.raw, f.json = now.snapshots(c.sendRate)
	return f
}
