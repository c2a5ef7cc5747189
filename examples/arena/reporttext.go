package main

import (
	"fmt"
	"io"
	"strings"
)

// manyRows is how many clients have rows in the table; of more it has percentiles.
const manyRows = 12

// writeText writes the report as text, in lines of at most so many columns.
func (r *report) writeText(out io.Writer, columns int) error {
	text := r.verdict()
	if r.Clients > 0 {
		table := r.table()
		if len(r.Rows) > manyRows {
			table, text = r.percentileTable(), r.worlds()+" "+text
		}
		text = tableText(table) + "\n\n" + wrap(r.details()+"\n\n"+text, columns)
	}
	if r.Recording != nil {
		text += "\n\n" + wrap(r.Recording.text(), columns)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// table returns the results of each client. Clients elsewhere do not know what was lost.
func (r *report) table() [][]string {
	table := [][]string{{"client", "lost", "kbit/s", "round trip", "wrong", "world"}}
	add := func(name string, row row) {
		lost := fmt.Sprint(row.Lost)
		if r.Role == "clients" {
			lost = "-"
		}
		table = append(table, []string{
			name, lost, fmt.Sprintf("%.1f", 8*row.Bytes/1000), roundTripText(row.RoundTrip, r.TickRate),
			fmt.Sprint(row.Mismatches), row.world(),
		})
	}
	all := row{
		Lost: r.Lost, Bytes: r.BytesPerClientPerSecond, RoundTrip: r.RoundTripTicks, Mismatches: r.Mismatches,
		Compared: r.Converged, Equal: r.Converged, left: true,
	}
	differs := false
	for _, row := range r.Rows {
		add(fmt.Sprint(row.Client), row)
		all.left = all.left && row.left
		differs = differs || row.Compared && !row.Equal
	}
	all.Compared = all.Compared || differs
	add("all", all)
	return table
}

// percentileTable sums up many clients.
func (r *report) percentileTable() [][]string {
	table := [][]string{{fmt.Sprint(len(r.Rows), " clients"), "least", "median", "95 %", "99 %", "most"}}
	for _, of := range []struct {
		name   string
		format string
		role   string // that knows it; empty: all do
		value  func(*row) float64
	}{
		{"kbit/s", "%.1f", "", func(row *row) float64 { return 8 * row.Bytes / 1000 }},
		{"round trip, ms", "%.0f", "", func(row *row) float64 { return 1000 * row.RoundTrip / float64(r.TickRate) }},
		{"packets lost, %", "%.1f", "server", func(row *row) float64 {
			return 100 * float64(row.Lost) / max(float64(row.Packets), 1)
		}},
		{"inputs ahead, ticks", "%.1f", "clients", func(row *row) float64 { return row.InputDelay }},
		{"shown late, ms", "%.0f", "clients", func(row *row) float64 { return row.Delay }},
		{"starved frames, %", "%.2f", "clients", func(row *row) float64 { return 100 * row.Starved }},
		{"entities wrong", "%.0f", "", func(row *row) float64 { return float64(row.Mismatches) }},
	} {
		if of.role != "" && (of.role == "clients") != (r.Role == "clients") {
			continue
		}
		cells := []string{of.name}
		for _, value := range percentiles(r.Rows, of.value) {
			cells = append(cells, fmt.Sprintf(of.format, value))
		}
		table = append(table, cells)
	}
	return table
}

// world describes the result of a client's world.
func (r *row) world() string {
	switch {
	case r.Compared && r.Equal:
		return "equal"
	case r.Compared:
		return "differs"
	case r.left:
		return "left" // before the end
	default:
		return "no answer"
	}
}

// worlds counts what worlds were at the end.
func (r *report) worlds() string {
	var parts []string
	for _, result := range []string{"equal", "differs", "left", "no answer"} {
		n := 0
		for i := range r.Rows {
			if r.Rows[i].world() == result {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprint(n, " ", result))
		}
	}
	return "Worlds: " + strings.Join(parts, ", ") + "."
}

// details returns what the table lacks, and the meaning of its columns.
func (r *report) details() string {
	if r.Role == "clients" {
		return fmt.Sprintf("kbit/s: datagrams received. Wrong: entities that differed from hashes of the server. "+
			"%.1f s of the fight, %s at the end.", float64(r.Ticks)/float64(r.TickRate), count(r.Entities, "entity"))
	}
	t, kbits := r.Tally, func(bytes float64) float64 { return 8 * bytes / 1000 }
	sent := kbits(r.BytesPerClientPerSecond)
	return fmt.Sprintf("kbit/s: datagrams to a client. Snapshots of all entities each time, quantised, at fixed width "+
		"would take %.1f: %s saved. JSON, by encoding/json, would take %.1f: %s saved.\n\n"+
		"%s, %s at the end, %s spawned: %s, %s, %s, %s. %s joined, %s left. In %.1f %% of the ticks a player's input "+
		"was there in time; in the others the ship moved on as before.",
		kbits(r.RawBytesPerClientPerSecond), savedText(sent, kbits(r.RawBytesPerClientPerSecond)),
		kbits(r.JSONBytesPerClientPerSecond), savedText(sent, kbits(r.JSONBytesPerClientPerSecond)),
		count(r.Ticks, "tick"), count(r.Entities, "entity"), thousands(r.Spawns),
		count(t.Shots, "shot"), count(t.Hits, "hit"), count(t.Deaths, "death"), count(t.Pickups, "pick-up"),
		count(r.Announced.Joins, "player"), thousands(r.Announced.Leaves), 100*r.InputsInTime)
}

// verdict returns the last sentence.
func (r *report) verdict() string {
	worlds, when := "All worlds", ""
	if r.Clients == 1 {
		worlds = "The world"
	}
	if r.Role != "clients" {
		when = count(r.QuietTicks, "tick") + " after the last change, "
	}
	checks := "found nothing wrong in " + count(r.Checks, "comparison") + " of an entity."
	if r.Checks == 0 {
		checks = "compared nothing before."
	}
	switch {
	case r.Clients == 0:
		return "No client came."
	case r.Mismatches > 0:
		return fmt.Sprintf("In %s of %s a client showed an entity other than it was on the server.",
			thousands(r.Mismatches), count(r.Checks, "check"))
	case r.Converged:
		return fmt.Sprintf("%s became equal %sand clients %s", worlds, when, checks)
	case r.Role == "clients" && (r.Interrupted || r.Left):
		return "The fight was not over, so there was no comparison of complete worlds at the end. Clients " + checks
	case r.Left:
		return "No client was there at the end, so no complete worlds were compared then. Clients " + checks
	case r.Interrupted:
		return fmt.Sprintf("Not all clients answered within %d s, so not all complete worlds were compared at the "+
			"end. Clients %s", interruptedSeconds, checks)
	default:
		return "Not all worlds became equal."
	}
}
