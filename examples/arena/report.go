package main

import (
	"encoding/json"
	"io"
	"math"
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

	Converged   bool   `json:"converged"`   // all worlds were equal at the end
	QuietTicks  int    `json:"quiet_ticks"` // ticks until then
	Checks      int    `json:"checks"`      // comparisons of a client's entity with the record
	Mismatches  int    `json:"mismatches"`  // comparisons that found a difference
	Unchecked   int    `json:"unchecked"`   // comparisons that would have needed an older record
	Interrupted bool   `json:"interrupted"`
	Left        bool   `json:"left"`              // clients that left before the end
	Checked     uint32 `json:"checked,omitempty"` // for those: the newest server tick at which something was compared

	Bytes                       uint64  `json:"bytes"`   // of all datagrams to all clients
	Packets                     uint64  `json:"packets"` // state packets among them
	Lost                        uint64  `json:"lost"`    // packets that the server marked lost
	Refused                     uint64  `json:"refused"` // packets that either side refused
	BytesPerClientPerSecond     float64 `json:"bytes_per_client_per_second"`
	RawBytesPerClientPerSecond  float64 `json:"raw_bytes_per_client_per_second"`  // snapshots of fixed width
	Saved                       float64 `json:"saved"`                            // share of raw that was not sent
	JSONBytesPerClientPerSecond float64 `json:"json_bytes_per_client_per_second"` // the same in JSON
	SavedOfJSON                 float64 `json:"saved_of_json"`
	RoundTripTicks              float64 `json:"round_trip_ticks"` // see outlook; mean of all clients at the end
	RoundTripMs                 float64 `json:"round_trip_ms"`

	Spawns   uint64 `json:"spawns"`
	Despawns uint64 `json:"despawns"`
	Tally    Tally  `json:"tally"`

	MessageBytes    uint64         `json:"message_bytes"`     // of messages and acknowledgements to clients, in bytes
	Messages        uint64         `json:"messages_down"`     // to all clients, each counted once
	MessagesUp      uint64         `json:"messages_up"`       // from all clients
	Resent          uint64         `json:"messages_resent"`   // times that a message to a client was sent again
	Inputs          uint64         `json:"inputs"`            // inputs that arrived in time
	InputsMissed    uint64         `json:"inputs_missed"`     // ticks without an input
	InputsInTime    float64        `json:"inputs_in_time"`    // their share
	InputDelayTicks float64        `json:"input_delay_ticks"` // by how much inputs are ahead of the server, on average
	Announced       announcements  `json:"announced"`
	Received        *messageCounts `json:"received,omitempty"` // by all clients, if they are known

	// Rows has the same for each client.
	Rows []row `json:"per_client"`
}

// row is the result of one client.
type row struct {
	Client      int     `json:"client"`
	Packets     uint64  `json:"packets"`
	Lost        uint64  `json:"lost"`
	Bytes       float64 `json:"bytes_per_second"`
	Raw         float64 `json:"raw_bytes_per_second"`
	Saved       float64 `json:"saved"`
	JSON        float64 `json:"json_bytes_per_second"`
	SavedOfJSON float64 `json:"saved_of_json"`
	RoundTrip   float64 `json:"round_trip_ticks"`
	Messages    uint64  `json:"messages_down"`
	MessagesUp  uint64  `json:"messages_up"`
	Inputs      uint64  `json:"inputs"`
	Missed      uint64  `json:"inputs_missed"`
	InTime      float64 `json:"inputs_in_time"`
	InputDelay  float64 `json:"input_delay_ticks"`
	Mismatches  int     `json:"mismatches"`
	Compared    bool    `json:"compared"` // with the server's world, after the fight
	Equal       bool    `json:"equal"`    // the result
}

// setRoundTrip notes the round trip, given in ticks.
func (r *report) setRoundTrip(ticks float64) {
	r.RoundTripTicks = tenth(ticks)
	r.RoundTripMs = tenth(1000 * ticks / float64(r.TickRate))
}

