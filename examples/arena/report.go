package main

import (
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication/predict"
)

// report is the result of a run. The figures are those of the fight; the quiet ticks after it only
// serve to compare the worlds.
type report struct {
	Role      string `json:"role"` // both, server or clients
	Transport string `json:"transport"`
	Seed      uint64 `json:"seed"`
	TickRate  int    `json:"tick_rate"`
	SendRate  int    `json:"send_rate"`
	Ticks     int    `json:"ticks"`
	Bots      int    `json:"bots"`
	Clients   int    `json:"clients"`
	Entities  int    `json:"entities"` // at the end of the fight

	Converged   bool `json:"converged"`   // all worlds were equal at the end
	QuietTicks  int  `json:"quiet_ticks"` // ticks until then
	Checks      int  `json:"checks"`      // comparisons of an entity with the record, or with a hash of the server
	Mismatches  int  `json:"mismatches"`  // comparisons that found a difference
	Unchecked   int  `json:"unchecked"`   // comparisons that would have needed an older record
	Interrupted bool `json:"interrupted"`
	Left        bool `json:"left"` // clients that left before the end

	Bytes                       uint64  `json:"bytes"`   // of all datagrams to all clients
	Packets                     uint64  `json:"packets"` // state packets among them
	Lost                        uint64  `json:"lost"`    // packets that the server marked lost
	Refused                     uint64  `json:"refused"` // packets that either side refused
	BytesPerClientPerSecond     float64 `json:"bytes_per_client_per_second"`
	RawBytesPerClientPerSecond  float64 `json:"raw_bytes_per_client_per_second"`  // snapshots of fixed width
	Saved                       float64 `json:"saved"`                            // share of raw that was not sent
	JSONBytesPerClientPerSecond float64 `json:"json_bytes_per_client_per_second"` // the same in JSON
	SavedOfJSON                 float64 `json:"saved_of_json"`
	RoundTripTicks              float64 `json:"round_trip_ticks"` // mean of all clients at the end
	RoundTripMs                 float64 `json:"round_trip_ms"`

	Spawns    uint64             `json:"spawns"`
	Despawns  uint64             `json:"despawns"`
	Tally     game.Tally         `json:"tally"`
	Announced game.Announcements `json:"announced"`

	MessageBytes uint64  `json:"message_bytes"`  // of messages and acknowledgements to clients, in bytes
	Inputs       uint64  `json:"inputs"`         // inputs that arrived in time
	InputsMissed uint64  `json:"inputs_missed"`  // ticks without an input
	InputsInTime float64 `json:"inputs_in_time"` // their share

	Rollbacks   uint64 `json:"rollbacks"`   // of the clients of this process, which predict their own ships
	Again       uint64 `json:"resimulated"` // ticks
	Corrections uint64 `json:"corrections"` // of what is shown

	// Rows has the same for each client.
	Recording *recorded `json:"recording,omitempty"`

	Rows []row `json:"per_client"`
}

// row is the result of one client.
type row struct {
	Client     int     `json:"client"`
	Packets    uint64  `json:"packets"`
	Lost       uint64  `json:"lost"`
	Bytes      float64 `json:"bytes_per_second"`
	RoundTrip  float64 `json:"round_trip_ticks"`
	InputDelay float64 `json:"input_delay_ticks,omitempty"` // by how much inputs are ahead of the server
	Delay      float64 `json:"shown_late_ms,omitempty"`     // by interpolation
	Starved    float64 `json:"starved,omitempty"`           // share of the frames with nothing new to show
	Mismatches int     `json:"mismatches"`
	Compared   bool    `json:"compared"` // with the server's world, after the fight
	Equal      bool    `json:"equal"`    // the result

	left            bool    // before the end
	seconds         float64 // for which it was connected
	bytes, refused  uint64
	inputs, missed  uint64
	checks, tooOld  int
	predicted       predict.Stats
	delay           time.Duration // of interpolation
	starved, frames uint64        // of interpolation
}

// ok reports whether the run succeeded.
func (r *report) ok() bool {
	return r.Mismatches == 0 && (r.Recording == nil || r.Recording.Error == "") &&
		(r.Converged || r.Interrupted || r.Left || r.Clients == 0)
}

