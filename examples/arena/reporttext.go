package main

import (
	"fmt"
	"io"
	"strings"
)

// writeText writes the report as text, in lines of at most so many columns.
func (r *report) writeText(out io.Writer, columns int) error {
	var text string
	switch {
	case r.Left:
		text = wrap(r.departureText(), columns)
	case r.Clients == 0:
		text = r.verdict()
	default:
		text = strings.Join(tableLines(r.table(), columns), "\n") + "\n\n" + wrap(r.details(), columns)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// table returns the results of each client.
func (r *report) table() []tableColumn {
	columns := []tableColumn{
		{head: "client"},
		{head: "packets", spare: 3},
		{head: "lost", spare: 1},
		{head: "kbit/s"},
		{head: "snapshots", spare: 4},
		{head: "saved", spare: 5},
		{head: "JSON", spare: 2},
		{head: "saved", spare: 1},
		{head: "round trip", spare: 1},
		{head: "wrong"},
		{head: "world"},
	}
	line := func(cells ...string) {
		for i, text := range cells {
			columns[i].cells = append(columns[i].cells, text)
		}
	}
	kbits := func(bytes float64) string { return fmt.Sprintf("%.1f", 8*bytes/1000) }
	compared := true
	for i := range r.Rows {
		row := &r.Rows[i]
		compared = compared && row.Compared
		line(fmt.Sprint(row.Client), fmt.Sprint(row.Packets), fmt.Sprint(row.Lost), kbits(row.Bytes),
			kbits(row.Raw), percent(row.Saved), kbits(row.JSON), percent(row.SavedOfJSON),
			roundTripText(row.RoundTrip, r.TickRate), fmt.Sprint(row.Mismatches), worldText(row.Compared, row.Equal))
	}
	line("all", fmt.Sprint(r.Packets), fmt.Sprint(r.Lost), kbits(r.BytesPerClientPerSecond),
		kbits(r.RawBytesPerClientPerSecond), percent(r.Saved), kbits(r.JSONBytesPerClientPerSecond),
		percent(r.SavedOfJSON),
		roundTripText(r.RoundTripTicks, r.TickRate), fmt.Sprint(r.Mismatches), worldText(compared, r.Converged))
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
	t := r.Tally
	return fmt.Sprintf("kbit/s: datagrams to a client. Snapshots: all entities each time, quantised, at fixed width. "+
		"JSON: the same by encoding/json, measured once a second. Round trip: as clients measure it.\n\n"+
		"%s, %s at the end, %s spawned, %s despawned: %s, %s, %s, %s, %s. "+
		"%s joined, %s left. Messages: %s to clients (%s resent), %s from them. "+
		"Inputs: %s in time, %s missed (%.2f %% in time), %.1f ticks ahead.\n\n%s",
		count(r.Ticks, "tick"), count(r.Entities, "entity"), thousands(r.Spawns), thousands(r.Despawns),
		count(t.Shots, "shot"), count(t.Hits, "hit"), count(t.Deaths, "death"), count(t.Respawns, "respawn"),
		count(t.Pickups, "pick-up"),
		count(r.Announced.Joins, "player"), thousands(r.Announced.Leaves), thousands(r.Messages), thousands(r.Resent),
		thousands(r.MessagesUp),
		thousands(r.Inputs), thousands(r.InputsMissed), 100*r.InputsInTime, r.InputDelayTicks, r.verdict())
}

// verdict returns the last sentence.
func (r *report) verdict() string {
	switch {
	case r.Clients == 0:
		return "No client came."
	case r.Mismatches > 0:
		return fmt.Sprintf("In %s of %s a client showed an entity other than it was on the server.",
			thousands(r.Mismatches), count(r.Checks, "check"))
	case r.Converged && r.Clients == 1:
		return fmt.Sprintf("The world became equal, %s after the last change, and %s until then found nothing wrong.",
			count(r.QuietTicks, "tick"), count(r.Checks, "check"))
	case r.Converged:
		return fmt.Sprintf("All worlds became equal, %s after the last change, and %s until then found nothing wrong.",
			count(r.QuietTicks, "tick"), count(r.Checks, "check"))
	case r.Interrupted:
		return fmt.Sprintf("The fight ended before the worlds could be compared completely; "+
			"%s until then found nothing wrong.", count(r.Checks, "check"))
	default:
		return "Not all worlds became equal."
	}
}

// departureText is the report of clients that left before the end.
func (r *report) departureText() string {
	if r.Ticks == 0 {
		return "Left before the fight began: nothing was received."
	}
	text := fmt.Sprintf("Left after %.1f s of the fight. %s received %s, %.1f kbit/s each, with %s of state, "+
		"and mirrored %s at the end; round trip %s.\n",
		float64(r.Ticks)/float64(r.TickRate), count(r.Clients, "client"), count(r.Bytes, "byte"),
		8*r.BytesPerClientPerSecond/1000, count(r.Packets, "packet"), count(r.Entities, "entity"),
		roundTripText(r.RoundTripTicks, r.TickRate))
	switch {
	case r.Checks == 0:
		return text + "Nothing was compared with the server's world."
	case r.Mismatches > 0:
		return text + r.verdict()
	default:
		return text + fmt.Sprintf("%s against the server's world, the latest as of its tick %d, found nothing wrong. "+
			"As the fight was not over, the worlds were not compared completely.", count(r.Checks, "check"), r.Checked)
	}
}