// ok reports whether the run succeeded. Clients that left early must have compared something.
func (r *report) ok() bool {
	seen := r.Converged || r.Interrupted || r.Left && r.Checks > 0
	return r.Mismatches == 0 && seen
}

// report summarises the fight so far, for some clients.
func (h *host) report(c *config, guests []*guest) *report {
	stats := h.server.Stats()
	r := &report{
		Role: "both", Transport: c.transport, Seed: c.seed,
		TickRate: c.tickRate, SendRate: c.sendRate, Ticks: h.ticks, Bots: c.bots, Clients: len(guests),
		Entities: stats.Entities,
		Spawns:   stats.Spawns, Despawns: stats.Despawns, Tally: h.game.Tally,
		Announced: h.announced,
	}
	var seconds, raw, json float64 // summed over clients
	var roundTrip, inputDelay mean
	for _, g := range guests {
		p := g.peer.Stats()
		span := h.seconds(g)
		bytes := p.Bytes + p.MessageBytes
		seconds += span
		raw += float64(g.raw)
		json += float64(g.json)
		r.Bytes += bytes
		r.MessageBytes += p.MessageBytes
		r.Messages += p.Messages
		r.MessagesUp += p.MessagesReceived
		r.Resent += p.MessagesResent
		r.Inputs += p.Inputs
		r.InputsMissed += p.InputsMissed
		r.Packets += p.Packets
		r.Lost += p.Lost
		r.Refused += p.RefusedPackets
		roundTrip.add(g.view.RoundTrip)
		inputDelay.add(g.view.InputDelay)
		r.Rows = append(r.Rows, row{
			Client: g.number + 1, Packets: p.Packets, Lost: p.Lost,
			Bytes: per(float64(bytes), span), Raw: per(float64(g.raw), span), JSON: per(float64(g.json), span),
			Saved: saved(float64(bytes), float64(g.raw)), SavedOfJSON: saved(float64(bytes), float64(g.json)),
			Messages: p.Messages, MessagesUp: p.MessagesReceived,
			Inputs: p.Inputs, Missed: p.InputsMissed, InTime: inTime(p.Inputs, p.InputsMissed),
			RoundTrip: tenth(g.view.RoundTrip), InputDelay: tenth(g.view.InputDelay),
		})
	}
	r.BytesPerClientPerSecond = per(float64(r.Bytes), seconds)
	r.RawBytesPerClientPerSecond = per(raw, seconds)
	r.JSONBytesPerClientPerSecond = per(json, seconds)
	r.Saved = saved(float64(r.Bytes), raw)
	r.SavedOfJSON = saved(float64(r.Bytes), json)
	r.InputsInTime = inTime(r.Inputs, r.InputsMissed)
	r.InputDelayTicks = tenth(inputDelay.value())
	r.setRoundTrip(roundTrip.value())
	return r
}

// compare records which worlds equal the server's, and reports whether all do.
func (r *report) compare(mirrors []*mirror, t *truth) bool {
	all := true
	for i, m := range mirrors {
		r.Rows[i].Equal, r.Rows[i].Compared = m.equal(t), true
		all = all && r.Rows[i].Equal
	}
	return all
}

// judge adds the results of the checks.
func (r *report) judge(mirrors []*mirror) {
	r.Checks, r.Mismatches, r.Unchecked, r.Received = 0, 0, 0, &messageCounts{}
	for i, m := range mirrors {
		r.Rows[i].Mismatches = m.mismatches
		r.Checks += m.checks
		r.Mismatches += m.mismatches
		r.Unchecked += m.tooOld
		r.Received.add(m.pilot.received)
		r.Refused += m.client.Stats().RefusedPackets
	}
}

// per returns a rate, rounded to one decimal.
func per(amount, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return tenth(amount / seconds)
}

// tenth rounds to one decimal.
func tenth(x float64) float64 { return math.Round(10*x) / 10 }

// inTime returns the share of inputs that were in time, to four decimals.
func inTime(came, missed uint64) float64 {
	if came+missed == 0 {
		return 0
	}
	return math.Round(1e4*float64(came)/float64(came+missed)) / 1e4
}

// saved returns a share, to four decimals.
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
