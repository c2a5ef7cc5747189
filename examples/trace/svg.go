package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
)

// Measures of the picture in pixels.
const (
	svgWidth    = 1000
	marginLeft  = 76
	marginRight = 20
	headHeight  = 98 // headings and the legend
	footHeight  = 48 // times
	panelHeight = 150
	panelGap    = 34 // with the name of the next panel
	plotWidth   = svgWidth - marginLeft - marginRight
)

// style has a light and a dark scheme.
const style = `
svg { font: 12px system-ui, sans-serif; }
.paper { fill: #ffffff; } .frame { fill: none; stroke: #afb8c1; } .grid { stroke: #eaeef2; }
text { fill: #1f2328; } .quiet { fill: #59636e; } .heading { font-size: 15px; font-weight: 600; }
.truth, .newest, .shown { fill: none; stroke-linejoin: round; }
.truth { stroke: #b4bcc6; stroke-width: 5; }
.newest { stroke: #bc4c00; stroke-width: 1.4; } .shown { stroke: #0969da; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; } .frame { stroke: #57606a; } .grid { stroke: #21262d; }
text { fill: #e6edf3; } .quiet { fill: #9198a1; }
.truth { stroke: #57606a; } .newest { stroke: #f0883e; } .shown { stroke: #58a6ff; }
}
`

// legend names the lines.
var legend = []struct{ class, text string }{
	{classTruth, "true path, at the server"},
	{classNewest, "newest state"},
	{classShown, "interpolated"},
}

// svg draws the chart.
func (c *chart) svg() []byte {
	var b bytes.Buffer
	height := headHeight + len(c.panels)*(panelHeight+panelGap) - panelGap + footHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`,
		svgWidth, height, svgWidth, height)
	fmt.Fprintf(&b, "\n<title>%s</title>\n<style>%s</style>\n", escaped(c.heading+"; "+c.subheading), style)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d"/>`+"\n", svgWidth, height)
	text(&b, "heading", "start", marginLeft, 24, c.heading)
	text(&b, "", "start", marginLeft, 44, c.subheading)
	x := marginLeft
	for _, l := range legend {
		fmt.Fprintf(&b, `<line class="%s" x1="%d" y1="62" x2="%d" y2="62"/>`, l.class, x, x+28)
		text(&b, "", "start", float64(x+36), 66, l.text)
		x += 60 + 7*len(l.text)
	}
	for i := range c.panels {
		c.drawPanel(&b, &c.panels[i], float64(headHeight+i*(panelHeight+panelGap)))
	}
	bottom := float64(height - footHeight)
	for _, t := range ticks(c.begin, c.end, 10) {
		text(&b, "quiet", "middle", c.x(t), bottom+18, number(t))
	}
	text(&b, "quiet", "middle", marginLeft+plotWidth/2, bottom+38, "seconds from the beginning of the trace")
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// x returns where a time is.
func (c *chart) x(time float64) float64 {
	return marginLeft + plotWidth*(time-c.begin)/(c.end-c.begin)
}

// drawPanel draws a panel whose upper edge is at top.
func (c *chart) drawPanel(b *bytes.Buffer, p *panel, top float64) {
	low, high := p.scale()
	y := func(value float64) float64 { return top + panelHeight*(high-value)/(high-low) }
	for _, t := range ticks(c.begin, c.end, 10) {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, c.x(t), top, c.x(t),
			top+panelHeight)
	}
	for _, v := range ticks(low, high, 5) {
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, marginLeft, y(v),
			marginLeft+plotWidth, y(v))
		text(b, "quiet", "end", marginLeft-8, y(v)+4, number(v))
	}
	fmt.Fprintf(b, `<rect class="frame" x="%d" y="%.1f" width="%d" height="%d"/>`+"\n", marginLeft, top, plotWidth,
		panelHeight)
	text(b, "", "start", marginLeft, top-7, p.name+", in units of the trace")
	for _, l := range p.lines {
		fmt.Fprintf(b, `<path class="%s" d="`, l.class)
		pen := byte('M')
		for i, d := range l.points {
			switch {
			case math.IsNaN(d.value):
				pen = 'M'
				continue
			case pen == 'L' && l.flatAt(i):
				continue
			}
			fmt.Fprintf(b, "%c%.2f %.2f", pen, c.x(d.time), y(d.value))
			pen = 'L'
		}
		b.WriteString("\"/>\n")
	}
}

// flatAt reports whether a point's neighbours have the same value, so that it need not be drawn.
func (l *line) flatAt(i int) bool {
	return i > 0 && i+1 < len(l.points) && l.points[i-1].value == l.points[i].value &&
		l.points[i+1].value == l.points[i].value
}

// scale returns the values at a panel's edges.
func (p *panel) scale() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, l := range p.lines {
		for _, d := range l.points {
			if !math.IsNaN(d.value) {
				low, high = min(low, d.value), max(high, d.value)
			}
		}
	}
	room := max(0.06*(high-low), 1e-6*max(math.Abs(low), math.Abs(high)), 1e-9)
	return low - room, high + room
}

// ticks returns the round values between two others, at most so many.
func ticks(low, high float64, most int) []float64 {
	least := (high - low) / float64(most)
	step := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{2, 5, 10} {
		if step < least {
			step = math.Pow(10, math.Floor(math.Log10(least))) * factor
		}
	}
	var values []float64
	for i := math.Ceil(low / step); i <= math.Floor(high/step) && len(values) <= most; i++ {
		values = append(values, i*step)
	}
	return values
}

// number formats a number without the noise of binary fractions.
func number(v float64) string { return strconv.FormatFloat(v+0, 'g', 6, 64) } // + 0: no -0

func text(b *bytes.Buffer, class, anchor string, x, y float64, s string) {
	fmt.Fprintf(b, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, anchor, x, y,
		escaped(s))
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}
