package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// report is how it went. Figures are of the fight; the quiet ticks after it
// only serve to compare.
type report struct {
	Role      string `json:"role"` // both, server or clients
	Transport string `json:"transport"`
	Seed      uint64 `json:"seed"`
	TickRate  int    `json:"tick_rate"`
	SendRate  int    `json:"send_rate"`
	Ticks     int    `json:"ticks"`
	Bots      int    `json:"bots"`
	Clients   int    `json:"clients"`
	Entities  int    `json:"entities"` // when the fight ended

	Converged   bool `json:"converged"`   // all worlds were equal in the end
	QuietTicks  int  `json:"quiet_ticks"` // that it took until then
	Checks      int  `json:"checks"`      // of a mirrored entity against the record
	Mismatches  int  `json:"mismatches"`  // that found it other than it was at its tick
	Unchecked   int  `json:"unchecked"`   // that would have needed an older record
	Interrupted bool `json:"interrupted"`

	Bytes                      uint64  `json:"bytes"`   // of all datagrams to all clients
	Packets                    uint64  `json:"packets"` // that they are, but for those of messages
	Lost                       uint64  `json:"lost"`    // that the server believes lost
	Refused                    uint64  `json:"refused"` // that made no sense to either side
	BytesPerClientPerSecond    float64 `json:"bytes_per_client_per_second"`
	RawBytesPerClientPerSecond float64 `json:"raw_bytes_per_client_per_second"` // snapshots of fixed width
	Saved                      float64 `json:"saved"`                           // share of raw that was not sent
	RoundTripTicks             float64 `json:"round_trip_ticks"`                // in the simulated weather
	RoundTripMs                float64 `json:"round_trip_ms"`

	Spawns   uint64 `json:"spawns"`
	Despawns uint64 `json:"despawns"`
	Tally    Tally  `json:"tally"`

	MessageBytes  uint64  `json:"message_bytes"`    // of messages, and what else is told to clients, in bytes
	Messages      uint64  `json:"messages_down"`    // to all clients, each counted once
	MessagesUp    uint64  `json:"messages_up"`      // from all clients
	Resent        uint64  `json:"messages_resent"`  // times that one to a client was sent again
	Inputs        uint64  `json:"inputs"`           // that were there in time
	InputsMissed  uint64  `json:"inputs_missed"`    // ticks whose input was not
	InputsInTime  float64 `json:"inputs_in_time"`   // the share that was
	LeadTicks     float64 `json:"lead_ticks"`       // by which inputs are ahead of the server, on average
	MeasuredTicks float64 `json:"round_trip_heard"` // the round trip as clients measure it, in ticks, on average
	Talk          talk    `json:"talk"`
	Heard         *news   `json:"heard,omitempty"` // by all clients, where they are known

	// Rows are the same for each client.
	Rows []row `json:"per_client"`
}

// row is about one client.
type row struct {
	Client     int     `json:"client"`
	Packets    uint64  `json:"packets"`
	Lost       uint64  `json:"lost"`
	Bytes      float64 `json:"bytes_per_second"`
	Raw        float64 `json:"raw_bytes_per_second"`
	Saved      float64 `json:"saved"`
	RoundTrip  float64 `json:"round_trip_ticks"`
	Messages   uint64  `json:"messages_down"`
	MessagesUp uint64  `json:"messages_up"`
	Inputs     uint64  `json:"inputs"`
	Missed     uint64  `json:"inputs_missed"`
	InTime     float64 `json:"inputs_in_time"`
	Lead       float64 `json:"lead_ticks"`
	Measured   float64 `json:"round_trip_heard"`
	Mismatches int     `json:"mismatches"`
	Equal      bool    `json:"equal"`
}

// ms is the duration of ticks in milliseconds.
func (r *report) ms(ticks float64) float64 {
	return math.Round(1e4*ticks/float64(r.TickRate)) / 10
}

// ok tells whether the run shows what it should.
func (r *report) ok() bool {
	return r.Mismatches == 0 && (r.Converged || r.Interrupted)
}

// report sums up the fight so far.
func (h *host) report(c *config) *report {
	stats := h.server.Stats()
	r := &report{
		Role: "both", Transport: c.transport, Seed: c.seed,
		TickRate: c.tickRate, SendRate: c.sendRate, Ticks: h.ticks, Bots: c.bots, Clients: len(h.guests), Entities: stats.Entities,
		Spawns: stats.Spawns, Despawns: stats.Despawns, Tally: h.game.Tally,
		Talk: h.talk,
	}
	var seconds, raw float64 // summed over clients
	for i, g := range h.guests {
		p := g.peer.Stats()
		until := h.ticks
		if g.gone() {
			until = g.left
		}
		span := float64(until-g.joined) / float64(c.tickRate)
		seconds += span
		raw += float64(g.rawBits) / 8
		bytes := p.Bytes + p.MessageBytes
		r.Bytes += bytes
		r.MessageBytes += p.MessageBytes
		r.Messages += p.Messages
		r.MessagesUp += p.MessagesReceived
		r.Resent += p.MessagesResent
		r.Inputs += p.Inputs
		r.InputsMissed += p.InputsMissed
		r.LeadTicks += g.view.Lead / float64(len(h.guests))
		r.MeasuredTicks += g.view.RoundTrip / float64(len(h.guests))
		r.Packets += p.Packets
		r.Lost += p.Lost
		r.Refused += p.RefusedPackets
		roundTrip := math.Round(10*(g.line.delay()+g.upDelay)) / 10
		r.RoundTripTicks += roundTrip / float64(len(h.guests))
		r.Rows = append(r.Rows, row{
			Client: i + 1, Packets: p.Packets, Lost: p.Lost,
			Bytes: per(float64(bytes), span), Raw: per(float64(g.rawBits)/8, span),
			Saved: saved(float64(bytes), float64(g.rawBits)/8), RoundTrip: roundTrip,
			Messages: p.Messages, MessagesUp: p.MessagesReceived,
			Inputs: p.Inputs, Missed: p.InputsMissed, InTime: inTime(p.Inputs, p.InputsMissed),
			Lead: math.Round(10*g.view.Lead) / 10, Measured: math.Round(10*g.view.RoundTrip) / 10,
		})
	}
	r.BytesPerClientPerSecond = per(float64(r.Bytes), seconds)
	r.RawBytesPerClientPerSecond = per(raw, seconds)
	r.Saved = saved(float64(r.Bytes), raw)
	r.RoundTripTicks = math.Round(10*r.RoundTripTicks) / 10
	r.InputsInTime = inTime(r.Inputs, r.InputsMissed)
	r.LeadTicks = math.Round(10*r.LeadTicks) / 10
	r.MeasuredTicks = math.Round(10*r.MeasuredTicks) / 10
	r.RoundTripMs = r.ms(r.RoundTripTicks)
	return r
}