// rows returns what is known of each guest.
func (m *match) rows() (rows []row) {
	for _, g := range m.guests {
		p := g.peer.Stats()
		row := row{
			Packets: p.Packets, Lost: p.Lost, RoundTrip: m.ticksOf(p.RoundTrip), Compared: g.compared, Equal: g.equal,
			left: g.left >= 0, seconds: m.seconds(g), bytes: p.Bytes + p.MessageBytes, refused: p.RefusedPackets,
			inputs: p.Inputs, missed: p.InputsMissed,
		}
		if client := g.client; client != nil {
			s := client.Client.Stats()
			row.RoundTrip, row.InputDelay = m.ticksOf(s.RoundTrip), m.ticksOf(s.InputDelay)
			row.Mismatches, row.checks, row.tooOld = client.mismatches, client.checks, client.tooOld
			row.refused += s.RefusedPackets
			row.predicted = client.predicted()
		} else {
			row.checks, row.Mismatches = g.checks, g.wrong
			if g.compared {
				row.checks++
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// rows returns what is known of each client of a crew.
func (w *crew) rows() (rows []row) {
	for _, client := range w.clients {
		s, shown := client.Client.Stats(), client.Shown.Stats()
		row := row{
			Packets: s.Packets, RoundTrip: client.ticks(s.RoundTrip), InputDelay: client.ticks(s.InputDelay),
			Delay:   tenth(max(0, 1000*shown.Delay.Seconds())),
			Starved: saved(float64(shown.Frames-shown.Starved), float64(shown.Frames)), Mismatches: int(s.Diverged),
			Compared: client.Compared, Equal: client.Equal, left: w.hasLeft(client), seconds: w.played().Seconds(),
			bytes: s.Bytes + s.MessageBytes, refused: s.RefusedPackets, missed: s.InputsMissed,
			checks: int(s.HashesCompared), delay: shown.Delay, starved: shown.Starved, frames: shown.Frames,
			predicted: client.predicted(),
		}
		if client.Compared {
			row.checks++
		}
		rows = append(rows, row)
	}
	return rows
}

// report summarises the fight so far.
func (m *match) report() *report {
	c, stats := m.c, m.server.Stats()
	r := &report{
		Role: "both", Transport: c.transport, Seed: c.seed,
		TickRate: c.tickRate, SendRate: c.sendRate, Ticks: m.ticks, Bots: c.bots,
		Entities: stats.Entities, Spawns: stats.Spawns, Despawns: stats.Despawns, Tally: m.host.Game.Tally,
		Announced: m.host.Announced, Rows: m.rows(),
	}
	if c.serve != "" {
		r.Role, r.Transport = "server", "udp"
	} else if c.http != "" {
		r.Role, r.Transport = "server", "web"
	}
	for _, g := range m.guests {
		r.MessageBytes += g.peer.Stats().MessageBytes
	}
	r.RawBytesPerClientPerSecond, r.JSONBytesPerClientPerSecond = m.costs.bytesPerSecond(c.sendRate)
	r.sumUp()
	r.Saved = saved(r.BytesPerClientPerSecond, r.RawBytesPerClientPerSecond)
	r.SavedOfJSON = saved(r.BytesPerClientPerSecond, r.JSONBytesPerClientPerSecond)
	return r
}

// judge adds the results of the comparisons.
func (m *match) judge(r *report) {
	r.Checks, r.Mismatches, r.Refused = 0, 0, 0
	for i, now := range m.rows()[:len(r.Rows)] {
		row := &r.Rows[i]
		row.Mismatches, row.Compared, row.Equal, row.left = now.Mismatches, now.Compared, now.Equal, now.left
		r.Checks += now.checks
		r.Mismatches += now.Mismatches
		r.Unchecked += now.tooOld
		r.Refused += now.refused
	}
}

// reportOf is the report of clients that run in this process, with a server elsewhere.
func reportOf(crews []*crew, interrupted bool) *report {
	c := &crews[0].c
	r := &report{
		Role: "clients", Transport: "udp", Seed: c.seed, TickRate: c.tickRate,
		Interrupted: interrupted, Converged: true, Ticks: crews[0].ticks(crews[0].played()),
	}
	for _, w := range crews {
		r.Rows = append(r.Rows, w.rows()...)
		for _, client := range w.clients {
			r.Entities = max(r.Entities, client.reader.Census(client.Client.Entities()).Entities)
			r.Converged = r.Converged && client.Equal
			r.Left = r.Left || w.hasLeft(client)
		}
	}
	r.sumUp()
	return r
}

// sumUp completes the rows, and sums up what they know.
func (r *report) sumUp() {
	seconds, roundTrip := 0.0, mean{}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Client, row.Bytes = i+1, per(float64(row.bytes), row.seconds)
		row.RoundTrip, row.InputDelay = tenth(row.RoundTrip), tenth(row.InputDelay)
		seconds += row.seconds
		roundTrip.add(row.RoundTrip)
		r.Bytes += row.bytes
		r.Packets += row.Packets
		r.Lost += row.Lost
		r.Inputs += row.inputs
		r.InputsMissed += row.missed
		r.Checks += row.checks
		r.Mismatches += row.Mismatches
		r.Refused += row.refused
		r.Rollbacks += row.predicted.Rollbacks
		r.Again += row.predicted.Again
		r.Corrections += row.predicted.Corrections
	}
	r.Clients = len(r.Rows)
	r.InputsInTime = saved(float64(r.InputsMissed), float64(r.Inputs+r.InputsMissed))
	r.BytesPerClientPerSecond = per(float64(r.Bytes), seconds)
	r.RoundTripTicks = tenth(roundTrip.value())
	r.RoundTripMs = tenth(1000 * roundTrip.value() / float64(r.TickRate))
}

// mean is the mean of values, of which 0 means unknown.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(value float64) {
	if value != 0 {
		m.sum += value
		m.n++
	}
}

// value is 0 if nothing is known.
func (m *mean) value() float64 { return m.sum / float64(max(m.n, 1)) }

// percentiles returns five of them: 0, 50, 95, 99 and 100.
func percentiles(rows []row, value func(*row) float64) (of [5]float64) {
	var values []float64
	for i := range rows {
		values = append(values, value(&rows[i]))
	}
	slices.Sort(values)
	for i, share := range [...]float64{0, 0.5, 0.95, 0.99, 1} {
		of[i] = values[int(math.Round(share*float64(len(values)-1)))]
	}
	return of
}

// per returns a rate, rounded to one decimal; 0 for no time.
func per(amount, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return tenth(amount / seconds)
}

// tenth rounds to one decimal.
func tenth(x float64) float64 { return math.Round(10*x) / 10 }

// saved returns the share of all that a part leaves, to four decimals; 0 of nothing.
func saved(part, all float64) float64 {
	if all == 0 {
		return 0
	}
	return math.Round(1e4*(1-part/all)) / 1e4
}

// writeJSON writes the report as one object.
func (r *report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
