package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Measures of the picture in pixels. Recordings are in two columns.
const (
	plotWidth   = 1000
	panelWidth  = plotWidth / 2
	labelWidth  = 170
	numberWidth = 70
	lineHeight  = 21
	panelHead   = 34
	headHeight  = 78
)

// style has a light and a dark scheme.
const style = `
svg { font: 13px system-ui, sans-serif; }
.paper { fill: #ffffff; } text { fill: #1f2328; } .quiet { fill: #59636e; }
.heading { font-size: 16px; font-weight: 600; } .name { font-weight: 600; }
.ours { fill: #0969da; } .other { fill: #afb8c1; } .published { fill: none; stroke: #8c959f; stroke-dasharray: 3 2; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; } text { fill: #e6edf3; } .quiet { fill: #9198a1; }
.ours { fill: #58a6ff; } .other { fill: #57606a; } .published { stroke: #9198a1; }
}
`

// plot draws a panel for each recording: a bar for each method, the shortest first. The bars of a panel have
// a logarithmic scale of their own, because raw state is up to a thousand times as large.
func plot(results []result) []byte {
	var b bytes.Buffer
	var tops []int
	y := headHeight
	for i := 0; i < len(results); i += 2 {
		rows := 0
		for _, r := range results[i:min(i+2, len(results))] {
			tops = append(tops, y)
			rows = max(rows, len(r.rows))
		}
		y += panelHead + rows*lineHeight + 14
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`,
		plotWidth, y, plotWidth, y)
	fmt.Fprintf(&b, "\n<title>Bytes per tick of each recording, by method</title>\n<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d"/>`+"\n", plotWidth, y)
	text(&b, "heading", "start", 16, 28, "Bytes per tick to one client, without packet headers")
	text(&b, "quiet", "start", 16, 50, "Every method sends the same quantised state against what was acknowledged a round trip "+
		"before. Bars are logarithmic.")
	text(&b, "quiet", "start", 16, 68, "Dashed: figures published by others, or measured with other programs; not always the same recording.")
	for i := range results {
		results[i].draw(&b, float64(i%2*panelWidth), float64(tops[i]))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// draw draws a panel.
func (r *result) draw(b *bytes.Buffer, left, top float64) {
	rows := slices.Clone(r.rows)
	slices.SortStableFunc(rows, func(x, y bar) int { return cmp.Compare(x.bytes, y.bytes) })
	text(b, "name", "start", left+16, top+22, fmt.Sprintf("%s, round trip %d ticks", r.name, r.rtt))
	scale := func(bytes float64) float64 { return math.Log(max(bytes, 1)) }
	low, high := scale(rows[0].bytes)-math.Ln2, scale(rows[len(rows)-1].bytes)
	for i, row := range rows {
		y := top + panelHead + float64(i*lineHeight)
		class := "other"
		switch {
		case row.ours:
			class = "ours"
		case row.published:
			class = "published"
		}
		width := (panelWidth - labelWidth - numberWidth - 16) * (scale(row.bytes) - low) / (high - low)
		text(b, "", "end", left+labelWidth, y+14, row.method)
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="14" rx="2"/>`+"\n", class, left+labelWidth+8, y+3, width)
		text(b, "", "start", left+labelWidth+14+width, y+14, number(row.bytes))
	}
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func text(b *bytes.Buffer, class, anchor string, x, y float64, text string) {
	fmt.Fprintf(b, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, anchor, x, y, escape.Replace(text))
}
