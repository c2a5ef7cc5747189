package netsim

import (
	"fmt"
	"math"
	"time"
)

// Profile describes one direction of a network by the clock, for a [Network], and for simulations in ticks by
// [Profile.Config]. The zero value is a perfect network. Shares are between 0 and 1, durations between 0 and 10
// minutes.
type Profile struct {
	// Latency is the time from one end to the other, half of a round trip.
	Latency time.Duration

	// Jitter varies the latency of each packet uniformly by up to that much in both directions; the latency never falls
	// below zero.
	Jitter time.Duration

	// Loss is the share of packets that vanish, each independently.
	Loss float64

	// OutageEvery is the mean time until the next outage begins, during which every packet is lost; 0 means no outages.
	// OutageLength is their mean length.
	OutageEvery, OutageLength time.Duration

	// Duplicate is the share of packets that arrive twice.
	Duplicate float64

	// Reorder is the share of packets that are delayed by up to ReorderBy more, so that later ones overtake them.
	Reorder   float64
	ReorderBy time.Duration

	// Corrupt is the share of packets that arrive damaged, see [Config.Corrupt].
	Corrupt float64

	// Bandwidth is the number of bytes per second that pass; 0 is unlimited. QueueLimit is the number of bytes that may
	// wait for it, 65,536 if 0; packets beyond that are dropped. Both are at most 268,435,456.
	Bandwidth, QueueLimit int
}

// What players meet, from good to bad, each in one direction. For comparison, as measured: fixed lines have round
// trips of about 10 to 40 ms to a server nearby, and most of them lose less than 0.4 % in busy hours (FCC, Measuring
// Broadband America); LTE and 5G have about 30 to 80 ms, and interruptions of 50 to 500 ms when a phone changes
// cells. Home and Mobile are somewhat worse, since Wi-Fi and the way to a server farther off come on top, and since
// players remember the bad evenings.
//
//	         one way      jitter    lost    outages               bandwidth
//	LAN         1 ms    ± 0.5 ms    none    none                  unlimited
//	Home       25 ms    ±   8 ms    0.5 %   none                  10 Mbit/s
//	Mobile     60 ms    ±  25 ms    2 %     200 ms every 20 s     2 Mbit/s
//	Awful     150 ms    ±  70 ms    10 %    500 ms every 10 s     256 kbit/s
//
// Packets are also duplicated and reordered, except in LAN, and some of Awful are damaged.
var (
	// LAN is a cable across the room.
	LAN = Profile{Latency: time.Millisecond, Jitter: time.Millisecond / 2}

	// Home is a fixed line with Wi-Fi, to a server in the same part of a continent.
	Home = Profile{
		Latency:   25 * time.Millisecond,
		Jitter:    8 * time.Millisecond,
		Loss:      0.005,
		Duplicate: 0.0005,
		Reorder:   0.002,
		ReorderBy: 20 * time.Millisecond,
		Bandwidth: 10e6 / 8,
	}

	// Mobile is a phone indoors, or Wi-Fi that many share.
	Mobile = Profile{
		Latency:      60 * time.Millisecond,
		Jitter:       25 * time.Millisecond,
		Loss:         0.02,
		OutageEvery:  20 * time.Second,
		OutageLength: 200 * time.Millisecond,
		Duplicate:    0.005,
		Reorder:      0.01,
		ReorderBy:    50 * time.Millisecond,
		Bandwidth:    2e6 / 8,
	}

	// Awful is a phone on a train, to another continent.
	Awful = Profile{
		Latency:      150 * time.Millisecond,
		Jitter:       70 * time.Millisecond,
		Loss:         0.1,
		OutageEvery:  10 * time.Second,
		OutageLength: 500 * time.Millisecond,
		Duplicate:    0.02,
		Reorder:      0.05,
		ReorderBy:    150 * time.Millisecond,
		Corrupt:      0.001,
		Bandwidth:    256e3 / 8,
		QueueLimit:   32 << 10,
	}

	// Hostile is a test bench, not a network: a quarter lost, a quarter duplicated, a third reordered, a tenth damaged,
	// and outages.
	Hostile = Profile{
		Latency:      100 * time.Millisecond,
		Jitter:       100 * time.Millisecond,
		Loss:         0.25,
		OutageEvery:  5 * time.Second,
		OutageLength: 500 * time.Millisecond,
		Duplicate:    0.25,
		Reorder:      0.33,
		ReorderBy:    time.Second,
		Corrupt:      0.1,
	}
)

