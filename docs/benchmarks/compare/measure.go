package main

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// measure returns the mean bytes per tick of a method, from the tick on in which the first acknowledgement
// has arrived. A receiver decodes every tick from what it had at the newest acknowledged tick, and
// must have the same state as the sender. A tick without changes takes nothing.
func (r *recording) measure(m *method, rtt int) (float64, error) {
	received := make([]state, len(r.ticks))
	total := 0
	for t, now := range r.ticks {
		data := m.encode(r, acknowledged(r.ticks, t-rtt), now)
		var err error
		if received[t], err = m.decode(r, acknowledged(received, t-rtt), data); err != nil {
			return 0, fmt.Errorf("%s: tick %d: %w", m.name, t, err)
		}
		if !received[t].equal(now) {
			return 0, fmt.Errorf("%s: tick %d: the receiver has another state", m.name, t)
		}
		if t > rtt && (m.always || len(changesOf(acknowledged(r.ticks, t-rtt), now)) > 0) {
			total += len(data)
		}
		release(received, t-rtt)
	}
	return float64(total) / float64(max(len(r.ticks)-rtt-1, 1)), nil
}

// acknowledged returns the state at a tick, or none before the first.
func acknowledged(states []state, t int) state {
	if t < 0 {
		return nil
	}
	return states[t]
}

// release forgets a state that is not needed any more.
func release(states []state, t int) {
	if t >= 0 {
		states[t] = nil
	}
}

// measureZstd returns the mean bytes per tick of zstd with a dictionary of acknowledged ticks, in the best
// layout, and the name of that. The layouts are compared on the first ticks, at a lower level.
func (r *recording) measureZstd(rtt int, level zstd.EncoderLevel) (best float64, name string, err error) {
	first := *r
	first.ticks = r.ticks[:min(len(r.ticks), 400+rtt)]
	var chosen *layout
	for i := range layouts {
		size, err := first.measureLayout(&layouts[i], zstd.SpeedBetterCompression, rtt)
		if err != nil {
			return 0, "", err
		}
		if chosen == nil || size < best {
			best, chosen = size, &layouts[i]
		}
	}
	best, err = r.measureLayout(chosen, level, rtt)
	return best, chosen.name, err
}

// measureLayout is measure for zstd. Sender and receiver have dictionaries of their own.
func (r *recording) measureLayout(l *layout, level zstd.EncoderLevel, rtt int) (float64, error) {
	c := newCompressor(level)
	defer func() { _ = c.encoder.Close() }()
	received := make([]state, len(r.ticks))
	var here, there dictionary
	total := 0
	for t, now := range r.ticks {
		out := transcript{writes: true}
		base := acknowledged(r.ticks, t-rtt)
		changes := changesOf(base, now)
		l.code(&out, r, base, changes)
		data := c.compress(out.b, here.upTo(t-rtt+1))
		here.sent = append(here.sent, out.b)

		plain, err := decompress(data, there.upTo(t-rtt+1))
		if err != nil {
			return 0, fmt.Errorf("zstd: tick %d: %w", t, err)
		}
		there.sent = append(there.sent, plain)
		in := transcript{b: plain}
		base = acknowledged(received, t-rtt)
		read := l.code(&in, r, base, nil)
		if received[t] = apply(base, read); in.bad || len(in.b) > 0 || !received[t].equal(now) {
			return 0, fmt.Errorf("zstd, %s: tick %d: the receiver has another state", l.name, t)
		}
		if t > rtt && len(changes) > 0 {
			total += len(data)
		}
		release(received, t-rtt)
	}
	return float64(total) / float64(max(len(r.ticks)-rtt-1, 1)), nil
}
