package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// moment is what a replay shows: part of arena.status(), the sum over the world, and what is drawn.
type moment struct {
	Position, Tick, Entities float64
	Plays, Ended, Present    bool
	Followed, Entity         string
	Why, Damage              string
	Sum                      string
	Drawn                    string
	Slider                   float64 // seconds
}

func (p *tab) moment() (m moment) {
	p.t.Helper()
	check(p.t, json.Unmarshal([]byte(js[string](p, `JSON.stringify({...arena.status(), sum: arena.sum(), drawn: (() => {
		const {rows, n} = arena.frame(0)
		return Array.from({length: n}, (_, i) => rows.slice(6 * i, 6 * i + 6).join()).sort().join(" ") // in whatever order
	})(), slider: Number(document.getElementById("time").value) / arena.about().rate})`)), &m))
	return m
}

// drag drags the slider of a replay to a share of its length by the mouse, and returns how many milliseconds the client
// took for frames with a seek: in the median and at most.
func (p *tab) drag(share float64) []float64 {
	p.t.Helper()
	box := js[[]float64](p, `(() => { const s = document.getElementById("time"), r = s.getBoundingClientRect()
		return [r.left + 7, r.top + r.height / 2, r.width - 14, Number(s.value) / Number(s.max)] })()`)
	mouse := func(kind input.DispatchMouseEventType, share float64) {
		check(p.t, chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: kind, X: box[0] + box[2]*share, Y: box[1], Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1,
			})
			return err
		})))
	}
	js[int](p, `(globalThis.frames = [], globalThis.frame0 ??= arena.frame, arena.frame = dt => {
		const from = performance.now(), all = frame0(dt)
		if (arena.status().seekMs !== null && dt === 0) frames.push(performance.now() - from)
		return all
	}, 1)`)
	const steps = 20
	mouse(input.DispatchMouseEventTypeMousePressed, box[3])
	for i := range steps {
		mouse(input.DispatchMouseEventTypeMouseMoved, box[3]+(share-box[3])*float64(i+1)/steps)
	}
	mouse(input.DispatchMouseEventTypeMouseReleased, share)
	time.Sleep(300 * time.Millisecond)
	return js[[]float64](p, `(frames.sort((a, b) => a - b), frames = frames.filter(ms => ms > 2), [frames[frames.length >> 1], frames.at(-1)])`)
}

// press presses and releases a key.
func (p *tab) press(code, key string, virtual int64) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		check(p.t, chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, input.DispatchKeyEventParams{
				Type: kind, Code: code, Key: key, WindowsVirtualKeyCode: virtual,
			})
			return err
		})))
	}
	time.Sleep(200 * time.Millisecond)
}

