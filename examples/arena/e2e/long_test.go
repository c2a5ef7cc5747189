package e2e

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"
)

var long = flag.Duration("long", 0, "for how `long` to play with 200 bots and 4 pages at 10 % loss, such as 2m")

// What the long game may show at most.
const (
	mostSlope = 2.0                     // MB a minute, of heaps
	mostGap   = 1000 * time.Millisecond // between two frames of a page
)

// watch makes a page note how long its frames take, and how long it is from one to the next.
const watch = `(() => {
	const seen = globalThis.seen = {gaps: [], work: []}, request = requestAnimationFrame
	let last = performance.now()
	globalThis.requestAnimationFrame = f => request(now => {
		const begin = performance.now()
		f(now)
		seen.gaps.push(begin - last)
		seen.work.push(performance.now() - begin)
		last = begin
	})
	return true
})()`

// A heap is how much memory is in use, over time: the least in each window, as what the latest collection found in use
// depends on when it was.
type heap struct{ megabytes []float64 }

const heapWindow = 10 * time.Second

func (h *heap) add(since time.Duration, bytes float64) {
	i := int(since / heapWindow)
	if i == len(h.megabytes) {
		h.megabytes = append(h.megabytes, bytes/1e6)
	}
	h.megabytes[i] = min(h.megabytes[i], bytes/1e6)
}

// slope returns the MB a minute by which it grows, fitted to all but the first 20 seconds.
func (h *heap) slope() float64 {
	const perMinute = float64(time.Minute / heapWindow)
	last := h.megabytes[2:]
	var n, x, y, xx, xy float64
	for i, mb := range last {
		at := float64(i) / perMinute
		n, x, y, xx, xy = n+1, x+at, y+mb, xx+at*at, xy+at*mb
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// TestLongGame is a load test: go test -count=1 -run LongGame -timeout 10m . -args -long 2m
func TestLongGame(t *testing.T) {
	if *long < 4*heapWindow {
		t.Skip("it takes minutes: give -args -long 2m, at least 40s")
	}
	url, end := startArena(t, "-bots", "200", "-loss", "0.1")
	browser := startBrowser(t)
	var tabs []*tab
	for i, query := range []string{"&transport=websocket", "", "&transport=websocket", ""} {
		p := openTab(t, browser, fmt.Sprint("Player ", i+1), url, query)
		if i == 0 {
			p.compiled()
		}
		p.until("connected", 20*time.Second, connected)
		tabs = append(tabs, p)
	}
	heaps := make([]heap, 1+len(tabs)) // the server's first
	memory := make([]float64, len(tabs))
	before := make([]status, len(tabs))
	for i, p := range tabs {
		js[bool](p, watch)
		before[i] = p.status()
	}
	most := 0
	began := time.Now()
	for next := began; time.Since(began) < *long; time.Sleep(time.Until(next)) {
		next = next.Add(time.Second)
		server := serverState(t, url)
		most = max(most, server.Entities)
		heaps[0].add(time.Since(began), server.Heap)
		for i, p := range tabs {
			both := js[[]float64](p, "arena.heap()")
			heaps[i+1].add(time.Since(began), both[0])
			memory[i] = both[1]
		}
	}
	t.Logf("%v, %d entities at most", *long, most)
	for i, h := range heaps {
		name := "the server"
		if i > 0 {
			name = tabs[i-1].name
		}
		slope := h.slope()
		t.Logf("%s: heap of %.1f MB, %+.2f MB a minute", name, h.megabytes, slope)
		if slope > mostSlope {
			t.Errorf("the heap of %s grows by %.2f MB a minute", name, slope)
		}
	}
	for i, p := range tabs {
		gaps, work := js[[]float64](p, "seen.gaps"), js[[]float64](p, "seen.work")
		slices.Sort(gaps)
		slices.Sort(work)
		at := func(v []float64, share float64) float64 { return v[int(share*float64(len(v)-1))] }
		now := p.status()
		t.Logf("%s, %s: %d frames; from one to the next %.1f ms in the median, 99 %% %.1f, most %.0f; work in each %.1f ms, 99 %% %.1f, most %.0f; "+
			"%.0f of %.0f frames starved; %.0f MB of WebAssembly", p.name, now.Transport, len(gaps), at(gaps, 0.5), at(gaps, 0.99),
			at(gaps, 1), at(work, 0.5), at(work, 0.99), at(work, 1), now.Starved-before[i].Starved, now.Frames-before[i].Frames, memory[i]/1e6)
		if worst := time.Duration(at(gaps, 1) * float64(time.Millisecond)); worst > mostGap {
			t.Errorf("%s stood still for %v", p.name, worst)
		}
		p.until("a green lamp", 10*time.Second, equal)
	}
	compareWorlds(t, tabs...)
	consoleIsQuiet(t)
	end()
}
