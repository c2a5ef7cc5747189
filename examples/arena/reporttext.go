package main

import (
	"fmt"
	"io"
)

// manyRows is from how many clients elsewhere on their table has percentiles.
const manyRows = 16

// writeText writes the report as text, in lines of at most so many columns.
func (r *report) writeText(out io.Writer, columns int) error {
	text := r.verdict()
	if r.Clients > 0 {
		table := r.table()
		if r.Role == "clients" && len(r.Rows) >= manyRows {
			table = r.percentileTable()
		}
		text = tableText(table) + "\n\n" + wrap(r.details()+"\n\n"+text, columns)
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
			fmt.Sprint(row.Mismatches), worldText(row.Compared, row.Equal),
		})
	}
	all := row{
		Lost: r.Lost, Bytes: r.BytesPerClientPerSecond, RoundTrip: r.RoundTripTicks, Mismatches: r.Mismatches,
		Compared: true, Equal: r.Converged,
	}
	for _, row := range r.Rows {
		add(fmt.Sprint(row.Client), row)
		all.Compared = all.Compared && row.Compared
	}
	add("all", all)
	return table
}

// percentileTable sums up many clients.
func (r *report) percentileTable() [][]string {
	table := [][]string{{fmt.Sprint(len(r.Rows), " clients"), "least", "median", "95 %", "99 %", "most"}}
	for _, of := range []struct {
		name   string
		format string
		value  func(*row) float64
	}{
		{"kbit/s", "%.1f", func(row *row) float64 { return 8 * row.Bytes / 1000 }},
		{"round trip, ms", "%.0f", func(row *row) float64 { return 1000 * row.RoundTrip / float64(r.TickRate) }},
		{"inputs ahead, ticks", "%.1f", func(row *row) float64 { return row.InputDelay }},
		{"shown late, ms", "%.0f", func(row *row) float64 { return row.Delay }},
		{"starved frames, %", "%.2f", func(row *row) float64 { return 100 * row.Starved }},
		{"entities wrong", "%.0f", func(row *row) float64 { return float64(row.Mismatches) }},
	} {
		cells := []string{of.name}
		for _, value := range percentiles(r.Rows, of.value) {
			cells = append(cells, fmt.Sprintf(of.format, value))
		}
		table = append(table, cells)
	}
	return table
}

// worldText describes the result of a world.
func worldText(compared, equal bool) string {
	switch {
	case !compared:
		return "left" // before the end
	case equal:
		return "equal"
	default:
		return "differs"
	}
}

// details returns what the table lacks, and the meaning of its columns.
func (r *report) details() string {
	if r.Role == "clients" {
		return fmt.Sprintf("kbit/s: datagrams received. Wrong: entities that differed from hashes of the server. "+
			"%.1f s of the fight, %s at the end.", float64(r.Ticks)/float64(r.TickRate), count(r.Entities, "entity"))
	}
	t := r.Tally
	return fmt.Sprintf("kbit/s: datagrams to a client. Snapshots of all entities each time, quantised, at fixed width "+
		"would take %.1f: %s is saved. JSON, by encoding/json, would take %.1f: %s.\n\n"+
		"%s, %s at the end, %s spawned: %s, %s, %s, %s. %s joined, %s left. Inputs: %.2f %% in time.",
		8*r.RawBytesPerClientPerSecond/1000, percent(r.Saved), 8*r.JSONBytesPerClientPerSecond/1000,
		percent(r.SavedOfJSON), count(r.Ticks, "tick"), count(r.Entities, "entity"), thousands(r.Spawns),
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
	checks := count(r.Checks, "check") + " until then found nothing wrong."
	switch {
	case r.Clients == 0:
		return "No client came."
	case r.Mismatches > 0:
		return fmt.Sprintf("In %s of %s a client showed an entity other than it was on the server.",
			thousands(r.Mismatches), count(r.Checks, "check"))
	case r.Converged:
		return fmt.Sprintf("%s became equal, %sand %s", worlds, when, checks)
	case r.Interrupted || r.Left:
		return "The fight was not over, so the worlds were not compared completely; " + checks
	default:
		return "Not all worlds became equal."
	}
}