// TestReplay records a match with a player in the page, and plays it in the page.
func TestReplay(t *testing.T) {
	began := time.Now()
	step := func(what string) { t.Logf("%5.1f s  %s", time.Since(began).Seconds(), what) }
	file := filepath.Join(t.TempDir(), "match-0412.rec")
	browser := startBrowser(t)
	url, end := startArena(t, "-record", file)
	ada := openTab(t, browser, "Ada", url, "&transport=websocket")
	ada.compiled()
	ada.until("connected", 10*time.Second, connected)
	time.Sleep(3 * time.Second)
	ada.post(`{loss: 0.3}`)
	time.Sleep(2 * time.Second)
	ada.post(`{action: "blackout"}`)
	time.Sleep(6 * time.Second)
	check(t, chromedp.Do(ada.ctx, chromedp.Navigate("about:blank"))) // nobody misses the server
	if text := end(); !strings.Contains(text, "Recorded ") || !strings.Contains(text, "-replay "+file) {
		t.Errorf("the end has no recording:\n%s", text)
	}
	step("a match is recorded")

	out, err := exec.Command(buildArena(t), "-replay", file, "-json").Output()
	check(t, err)
	var all struct {
		Seconds float64
		Sum     string
		Marks   []struct{ Text string }
	}
	check(t, json.Unmarshal(out, &all))
	for _, mark := range []string{"Ada joins", "loss 30 %", "blackout"} {
		if !strings.Contains(fmt.Sprint(all.Marks), mark) {
			t.Errorf("no mark %q: %v", mark, all.Marks)
		}
	}

	url, end = startArena(t, "-replay", file)
	p := openTab(t, browser, "Zoe", url, "")
	p.compiled()
	for end := time.Now().Add(10 * time.Second); !js[bool](p, `!!globalThis.arena && !document.body.classList.contains("waiting")`); {
		if time.Now().After(end) {
			t.Fatalf("it does not play: %s", p.text("#cover"))
		}
		time.Sleep(50 * time.Millisecond)
	}
	first := p.moment()
	time.Sleep(time.Second)
	if now := p.moment(); !now.Plays || now.Position < first.Position+0.5 || now.Drawn == first.Drawn {
		t.Errorf("it does not play: %+v", now)
	}
	step("it plays")
	p.press("Space", " ", 32)
	still := p.moment()
	time.Sleep(300 * time.Millisecond)
	if now := p.moment(); now.Plays || now != still {
		t.Errorf("space does not pause: %v, then %v", still.Position, now.Position)
	}

	var places []moment
	for _, share := range []float64{0.75, 0.25, 0.75} {
		took := p.drag(share)
		m := p.moment()
		places = append(places, m)
		want := share * all.Seconds
		if math.Abs(m.Position-want) > 0.02*all.Seconds || math.Abs(m.Position-m.Slider) > 0.02 {
			t.Errorf("the slider is at %.2f of %.2f s, the replay at %.2f s", want, all.Seconds, m.Position)
		}
		if text := p.text(".moment p"); !strings.HasPrefix(text, clockText(m.Position)+" of "+clockText(all.Seconds)+", tick ") {
			t.Errorf("at %.3f s the page has %q", m.Position, text)
		}
		step(fmt.Sprintf("dragged to %.2f s, tick %.0f; a seek takes %.0f ms in the median, %.0f at most", m.Position, m.Tick, took[0], took[1]))
		if share == 0.75 {
			p.shoot(fmt.Sprintf("replay-desktop-%d", len(places)))
		}
	}
	if a, b := places[0], places[1]; a.Sum == b.Sum || a.Drawn == b.Drawn || a.Tick-b.Tick < 100 || !a.Present || a.Followed != "Ada" {
		t.Errorf("two places of the slider look alike: ticks %v and %v, following %q", a.Tick, b.Tick, a.Followed)
	}
	if a, b := places[0], places[2]; a.Position == b.Position && (a.Sum != b.Sum || a.Drawn != b.Drawn) {
		t.Errorf("%v s is not as it was before: %v, %v", a.Position, a.Sum, b.Sum)
	}

	at := p.moment()
	p.press("Period", ".", 190)
	p.press("Period", ".", 190)
	p.press("Comma", ",", 188)
	if now := p.moment(); math.Round((now.Position-at.Position)*60) != 1 {
		t.Errorf("two steps on and one back move it from %v to %v", at.Position, now.Position)
	}
	p.press("Home", "Home", 36)
	if now := p.moment(); now.Followed == "Ada" && now.Present {
		t.Errorf("Ada is there from the beginning: %+v", now)
	}
	p.press("End", "End", 35)
	p.press("ArrowLeft", "ArrowLeft", 37)
	if now := p.moment(); now.Followed != "Ada" || !now.Present || now.Entity == "" {
		t.Errorf("the page no longer follows Ada: %+v", now)
	}
	p.press("KeyF", "f", 70)
	if now := p.moment(); now.Followed == at.Followed {
		t.Errorf("F follows %q, as before", now.Followed)
	}
	js[int](p, `document.getElementById("time").focus(), 1`) // by the keyboard alone
	p.press("End", "End", 35)
	time.Sleep(500 * time.Millisecond) // until what is interpolated has arrived
	if now := p.moment(); !now.Ended || now.Position < all.Seconds-0.001 || now.Sum != all.Sum {
		t.Errorf("at the end, %v of %v s, the world is %s, and was %s", now.Position, all.Seconds, now.Sum, all.Sum)
	}
	for _, key := range []struct {
		name    string
		virtual int64
		to      float64
	}{
		{"Home", 36, 0}, {"ArrowRight", 39, 5}, {"ArrowUp", 38, 10}, {"ArrowLeft", 37, 5}, {"ArrowDown", 40, 0},
	} {
		p.press(key.name, key.name, key.virtual)
		if now := p.moment(); math.Abs(now.Position-key.to) > 0.05 || math.Abs(now.Slider-now.Position) > 0.02 {
			t.Errorf("with the focus on the slider, %s goes to %v, not %v", key.name, now.Position, key.to)
		}
		if key.name == "ArrowRight" {
			p.shoot("replay-focus")
		}
	}
	js[int](p, `document.activeElement.blur(), 1`)
	p.click("4×")
	p.press("Space", " ", 32)
	at, from := p.moment(), time.Now()
	time.Sleep(time.Second)
	now := p.moment()
	if speed := (now.Position - at.Position) / time.Since(from).Seconds(); speed < 3 || speed > 4.5 {
		t.Errorf("4× plays at %.2f×", speed)
	}
	p.press("Space", " ", 32)
	step("keys, steps, speeds")

	check(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)))
	time.Sleep(time.Second)
	p.shoot("replay-phone")
	js[int](p, `document.querySelectorAll("#tabs button")[0].click(), 1`)
	time.Sleep(500 * time.Millisecond)
	p.shoot("replay-phone-recording")
	consoleIsQuiet(t)
	if text := end(); !strings.Contains(text, "Served ") {
		t.Errorf("the end has %q", text)
	}
}

// clockText writes a moment as the page does.
func clockText(seconds float64) string {
	all := int(math.Round(seconds * 100))
	return fmt.Sprintf("%d:%02d.%02d", all/6000, all/100%60, all%100)
}