// ParseProfile returns the profile of that name, as for a command-line flag: perfect, lan, home, mobile, awful or
// hostile.
func ParseProfile(name string) (Profile, error) {
	switch name {
	case "perfect":
		return Profile{}, nil
	case "lan":
		return LAN, nil
	case "home":
		return Home, nil
	case "mobile":
		return Mobile, nil
	case "awful":
		return Awful, nil
	case "hostile":
		return Hostile, nil
	}
	return Profile{}, fmt.Errorf("netsim: no profile is named %q; there are perfect, lan, home, mobile, awful, hostile",
		name)
}

const (
	maxDuration = 10 * time.Minute
	maxRate     = 1000 // steps per second
)

// Validate returns an error that names the first invalid field, its value and the allowed range. [NewNetwork] and
// [Network.Set] panic with it; callers that take a Profile from a person should call Validate first.
func (p Profile) Validate() error {
	for _, f := range []struct {
		name string
		val  time.Duration
	}{
		{"Latency", p.Latency},
		{"Jitter", p.Jitter},
		{"OutageEvery", p.OutageEvery},
		{"OutageLength", p.OutageLength},
		{"ReorderBy", p.ReorderBy},
	} {
		if f.val < 0 || f.val > maxDuration {
			return fmt.Errorf("netsim: Profile.%s is %v, but must be between 0 and 10 minutes", f.name, f.val)
		}
	}
	for _, f := range []struct {
		name string
		val  float64
		max  float64
	}{
		{"Loss", p.Loss, 1},
		{"Duplicate", p.Duplicate, 1},
		{"Reorder", p.Reorder, 1},
		{"Corrupt", p.Corrupt, 1},
		{"Bandwidth", float64(p.Bandwidth), maxBytes},
		{"QueueLimit", float64(p.QueueLimit), maxBytes},
	} {
		if math.IsNaN(f.val) || f.val < 0 || f.val > f.max {
			return fmt.Errorf("netsim: Profile.%s is %v, but must be between 0 and %v", f.name, f.val, f.max)
		}
	}
	if p.OutageEvery > 0 && p.OutageLength == 0 {
		return fmt.Errorf("netsim: Profile.OutageLength is 0, but must be positive as OutageEvery is %v", p.OutageEvery)
	}
	if p.Reorder > 0 && p.ReorderBy == 0 {
		return fmt.Errorf("netsim: Profile.ReorderBy is 0, but must be positive as Reorder is %v", p.Reorder)
	}
	return nil
}

// Config converts a profile for a [Link] or a [Pipe] with perSecond steps a second. ReorderBy becomes at least one
// step, as do outages.
//
// Panics if the profile is not valid, or perSecond is not between 1 and 1,000.
func (p Profile) Config(perSecond int) Config {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	if perSecond < 1 || perSecond > maxRate {
		panic(fmt.Sprintf("netsim: Profile.Config(%d): give the steps per second, from 1 to 1,000", perSecond))
	}
	rate := float64(perSecond)
	cfg := Config{
		Latency:    Ticks(p.Latency, rate),
		Jitter:     Ticks(p.Jitter, rate),
		Loss:       p.Loss,
		Duplicate:  p.Duplicate,
		Reorder:    p.Reorder,
		Corrupt:    p.Corrupt,
		QueueLimit: p.QueueLimit,
	}
	if p.OutageEvery > 0 {
		cfg.Burst = Burst{
			Start:  min(1/Ticks(p.OutageEvery, rate), 1),
			Length: max(Ticks(p.OutageLength, rate), 1),
		}
	}
	if p.Reorder > 0 {
		cfg.ReorderBy = max(int(math.Round(Ticks(p.ReorderBy, rate))), 1)
	}
	if p.Bandwidth > 0 {
		cfg.Bandwidth = max(p.Bandwidth/perSecond, 1)
	}
	return cfg
}
