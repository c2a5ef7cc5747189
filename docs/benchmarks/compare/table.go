package main

import (
	"fmt"
	"strings"
)

// number formats bytes per tick.
func number(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	if n := len(digits) - 3; n > 0 {
		return digits[:n] + "," + digits[n:]
	}
	return digits
}

// markdown returns a table with a column for each recording. The smallest measured figure of each is bold.
func markdown(results []result) string {
	var b strings.Builder
	b.WriteString("| bytes per tick |")
	for i := range results {
		fmt.Fprintf(&b, " %s, round trip %d |", results[i].name, results[i].rtt)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(results)) + "\n")
	for row := range results[0].rows {
		m := results[0].rows[row]
		if m.published {
			break
		}
		fmt.Fprintf(&b, "| %s |", m.method)
		for i := range results {
			text := number(results[i].rows[row].bytes)
			if row == results[i].smallest() {
				text = "**" + text + "**"
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		b.WriteString("\n")
	}
	b.WriteString("\nThe layout that was best for zstd:")
	for i := range results {
		end := ","
		if i == len(results)-1 {
			end = ".\n"
		}
		fmt.Fprintf(&b, " %s %s%s", results[i].name, results[i].note, end)
	}
	return b.String()
}

// smallest returns the row with the fewest bytes among those that were measured.
func (r *result) smallest() (best int) {
	for i := range r.rows {
		if !r.rows[i].published && r.rows[i].bytes < r.rows[best].bytes {
			best = i
		}
	}
	return best
}
