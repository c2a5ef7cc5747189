package main

import (
	"fmt"
	"io"
	"strings"
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
		text = strings.Join(tableLines(table, columns), "\n") + "\n\n" + wrap(r.details(), columns)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// table returns the results of each client.
func (r *report) table() []tableColumn {
	kbits := func(bytes float64) string { return fmt.Sprintf("%.1f", 8*bytes/1000) }
	columns := []tableColumn{
		{head: "client"},
		{head: "packets", spare: 3},
		{head: "lost", spare: 2},
		{head: "kbit/s"},
		{head: "round trip", spare: 1},
		{head: "wrong"},
		{head: "world"},
	}
	compared := true
	for i := range r.Rows {
		row := &r.Rows[i]
		compared = compared && row.Compared
		addRow(columns, fmt.Sprint(row.Client), fmt.Sprint(row.Packets), fmt.Sprint(row.Lost), kbits(row.Bytes),
			roundTripText(row.RoundTrip, r.TickRate), fmt.Sprint(row.Mismatches), worldText(row.Compared, row.Equal))
	}
	addRow(columns, "all", fmt.Sprint(r.Packets), fmt.Sprint(r.Lost), kbits(r.BytesPerClientPerSecond),
		roundTripText(r.RoundTripTicks, r.TickRate), fmt.Sprint(r.Mismatches), worldText(compared, r.Converged))
	if r.Role == "clients" { // they do not know what was lost
		columns = append(columns[:2], columns[3:]...)
	}
	return columns
}

// percentileTable sums up many clients.
func (r *report) percentileTable() []tableColumn {
	columns := []tableColumn{{head: fmt.Sprint(len(r.Rows), " clients")}}
	for _, head := range []string{"least", "median", "95 %", "99 %", "most"} {
		columns = append(columns, tableColumn{head: head})
	}
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
		addRow(columns, cells...)
	}
	return columns
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
		return fmt.Sprintf("kbit/s: datagrams received. Wrong: entities that differed from hashes of the server.\n\n"+
			"%.1f s of the fight, %s at the end. Messages: %s received, %s sent. Inputs: %s missed.\n\n%s",
			float64(r.Ticks)/float64(r.TickRate), count(r.Entities, "entity"), thousands(r.Messages),
			thousands(r.MessagesUp), thousands(r.InputsMissed), r.verdict())
	}
	t := r.Tally
	return fmt.Sprintf("kbit/s: datagrams to a client. Snapshots of all entities each time, quantised, at fixed width "+
		"would take %.1f: %s is saved. JSON, by encoding/json, would take %.1f: %s.\n\n"+
		"%s, %s at the end, %s spawned, %s despawned: %s, %s, %s, %s, %s. "+
		"%s joined, %s left. Messages: %s to clients (%s resent), %s from them. "+
		"Inputs: %s in time, %s missed (%.2f %% in time).\n\n%s",
		8*r.RawBytesPerClientPerSecond/1000, percent(r.Saved), 8*r.JSONBytesPerClientPerSecond/1000,
		percent(r.SavedOfJSON),
		count(r.Ticks, "tick"), count(r.Entities, "entity"), thousands(r.Spawns), thousands(r.Despawns),
		count(t.Shots, "shot"), count(t.Hits, "hit"), count(t.Deaths, "death"), count(t.Respawns, "respawn"),
		count(t.Pickups, "pick-up"),
		count(r.Announced.Joins, "player"), thousands(r.Announced.Leaves), thousands(r.Messages), thousands(r.Resent),
		thousands(r.MessagesUp),
		thousands(r.Inputs), thousands(r.InputsMissed), 100*r.InputsInTime, r.verdict())
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
