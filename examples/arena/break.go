//go:build !js

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// breaker is the network between the match and browsers, both ways, with the settings of the page.
type breaker struct {
	network *netsim.Network

	mu      sync.Mutex
	profile netsim.Profile
	preset  string
	healed  bool        // for good
	dark    *time.Timer // ends the blackout; nil without one
	lightAt time.Time   // when it ends

	noted   settings // by changes
	changed time.Time
	began   bool // a blackout, which changes has not returned yet
}

const blackout = 5 * time.Second

// settings is the network as the page writes it.
type settings struct {
	Loss          float64 `json:"loss"`
	LatencyMs     float64 `json:"latencyMs"` // one way
	JitterMs      float64 `json:"jitterMs"`
	Duplicate     float64 `json:"duplicate"`
	Reorder       float64 `json:"reorder"`
	BandwidthKbit float64 `json:"bandwidthKbit"` // 0: unlimited
	Preset        string  `json:"preset"`
	BlackoutMs    float64 `json:"blackoutMs"` // left; 0: none
	Frozen        bool    `json:"frozen"`
}

func newBreaker(c *config) *breaker {
	b := &breaker{network: netsim.NewNetwork(c.seed, c.network()), profile: c.network()}
	b.noted = b.settings()
	return b
}

// apply is called with the lock.
func (b *breaker) apply() {
	switch {
	case b.healed:
		b.network.Set(netsim.Profile{})
	case b.dark != nil:
		b.network.Set(netsim.Profile{Loss: 1})
	default:
		b.network.Set(b.profile)
	}
}

// heal makes the network perfect for good.
func (b *breaker) heal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.healed = true
	b.apply()
}

func (b *breaker) close() {
	b.mu.Lock()
	if b.dark != nil {
		b.dark.Stop()
	}
	b.healed = true
	b.mu.Unlock()
	b.network.Close()
}

// change makes the changes of a request, all or none, and returns its action.
func (b *breaker) change(request io.Reader) (action string, err error) {
	var r struct {
		Loss, LatencyMs, JitterMs, Duplicate, Reorder, BandwidthKbit *float64
		Preset, Action                                               string
	}
	decoder := json.NewDecoder(request)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return "", fmt.Errorf("this is no JSON object with settings of the network: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p, preset := b.profile, b.preset
	if r.Preset != "" {
		if p, err = netsim.ParseProfile(r.Preset); err != nil {
			return "", err
		}
		preset = r.Preset
	}
	const most = 1e7 // before the profile is checked, so that nothing overflows
	set := func(value *float64, to func(v float64)) {
		if value != nil {
			preset = ""
			to(max(-1, min(*value, most)))
		}
	}
	ms := func(of *time.Duration) func(v float64) {
		return func(v float64) { *of = time.Duration(v * float64(time.Millisecond)) }
	}
	set(r.Loss, func(v float64) { p.Loss = v })
	set(r.LatencyMs, ms(&p.Latency))
	set(r.JitterMs, ms(&p.Jitter))
	set(r.Duplicate, func(v float64) { p.Duplicate = v })
	set(r.Reorder, func(v float64) { p.Reorder = v })
	set(r.BandwidthKbit, func(v float64) { p.Bandwidth = int(v * 1000 / 8) })
	if p.Reorder > 0 && p.ReorderBy == 0 {
		p.ReorderBy = overtaking
	}
	if err := p.Validate(); err != nil {
		return "", err
	}
	b.profile, b.preset, b.changed = p, preset, time.Now()
	if r.Action == "blackout" && b.dark == nil {
		b.lightAt, b.began = time.Now().Add(blackout), true
		b.dark = time.AfterFunc(blackout, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dark = nil
			if !b.healed {
				b.apply()
			}
		})
	}
	if !b.healed {
		b.apply()
	}
	return r.Action, nil
}

// overtaking is how late packets are that others overtake.
const overtaking = 100 * time.Millisecond

func (b *breaker) settings() settings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.present()
}

// present is settings with the lock.
func (b *breaker) present() settings {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	p := &b.profile
	left := time.Duration(0)
	if b.dark != nil {
		left = max(time.Until(b.lightAt), time.Millisecond)
	}
	return settings{
		Loss: p.Loss, LatencyMs: ms(p.Latency), JitterMs: ms(p.Jitter), Duplicate: p.Duplicate, Reorder: p.Reorder,
		BandwidthKbit: float64(p.Bandwidth) * 8 / 1000, Preset: b.preset, BlackoutMs: ms(left),
	}
}

// restTime is for how long sliders rest before changes returns what they set.
const restTime = 400 * time.Millisecond

// changes describes what was changed since the last call; it is empty if nothing was.
func (b *breaker) changes() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var words []string
	if b.began {
		words, b.began = append(words, "blackout"), false
	}
	now, before := b.present(), b.noted
	chosen := now.Preset != "" && now.Preset != before.Preset
	if chosen {
		words = append(words, now.Preset+" network")
	} else if time.Since(b.changed) < restTime {
		return strings.Join(words, ", ")
	}
	b.noted = now
	for _, of := range []struct {
		name        string
		now, before float64
		unit        string
	}{
		{"loss", 100 * now.Loss, 100 * before.Loss, " %"},
		{"latency", now.LatencyMs, before.LatencyMs, " ms"},
		{"jitter", now.JitterMs, before.JitterMs, " ms"},
		{"duplication", 100 * now.Duplicate, 100 * before.Duplicate, " %"},
		{"reordering", 100 * now.Reorder, 100 * before.Reorder, " %"},
		{"bandwidth", now.BandwidthKbit, before.BandwidthKbit, " kbit/s"},
	} {
		switch {
		case chosen || of.now == of.before:
		case of.name == "bandwidth" && of.now == 0:
			words = append(words, "bandwidth unlimited")
		default:
			words = append(words, fmt.Sprintf("%s %.4g%s", of.name, of.now, of.unit))
		}
	}
	return strings.Join(words, ", ")
}

// copyTo lets the terminal show the network. It is called on the loop of the match.
func (b *breaker) copyTo(c *config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &b.profile
	c.loss, c.latency, c.jitter, c.dup, c.reorder = p.Loss, p.Latency, p.Jitter, p.Duplicate, p.Reorder
}
