package predict

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// The picture in docs/prediction.md is made by
//
//	go test -run TestPlotPrediction ./replication/predict -predict.plot=../../docs/images/prediction.svg
var plotFlag = flag.String("predict.plot", "", "file to draw a predicted ship into, as SVG")

// A plotted is a frame of the picture.
type plotted struct {
	at                              float64 // seconds
	server, predicted, interpolated float64
	left                            float64 // of corrections
	key                             float32
	blocked                         bool
}

// TestPlotPrediction draws a ship that turns four times, at the server, as predicted and as interpolated. In its third
// turn the server gets no inputs.
func TestPlotPrediction(t *testing.T) {
	if *plotFlag == "" {
		t.Skip("needs -predict.plot")
	}
	const begin, seconds = 4.0, 4.0
	p := newPlay(t, setting{seed: 1, oneWay: 75, loss: 0.05, lossUp: 0.05}, &rules{damping: 0.9})
	key := func() float32 { return float32(1 - 2*(int(p.now/1000+0.5)%2)) }
	p.input = func() Move { return Move{X: key()} }

	mirror, link := ecs.NewWorld(), netsim.NewLink(2, netsim.Config{Latency: 75, Loss: 0.05})
	peer := p.server.Connect(link.Down.Send)
	peer.SetSendInterval(3)
	schema, _ := newGame(&rules{})
	spectator := replication.NewClient(&mirror, schema)
	spectator.SetSend(link.Up.Send)
	interpolation.Attach(spectator)

	var frames []plotted
	p.afterFrame = func() {
		require.NoError(t, spectator.Frame(time.Second/60))
		if p.now < 1000*begin {
			return
		}
		id, _ := p.server.NetID(p.ship)
		seen, ok := spectator.Entity(id)
		require.True(t, ok)
		row, left := (*Predicted)(p.mirror.Get(p.own(), ecs.ComponentID[Predicted](&p.mirror))).row, 0.0
		if fades := &p.predict.drawing.fades[0]; fades.Active(row) {
			left = fades.Errors(row)[0]
		}
		frames = append(frames, plotted{
			p.now/1000 - begin, float64(get[Position](&p.world, p.ship).X), float64(get[Position](&p.mirror, p.own()).X),
			float64(get[Position](&mirror, seen).X), left, key(), p.blocked,
		})
	}
	for p.now < 1000*(begin+seconds) {
		p.blocked = p.now > 1000*(begin+2.4) && p.now < 1000*(begin+2.7)
		p.run(0.001)
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		link.Down.Receive(func(packet []byte) { _ = spectator.Receive(packet) })
	}
	require.Positive(t, p.predict.Stats().Corrections)
	require.NoError(t, os.WriteFile(*plotFlag, []byte(plotShip(frames, seconds)), 0o644))
}

const plotLeft, plotRight, plotBottom, plotMiddle = 60.0, 840.0, 430.0, 290.0

// plotShip returns the picture: the three ships above, what is left of corrections below.
func plotShip(frames []plotted, seconds float64) string {
	low, high := frames[0].server, frames[0].server
	for _, f := range frames {
		low, high = min(low, f.server, f.predicted, f.interpolated), max(high, f.server, f.predicted, f.interpolated)
	}
	x := func(f plotted) float64 { return plotLeft + f.at/seconds*(plotRight-plotLeft) }
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 470" font-family="sans-serif" font-size="12">` + "\n")
	b.WriteString("<title>A predicted ship</title>\n" + `<rect width="860" height="470" fill="#fff"/>` + "\n")
	from, to := slices.IndexFunc(frames, func(f plotted) bool { return f.blocked }), 0.0
	for _, f := range frames {
		if f.blocked {
			to = x(f)
		}
	}
	fmt.Fprintf(&b, `<rect x="%.1f" y="40" width="%.1f" height="390" fill="#eee"/>`+"\n", x(frames[from]), to-x(frames[from]))
	fmt.Fprintf(&b, `<text x="%.1f" y="286" fill="#777">nothing gets to the server</text>`+"\n", to+6)
	for i, f := range frames[1:] {
		if f.key != frames[i].key {
			fmt.Fprintf(&b, `<path d="M%.1f 40V%.0f" stroke="#aaa" stroke-dasharray="3 3"/>`+"\n", x(f), plotMiddle)
			fmt.Fprintf(&b, `<text x="%.1f" y="52" fill="#777">key %s</text>`+"\n", x(f)+3, map[float32]string{1: "up", -1: "down"}[f.key])
		}
	}
	line := func(colour string, width float64, dash string, y func(f plotted) float64) {
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="%.1f" stroke-dasharray="%s" points="`, colour, width, dash)
		for _, f := range frames {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(f), y(f))
		}
		b.WriteString(`"/>` + "\n")
	}
	place := func(v float64) float64 { return plotMiddle - 20 - (v-low)/(high-low)*(plotMiddle-90) }
	zero, scale := (plotMiddle+plotBottom)/2+10, 100/(high-low)
	line("#999", 2, "", func(f plotted) float64 { return place(f.server) })
	line("#e69f00", 1.5, "", func(f plotted) float64 { return place(f.interpolated) })
	line("#0072b2", 1, "2 3", func(f plotted) float64 { return place(f.predicted - f.left) })
	line("#0072b2", 1.5, "", func(f plotted) float64 { return place(f.predicted) })
	fmt.Fprintf(&b, `<path d="M%.0f %.1fH%.0f" stroke="#ddd"/>`+"\n", plotLeft, zero, plotRight)
	line("#d55e00", 1.5, "", func(f plotted) float64 { return zero - f.left*scale })
	for i, k := range []struct{ name, colour string }{
		{"predicted (dots: without smoothing)", "#0072b2"}, {"the server's", "#777"}, {"interpolated", "#b87c00"},
	} {
		fmt.Fprintf(&b, `<text x="%d" y="25" fill="%s">%s</text>`+"\n", 60+[]int{0, 230, 330}[i], k.colour, k.name)
	}
	fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" fill="#d55e00">what is left of corrections</text>`+"\n", plotLeft, plotMiddle+25)
	for at := 0.0; at <= seconds; at++ {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.0f" text-anchor="middle">%.0f s</text>`+"\n",
			plotLeft+at/seconds*(plotRight-plotLeft), plotBottom+18, at)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
