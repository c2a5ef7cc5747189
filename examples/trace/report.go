package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
)

// report is the result of a run. Means are over the measured ticks, see the package comment;
// figures per peer are means over the peers as well.
type report struct {
	Ticks       int64 `json:"ticks"`        // of the recording, including quiet ones
	EntitiesMax int   `json:"entities_max"` // alive at the same tick

	// Packets is the number of datagrams sent to a peer in the measured ticks, BytesPerTick their
	// mean size per tick, headers and checksums included, but not those of UDP or IP.
	// EntityBytesPerTick excludes the packet headers.
	Packets            int64   `json:"packets"`
	BytesPerTick       float64 `json:"bytes_per_tick"`
	EntityBytesPerTick float64 `json:"entity_bytes_per_tick"`
	KbitPerSecond      float64 `json:"kbit_per_second"` // BytesPerTick at the trace's rate

	// RawBytesPerTick is the quantised state of all live entities at fixed width: the cost of
	// sending everything at every tick.
	RawBytesPerTick float64 `json:"raw_bytes_per_tick"`

	// EncodeNsPerTick is the time of Replicate, for all peers, from capture to the send function.
	// DecodeNsPerTick is the time of Receive and Frame for one client.
	EncodeNsPerTick float64 `json:"encode_ns_per_tick"`
	DecodeNsPerTick float64 `json:"decode_ns_per_tick"`

	Converged  bool `json:"converged"`  // all worlds were equal at the end
	Mismatches int  `json:"mismatches"` // comparisons that failed, at any time

	Clamped          uint64 `json:"clamped"`           // values outside their range, at every capture of the recording
	MissingBaselines uint64 `json:"missing_baselines"` // packets whose baseline the client did not have
	MissingModels    uint64 `json:"-"`                 // packets whose model the client did not have

	Fields []fieldReport `json:"fields"`

	Advice *advice `json:"advice,omitempty"` // with -advice
	Tuning *tuning `json:"tuning,omitempty"` // with -tune

	sentPerTick float64  // entities
	described   []string // the first mismatches
}

// fieldReport is the cost of a field per peer. The entry named after a component is the cost of its
// change bit and of the mask of its fields.
type fieldReport struct {
	Name        string  `json:"name"`
	BitsPerTick float64 `json:"bits_per_tick"`
}

// writeJSON prints the report as one object.
func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// writeTable prints the report as a table.
func (r *report) writeTable(w io.Writer, c *config) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d ticks, up to %d entities\n", c.name(), r.Ticks, r.EntitiesMax)
	fmt.Fprintf(&b, "%s, round trip %d ticks, %s lost, %s doubled, %s held back, MTU %d, seed %d, %s\n\n",
		c.coding, c.rtt, percent(c.loss), percent(c.dup), percent(c.reorder), c.mtu, c.seed, plural(c.peers, "peer"))

	row := func(name string, value float64, unit, note string) {
		line := fmt.Sprintf("%-28s %12.1f  %-12s %s", name, value, unit, note)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("sent to a peer", r.BytesPerTick, "bytes/tick", fmt.Sprintf("%.1f kbit/s, %s", r.KbitPerSecond,
		plural(int(r.Packets), "packet")))
	row("  without packet headers", r.EntityBytesPerTick, "bytes/tick", ratio(r.EntityBytesPerTick, r.RawBytesPerTick))
	row("quantised state as it is", r.RawBytesPerTick, "bytes/tick", "")
	row("Replicate", r.EncodeNsPerTick/1000, "us/tick", plural(c.peers, "peer"))
	row("Receive and Frame", r.DecodeNsPerTick/1000, "us/tick", "one client")

	fmt.Fprintf(&b, "\n%-28s %12s\n", "field", "bits/tick")
	total := r.EntityBytesPerTick * 8
	field := func(name string, bits float64) {
		share := 0.0
		if total > 0 {
			share = bits / total
		}
		row(name, bits, fmt.Sprintf("%.1f %%", share*100), "")
	}
	rest := total
	for _, f := range r.Fields {
		name := f.Name
		if !strings.Contains(name, ".") {
			name += ", what changed"
		}
		field(name, f.BitsPerTick)
		rest -= f.BitsPerTick
	}
	field("entities and baselines", rest)

	fmt.Fprintf(&b, "\nworlds equal in the end: %s; mismatches: %d; values clamped: %d; missing baselines: %d",
		yesNo(r.Converged), r.Mismatches, r.Clamped, r.MissingBaselines)
	if c.peerCoding() == replication.Compact {
		fmt.Fprintf(&b, "; missing models: %d", r.MissingModels)
	}
	b.WriteString("\n")
	if r.Advice != nil {
		r.Advice.writeTable(&b)
		if c.peerCoding() == replication.Packed && c.tables == "" {
			b.WriteString("\n-tune instead of -advice makes tables that write the same steps in fewer bits\n")
		}
	}
	if r.Tuning != nil {
		r.Tuning.writeTable(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func percent(share float64) string { return fmt.Sprintf("%.4g %%", share*100) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ratio formats a size as a part of raw.
func ratio(size, raw float64) string {
	if size == 0 || raw == 0 {
		return ""
	}
	return fmt.Sprintf("1/%.1f of the state", raw/size)
}