// compare notes which worlds equal the server's, and tells whether all do.
func (r *report) compare(mirrors []*mirror, t *truth) bool {
	all := true
	for i, m := range mirrors {
		r.Rows[i].Equal = m.equal(t)
		all = all && r.Rows[i].Equal
	}
	return all
}

// judge adds what the checks found.
func (r *report) judge(mirrors []*mirror) {
	r.Checks, r.Mismatches, r.Unchecked, r.Heard = 0, 0, 0, &news{}
	for i, m := range mirrors {
		r.Rows[i].Mismatches = m.mismatches
		r.Checks += m.checks
		r.Mismatches += m.mismatches
		r.Unchecked += m.tooOld
		r.Heard.add(m.pilot.news)
		r.Refused += m.client.Stats().RefusedPackets
	}
}

// per is a rate to one decimal.
func per(amount, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return math.Round(10*amount/seconds) / 10
}

// inTime is the share of inputs that were there in time, to four decimals.
func inTime(came, missed uint64) float64 {
	if came+missed == 0 {
		return 0
	}
	return math.Round(1e4*float64(came)/float64(came+missed)) / 1e4
}

// saved is a share to four decimals.
func saved(bytes, raw float64) float64 {
	if raw == 0 {
		return 0
	}
	return math.Round(1e4*(1-bytes/raw)) / 1e4
}

// writeJSON writes the report as one object.
func (r *report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// writeTable writes the report for people.
func (r *report) writeTable(out io.Writer) error {
	if r.Clients == 0 {
		_, err := fmt.Fprintln(out, r.verdict())
		return err
	}
	var text []byte
	line := func(name string, packets, lost uint64, bytes, raw, saved, ticks float64, mismatches int, equal bool) {
		world := "differs"
		if equal {
			world = "equal"
		}
		text = fmt.Appendf(text, "%s\t%d\t%d\t%.0f\t%.0f\t%.1f %%\t%.1f ticks, %.0f ms\t%d\t%s\t\n",
			name, packets, lost, bytes, raw, 100*saved, ticks, r.ms(ticks), mismatches, world)
	}
	text = append(text, "client\tpackets\tlost\tbytes/s\traw bytes/s\tsaved\tround trip\tmismatches\tworld\t\n"...)
	for _, row := range r.Rows {
		line(strconv.Itoa(row.Client), row.Packets, row.Lost, row.Bytes, row.Raw, row.Saved, row.RoundTrip,
			row.Mismatches, row.Equal)
	}
	line("all", r.Packets, r.Lost, r.BytesPerClientPerSecond, r.RawBytesPerClientPerSecond, r.Saved, r.RoundTripTicks,
		r.Mismatches, r.Converged)

	aligned := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	if _, err := aligned.Write(text); err != nil {
		return err
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	t := r.Tally
	_, err := fmt.Fprintf(out, "\n%d ticks, %d entities, %d spawned, %d despawned: "+
		"%d shots, %d hits, %d deaths, %d respawns, %d pick-ups.\n"+
		"%d players joined, %d left. Messages: %d to clients (%d resent), %d from them. Inputs: %d in time, %d missed (%.2f %% in time), "+
		"%.1f ticks ahead; clients measure %.1f ticks of round trip.\n%s\n",
		r.Ticks, r.Entities, r.Spawns, r.Despawns, t.Shots, t.Hits, t.Deaths, t.Respawns, t.Pickups,
		r.Talk.Joins, r.Talk.Leaves, r.Messages, r.Resent, r.MessagesUp, r.Inputs, r.InputsMissed, 100*r.InputsInTime,
		r.LeadTicks, r.MeasuredTicks, r.verdict())
	return err
}

// verdict is the last sentence.
func (r *report) verdict() string {
	switch {
	case r.Clients == 0:
		return "No client came."
	case r.Mismatches > 0:
		return fmt.Sprintf("In %d of %d checks a client showed an entity other than it was on the server.", r.Mismatches, r.Checks)
	case r.Converged:
		return fmt.Sprintf("All worlds came out equal, %d ticks after the last change, and all %d checks on the way went well.",
			r.QuietTicks, r.Checks)
	case r.Interrupted:
		return "Interrupted before the worlds could be compared."
	default:
		return "Not all worlds came out equal."
	}
}
