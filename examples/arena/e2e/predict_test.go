package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/chromedp/cdproto/input"
)

// logFrames makes a page note what it draws of the own ship in each frame: for how long the frame before was shown,
// the place and the angle, with a hole where it is destroyed, and how many bullets it has.
func (p *tab) logFrames() {
	p.t.Helper()
	js[int](p, `(() => {
		const frame = arena.frame
		globalThis.drawn = []
		arena.frame = (dt, controls) => {
			const all = frame(dt, controls), at = [dt, null, null, null, 0]
			for (let i = 0; i < 6 * all.n; i += 6) {
				if (all.rows[i] === 1 && all.rows[i + 1] === 2) at[4]++
				if (all.rows[i] === 0 && all.rows[i + 1] === 2) at.splice(1, 3, ...all.rows.slice(i + 2, i + 5))
			}
			drawn.push(at)
			return all
		}
		return 1
	})()`)
}

// A drawn frame has no place while the ship is destroyed.
type drawn [5]*float64

func (p *tab) drawn() (frames []drawn) {
	p.t.Helper()
	check(p.t, json.Unmarshal([]byte(js[string](p, `JSON.stringify(drawn)`)), &frames))
	return frames
}

// turn presses a key that turns the ship, and returns the number of the frame in which the page draws that, counted from
// the first that begins after the key, and the milliseconds until then; 0 if the ship was not there.
func (p *tab) turn(code string, virtual int64) (frames int, ms float64) {
	p.t.Helper()
	js[bool](p, `new Promise(done => { // once it does not turn any more
		const look = () => {
			const angles = drawn.slice(-20).map(d => d[3])
			if (angles.length === 20 && angles[0] !== null && angles.every(a => a === angles[0])) done(true)
			else requestAnimationFrame(look)
		}
		look()
	})`)
	js[int](p, `globalThis.reaction = new Promise(done => {
		addEventListener("keydown", () => {
			const from = performance.now(), before = drawn.at(-1)[3], first = drawn.length
			const look = () => {
				const now = drawn.at(-1)[3]
				if (before === null || now === null || performance.now() - from > 2000) return done([0, 0])
				if (now !== before) return done([drawn.length - first, performance.now() - from])
				requestAnimationFrame(look)
			}
			look()
		}, {once: true, capture: true})
	}), 1`)
	p.key(input.DispatchKeyEventTypeKeyDown, code, virtual)
	took := js[[]float64](p, "reaction")
	p.key(input.DispatchKeyEventTypeKeyUp, code, virtual)
	return int(took[0]), took[1]
}

// pressKeys requires that the ship turns in the next frame in the median, or if it is not predicted not within the round
// trip, which it returns in words.
func (p *tab) pressKeys(predicted bool) string {
	p.t.Helper()
	time.Sleep(2 * time.Second)
	presses := 3 // that count
	if predicted {
		presses = 5
	}
	var frames []int
	var took []float64
	for i := 0; len(took) < presses && i < 4*presses; i++ {
		code, virtual := "ArrowLeft", int64(37)
		if i%2 == 1 {
			code, virtual = "ArrowRight", 39
		}
		if n, ms := p.turn(code, virtual); n > 0 { // else it was shot down
			frames, took = append(frames, n), append(took, ms)
		}
	}
	if len(took) < presses {
		p.t.Fatalf("of %d presses only %d count", 4*presses, len(took))
	}
	slices.Sort(frames)
	slices.Sort(took)
	words := fmt.Sprintf("a key turns the ship in frame %d, after %.0f ms (round trip %.0f ms)", frames, took, p.latest("roundTrip", 1))
	if middle := presses / 2; predicted && (frames[middle] > 1 || frames[presses-1] > 2) || !predicted && took[middle] < 150 {
		p.t.Error(words)
	}
	return words
}

// steerSmoothly steers through a blackout of a second, and requires that the own ship never jumps: from frame to frame it
// moves as fast as it can at most, and as corrections fade. It returns in words what it saw.
func (p *tab) steerSmoothly() string {
	p.t.Helper()
	keys := [...]struct {
		code    string
		virtual int64
	}{{"ArrowUp", 38}, {"ArrowLeft", 37}, {"ArrowRight", 39}, {"Space", 32}}
	press := func(i int, down bool) {
		kind := input.DispatchKeyEventTypeKeyUp
		if down {
			kind = input.DispatchKeyEventTypeKeyDown
		}
		p.key(kind, keys[i].code, keys[i].virtual)
	}
	js[int](p, `drawn.length = 0, 1`)
	before := p.predicted()
	press(0, true)
	press(3, true)
	defer press(0, false)
	defer press(3, false)
	dark := 0
	for i := range 24 { // 6 seconds
		switch i {
		case 8:
			p.post(`{loss: 1}`)
			dark = len(p.drawn())
		case 12:
			p.post(`{loss: 0.05}`)
		}
		press(1+i/2%2, i%2 == 0)
		time.Sleep(250 * time.Millisecond)
	}
	const topSpeed, snap, half = 125.0, 100.0, 0.1
	// The fastest that a correction fades which is not shown at once.
	const fade = snap * 1.678 / half / math.E
	frames := p.drawn()
	most, worst, moved, bullets := 0.0, 0.0, 0, 0.0
	for i := 1; i < len(frames); i++ {
		a, b := frames[i-1], frames[i]
		bullets = max(bullets, *b[4])
		if a[1] == nil || b[1] == nil {
			continue
		}
		moved++
		dt := *b[0] / 1000
		step := math.Hypot(*b[1]-*a[1], *b[2]-*a[2])
		over := step - topSpeed*dt
		most = max(most, over)
		if excess := over - fade*dt - 1; excess > worst {
			worst = excess
			p.t.Errorf("frame %d (dark since %d): the own ship jumps by %.1f units in %.0f ms", i, dark, step, 1000*dt)
		}
	}
	after := p.predicted()
	if after.Rollbacks == before.Rollbacks || after.Missed == before.Missed || after.Spawns == before.Spawns || bullets == 0 {
		p.t.Errorf("predictions from %+v to %+v: nothing was wrong, or nobody has fired", before, after)
	}
	if moved < 60 {
		p.t.Errorf("only %d frames show the own ship move", moved)
	}
	return fmt.Sprintf("through 5 %% loss and a blackout of a second: %d frames, none farther than motion and %.2f units, "+
		"up to %.0f bullets; predictions from %+v to %+v", moved, most, bullets, before, after)
}

// counters are those of predictions.
type counters struct{ Rollbacks, Deepest, Again, Corrections, Snaps, Missed, Spawns, Refused int }

func (p *tab) predicted() (c counters) {
	p.t.Helper()
	check(p.t, json.Unmarshal([]byte(js[string](p, `JSON.stringify(JSON.parse(arena.stats(0)).prediction)`)), &c))
	return c
}
