package replication

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The picture in docs/interest-and-priority.md is made by
//
//	go test -run TestPlotBudgetRange ./replication -budget.plot=../docs/budget-range.svg
var plotFlag = flag.String("budget.plot", "", "file to draw a budget that adapts into, as SVG")

// TestPlotBudgetRange draws an adaptive budget on a link whose capacity doubles and halves again.
func TestPlotBudgetRange(t *testing.T) {
	if *plotFlag == "" {
		t.Skip("needs -budget.plot")
	}
	s := newSharedLine(t, seedOf(t), linePath{roundTrip: 100 * time.Millisecond, jitter: 10 * time.Millisecond, interval: 1})
	s.join()
	s.run(15)
	s.setBandwidth(2 * lineBytes)
	s.run(15)
	s.setBandwidth(lineBytes)
	s.run(15)
	require.NoError(t, os.WriteFile(*plotFlag, []byte(plotLine(s)), 0o644))
}

// A plotPanel is a part of the picture: values from 0 to most, upwards from y.
type plotPanel struct {
	y, height, most float64
	step            float64 // between two grid lines
	title           string
}

const plotLeft, plotRight = 60.0, 840.0

func plotLine(s *sharedLine) string {
	rates := plotPanel{y: 270, height: 230, most: 100, step: 25, title: "kB per second"}
	queues := plotPanel{y: 430, height: 100, most: 300, step: 100, title: "queue, ms"}
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 470" font-family="sans-serif" font-size="12">` + "\n")
	b.WriteString(`<rect width="860" height="470" fill="#fff"/>` + "\n")
	for _, p := range []*plotPanel{&rates, &queues} {
		p.grid(&b, len(s.samples)/lineRate)
	}
	rates.draw(&b, s, "#999", 2, func(i int) float64 { return float64(s.samples[i].line) / 1000 })
	rates.draw(&b, s, "#e69f00", 1, func(i int) float64 {
		from := max(i-lineRate/2, 0) // over half a second
		n := s.samples[i].delivered[0] - s.samples[from].delivered[0]
		return float64(n) / float64(max(i-from, 1)) * lineRate / 1000
	})
	rates.draw(&b, s, "#0072b2", 1.5, func(i int) float64 { return float64(s.samples[i].budgets[0]) / 1000 })
	queues.draw(&b, s, "#d55e00", 1, func(i int) float64 { return 1000 * s.samples[i].queue })
	for i, k := range []struct{ name, colour string }{{"line", "#999"}, {"budget", "#0072b2"}, {"delivered", "#e69f00"}} {
		fmt.Fprintf(&b, `<text x="%d" y="25" fill="%s" text-anchor="end">%s</text>`+"\n", 680+80*i, k.colour, k.name)
	}
	fmt.Fprintf(&b, `<text x="%.0f" y="464" text-anchor="middle">seconds</text>`+"\n</svg>\n", (plotLeft+plotRight)/2)
	return b.String()
}

// grid draws the grid lines, their figures and the title.
func (p *plotPanel) grid(b *strings.Builder, seconds int) {
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f">%s</text>`+"\n", plotLeft, p.y-p.height-15, p.title)
	for v := 0.0; v <= p.most; v += p.step {
		y := p.y - v/p.most*p.height
		fmt.Fprintf(b, `<path d="M%.0f %.1fH%.0f" stroke="#ddd"/><text x="%.0f" y="%.1f" text-anchor="end">%.0f</text>`+"\n",
			plotLeft, y, plotRight, plotLeft-6, y+4, v)
	}
	for at := 0; at <= seconds; at += 5 {
		x := plotLeft + float64(at)/float64(seconds)*(plotRight-plotLeft)
		fmt.Fprintf(b, `<text x="%.1f" y="%.0f" text-anchor="middle">%d</text>`+"\n", x, p.y+15, at)
	}
}

// draw draws a value of every third sample.
func (p *plotPanel) draw(b *strings.Builder, s *sharedLine, colour string, width float64, value func(sample int) float64) {
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="%.1f" points="`, colour, width)
	for i := 0; i < len(s.samples); i += 3 {
		x := plotLeft + float64(i)/float64(len(s.samples))*(plotRight-plotLeft)
		fmt.Fprintf(b, "%.1f,%.1f ", x, p.y-min(value(i)/p.most, 1)*p.height)
	}
	b.WriteString(`"/>` + "\n")
}
