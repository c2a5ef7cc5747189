// Package e2e opens the arena's page in Chromium, plays, and breaks the network.
//
//	go test -count=1 . -args -shots DIRECTORY
//	go test -count=1 -v -run LongGame . -args -long 2m
//
// The first also takes pictures and films the loss slider; the second is a load test.
// It is a module of its own, so that no user of the library has a browser among the dependencies.
package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "`directory` for screenshots")

// limit is for all steps, once the programs are compiled.
const limit = 90 * time.Second

// startArena starts the arena and returns the address of its page, and what ends it by Ctrl-C and returns what it
// printed.
func startArena(t *testing.T, flags ...string) (url string, end func() string) {
	t.Helper()
	return startArenaIn(t, "../../..", flags...)
}

// buildArena compiles the arena and returns the program.
func buildArena(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "arena")
	build := exec.Command("go", "build", "-o", program, "./examples/arena")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func startArenaIn(t *testing.T, directory string, flags ...string) (url string, end func() string) {
	t.Helper()
	arena := exec.Command(buildArena(t), append([]string{"-http", "127.0.0.1:0", "-open=false"}, flags...)...)
	arena.Dir = directory
	out, err := arena.StdoutPipe()
	check(t, err)
	arena.Stderr = os.Stderr
	check(t, arena.Start())
	var lines []string
	address, done := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(done)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines = append(lines, scan.Text())
			if _, at, ok := strings.Cut(scan.Text(), "play at "); ok {
				address <- at
			}
		}
	}()
	end = sync.OnceValue(func() string {
		check(t, arena.Process.Signal(syscall.SIGINT))
		<-done
		err := arena.Wait()
		text := strings.Join(lines, "\n")
		if err != nil || !strings.Contains(text, "client  lost") && !strings.Contains(text, "No client came") &&
			!strings.Contains(text, "Served ") {
			t.Errorf("Ctrl-C does not end with the table: %v\n%s", err, text)
		}
		return text
	})
	t.Cleanup(func() {
		if text := end(); t.Failed() {
			t.Log(text)
		}
	})
	select {
	case url = <-address:
	case <-time.After(time.Minute):
		t.Fatal("the arena prints no address")
	}
	return url, end
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A tab is a page in the browser.
type tab struct {
	t    *testing.T
	name string
	ctx  context.Context
	url  string
}

// openTab opens the page in a tab of the browser of ctx.
func openTab(t *testing.T, browser context.Context, name, url, query string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &tab{t: t, name: name, ctx: ctx, url: url}
	p.listen()
	check(t, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 720), chromedp.Navigate(url+"?name="+name+query)))
	return p
}

// view sets the size of a tab.
func (p *tab) view(width, height int64) {
	p.t.Helper()
	check(p.t, chromedp.Do(p.ctx, chromedp.EmulateViewport(width, height)))
	time.Sleep(time.Second / 2)
}

// Errors of the console, of all tabs.
var console struct {
	sync.Mutex
	errors []string
}

func consoleIsQuiet(t *testing.T) {
	t.Helper()
	console.Lock()
	defer console.Unlock()
	if len(console.errors) > 0 {
		t.Errorf("the console has errors:\n%s", strings.Join(console.errors, "\n"))
	}
}

func (p *tab) listen() {
	messages := chromedp.Console(p.ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if kind := string(m.Type); kind == "error" || kind == "exception" || kind == "assert" {
				console.Lock()
				console.errors = append(console.errors, fmt.Sprintf("%s: %s %s", p.name, m.Text, m.URL))
				console.Unlock()
			}
		}
	}()
}

// js evaluates an expression, or a promise.
func js[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %s: %v", p.name, expression, err)
	}
	return v
}

// status is part of arena.status().
type status struct {
	Transport, State, Why, Sum, Lamp string
	Entities                         int
	Diverged, Compared, Tick         float64
	Starved, Frames                  float64
	GhostError                       float64
	Own                              struct {
		X, Y, Angle float64
		Alive       bool
	}
}

func (p *tab) status() (s status) {
	p.t.Helper()
	check(p.t, json.Unmarshal([]byte(js[string](p, `globalThis.arena ? JSON.stringify(arena.status()) : "{}"`)), &s))
	return s
}

// until waits until a tab is as wanted.
func (p *tab) until(what string, most time.Duration, ok func(s status) bool) {
	p.t.Helper()
	var s status
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s = p.status(); ok(s) {
			return
		}
	}
	p.t.Fatalf("%s: not within %v: %s: %+v", p.name, most, what, s)
}

func connected(s status) bool { return s.State == "connected" && s.Own.Alive && s.Entities > 50 }
func equal(s status) bool     { return s.Lamp == "equal" && s.Diverged == 0 }

// debug is the state of the server.
type debug struct {
	Sum               string
	Entities, Players int
	Heap              float64
}

func serverState(t *testing.T, url string) (d debug) {
	t.Helper()
	answer, err := http.Get(url + "debug/arena.json")
	check(t, err)
	defer answer.Body.Close()
	check(t, json.NewDecoder(answer.Body).Decode(&d))
	return d
}

// post changes the network or the match, as the page does.
func (p *tab) post(settings string) {
	p.t.Helper()
	js[int](p, `fetch("/break", {method: "POST", body: JSON.stringify(`+settings+`)}).then(r => {
		if (!r.ok) throw new Error("refused"); return r.status })`)
}

// compareWorlds stops the game, and waits until the tabs have exactly the server's world.
func compareWorlds(t *testing.T, tabs ...*tab) {
	t.Helper()
	tabs[0].post(`{action: "freeze"}`)
	defer tabs[0].post(`{action: "resume"}`)
	time.Sleep(200 * time.Millisecond)
	server := serverState(t, tabs[0].url)
	for _, p := range tabs {
		p.until(fmt.Sprintf("the world of the server: %+v", server), 5*time.Second, func(s status) bool {
			return s.Sum == server.Sum && s.Entities == server.Entities
		})
	}
}

// key presses or releases a key of the keyboard.
func (p *tab) key(kind input.DispatchKeyEventType, code string, virtual int64) {
	p.t.Helper()
	check(p.t, chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, input.DispatchKeyEventParams{
			Type: kind, Code: code, Key: code, WindowsVirtualKeyCode: virtual,
		})
		return err
	})))
}

// latest returns the mean of a figure of the client's inspector, or with server of the server's, over the last seconds.
func (p *tab) latest(figure string, seconds int, server ...bool) float64 {
	p.t.Helper()
	source := "arena.stats(0)"
	if len(server) > 0 {
		source = `await (await fetch("/debug/replication/json?since=0")).text()`
	}
	return js[float64](p, fmt.Sprintf(`(async () => {
		const all = JSON.parse(%s).samples[%q].filter(v => v !== null).slice(-4 * %d)
		return all.reduce((a, b) => a + b, 0) / Math.max(1, all.length)
	})()`, source, figure, seconds))
}

// strip returns the words of an instrument.
func (p *tab) strip(name string) string {
	p.t.Helper()
	return js[string](p, fmt.Sprintf(`[...document.querySelectorAll(".ri-strip .ri-text")].map(e => e.innerText.replace(/\s+/g, " ")).find(
		text => text.startsWith(%q)) ?? ""`, name))
}

// shoot saves a screenshot.
func (p *tab) shoot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	for end := time.Now().Add(4 * time.Second); !p.status().Own.Alive && p.status().State != "" && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	check(p.t, err)
	check(p.t, os.MkdirAll(*shots, 0o755))
	check(p.t, os.WriteFile(filepath.Join(*shots, name+".png"), picture, 0o644))
}

func startBrowser(t *testing.T) context.Context {
	t.Helper()
	console.Lock()
	console.errors = nil // of the browser of another test, whose server has ended
	console.Unlock()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	browser, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	check(t, chromedp.Do(browser))
	return browser
}

// compiled waits until the server has compiled the client.
func (p *tab) compiled() {
	p.t.Helper()
	js[bool](p, `new Promise(done => { const look = async () => {
		const s = await (await fetch("/status")).json()
		if (s.done || s.error) done(true); else setTimeout(look, 100)
	}; look() })`)
}

func TestPage(t *testing.T) {
	began := time.Now()
	step := func(what string) { t.Logf("%5.1f s  %s", time.Since(began).Seconds(), what) }
	url, end := startArena(t)
	browser := startBrowser(t)
	step("the browser runs")

	ada := openTab(t, browser, "Ada", url, "&transport=websocket")
	ada.shoot("compiling")
	step("the page is there")
	ada.compiled()
	step("the client is compiled")
	began = time.Now()
	ada.until("connected", 10*time.Second, connected)
	step("Ada plays")
	ada.logFrames()
	ada.post(`{preset: "perfect", latencyMs: 75}`)
	step(ada.pressKeys(true))
	js[int](ada, `arena.set("prediction", false), 1`)
	step("without prediction " + ada.pressKeys(false))
	js[int](ada, `arena.set("prediction", true), 1`)
	ada.post(`{preset: "home"}`)

	zoe := openTab(t, browser, "Zoe", url, "")
	zoe.until("connected", 10*time.Second, connected)
	step("Zoe plays")
	if a, z := ada.status().Transport, zoe.status().Transport; a != "WebSocket" || z != "WebTransport" {
		t.Errorf("the transports are %q and %q", a, z)
	}
	if players := serverState(t, url).Players; players != 2 {
		t.Errorf("the server has %d players", players)
	}

	ada.until("a green lamp", 8*time.Second, equal)
	zoe.until("a green lamp", 8*time.Second, equal)
	compareWorlds(t, ada, zoe)
	step("all worlds are equal")

	// The other tab shows the ship of this player where this one does, once nothing moves.
	ada.key(input.DispatchKeyEventTypeKeyDown, "ArrowUp", 38)
	time.Sleep(time.Second / 2)
	ada.key(input.DispatchKeyEventTypeKeyUp, "ArrowUp", 38)
	compareWorlds(t, ada, zoe)
	step("the other tab shows where it is")

	for _, p := range []*tab{ada, zoe} { // of the page's own peer: what is held back, and its MTU
		for name, wrong := range map[string]string{"Entities sent": "–", "Packet size": "▲"} {
			if text := p.strip(name); text == "" || strings.Contains(text, wrong) {
				t.Errorf("%s: the strip %q has %q", p.name, name, text)
			}
		}
	}
	ada.toTheMiddle()
	ada.shoot("desktop-play")
	ada.click("Break the network")
	ada.post(`{preset: "lan"}`)
	for _, p := range []*tab{ada, zoe} { // at 10 packets a second, acknowledgements that are a little late do not matter
		js[int](p, `arena.set("sendRate", 10), 1`)
	}
	time.Sleep(5 * time.Second)
	before := ada.latest("age", 3, true)
	movie := &film{tab: ada}
	if *shots != "" {
		movie.run(5, 250*time.Millisecond)
	}
	loss := ada.loss(30, movie.shoot)
	settled := time.Now().Add(5 * time.Second)
	if *shots != "" {
		movie.run(12, 300*time.Millisecond)
		movie.save("loss")
	}
	time.Sleep(time.Until(settled))
	after := ada.latest("age", 3, true)
	if after <= 1.2*before {
		t.Errorf("with 30 %% loss baselines are %.1f ticks old, without %.1f", after, before)
	}
	ada.until("a green lamp", 3*time.Second, equal)
	zoe.until("a green lamp", 3*time.Second, equal)
	ada.shoot("desktop-break")
	compareWorlds(t, ada, zoe)
	step(fmt.Sprintf("with a loss of %.2g: baselines of %.1f instead of %.1f ticks, equal worlds", loss, after, before))

	for _, p := range []*tab{ada, zoe} {
		js[int](p, `arena.set("sendRate", 20), 1`)
	}
	ada.post(`{preset: "perfect", latencyMs: 75, loss: 0.05}`)
	time.Sleep(2 * time.Second) // until inputs are given as early as that takes
	step(ada.steerSmoothly())
	ada.view(1600, 900)
	ada.shoot("desktop-prediction")
	ada.view(1280, 720)
	ada.post(`{preset: "home"}`)
	dark := ada.status().Tick
	ada.click("Blackout 5 s")
	dawn := time.Now().Add(5 * time.Second)
	time.Sleep(2500 * time.Millisecond)
	if text := ada.text("#net .ri-lamp"); strings.Contains(text, "equal\n") || !strings.Contains(text, "Nothing arrives") ||
		!strings.Contains(text, "ago") {
		t.Errorf("in a blackout the lamp has %q", text)
	}
	if text := ada.text(".acts"); !strings.Contains(text, "s left") {
		t.Errorf("nothing counts down: %q", text)
	}
	for _, of := range []string{"#net .ri-compare", "#chip"} {
		if text := ada.text(of); strings.Contains(text, "100.0") {
			t.Errorf("nothing is sent, and that saves: %q", text)
		}
	}
	ada.shoot("desktop-blackout")
	time.Sleep(time.Until(dawn))
	back := time.Now()
	for _, p := range []*tab{ada, zoe} {
		p.until("recovered", 2*time.Second-time.Since(back), func(s status) bool {
			return s.State == "connected" && s.Tick > dark+4.5*60
		})
	}
	step(fmt.Sprintf("a blackout is over after %d ms", time.Since(back).Milliseconds()))
	compareWorlds(t, ada, zoe)
	ada.until("a green lamp", 4*time.Second, equal)

	ada.click("Compact")
	ada.until("connected by Compact", 5*time.Second, func(s status) bool {
		return connected(s) && js[bool](ada, `arena.status().coding == "compact" && JSON.parse(arena.stats(0)).counters.Compact === true`)
	})
	js[int](zoe, `arena.set("radius", 200), 1`)
	zoe.until("fewer entities", 5*time.Second, func(s status) bool { return s.Entities > 0 && s.Entities < 60 })
	js[int](zoe, `arena.set("radius", 0), 1`)
	ada.until("a green lamp", 5*time.Second, equal)
	compareWorlds(t, ada, zoe)
	step("Compact, and a radius")

	js[int](ada, `arena.set("ghosts", true), 1`)
	ada.until("ghosts of ships", 3*time.Second, func(s status) bool { return s.GhostError > 0 && s.GhostError < 100 })
	js[int](ada, `arena.set("ghosts", false), 1`)
	js[int](ada, `arena.set("pauseClient", 1500), 1`)
	paused := ada.status().Tick
	time.Sleep(time.Second)
	if now := ada.status().Tick; now > paused+5 {
		t.Errorf("a client that pauses goes on from tick %v to %v", paused, now)
	}
	ada.until("the present after a pause", 3*time.Second, func(s status) bool { return s.Tick > paused+90 })
	time.Sleep(time.Second) // what the pause has made older is over
	before = ada.latest("age", 1)
	js[int](ada, `arena.set("stopAcks", true), 1`)
	time.Sleep(2 * time.Second)
	after = js[float64](ada, `Math.max(...JSON.parse(arena.stats(0)).samples.age.slice(-8).filter(v => v !== null))`)
	if after <= 1.5*before {
		t.Errorf("without acknowledgements baselines are %.1f ticks old, with them %.1f", after, before)
	}
	js[int](ada, `arena.set("stopAcks", false), 1`)
	ada.until("a green lamp", 5*time.Second, equal)
	compareWorlds(t, ada, zoe)
	step(fmt.Sprintf("ghosts, a pause, no acknowledgements: baselines of %.1f instead of %.1f ticks", after, before))

	check(t, chromedp.Do(zoe.ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)))
	time.Sleep(time.Second)
	zoe.shoot("phone-play")
	js[int](zoe, `document.querySelectorAll("#tabs button")[1].click(), 1`)
	time.Sleep(time.Second)
	zoe.shoot("phone-break")
	if text := zoe.text("#chip"); !strings.Contains(text, "kbit/s") || !strings.Contains(text, "equal") || !js[bool](zoe, `!!document.querySelector("#chip").offsetParent`) {
		t.Errorf("with the drawer open one sees %q", text)
	}
	js[int](zoe, `document.querySelectorAll("#tabs button")[2].click(), 1`)
	time.Sleep(time.Second)
	zoe.shoot("phone-match")
	step("done")

	consoleIsQuiet(t)
	if took := time.Since(began); took > limit {
		t.Errorf("it took %v, more than %v", took, limit)
	}
	if text := end(); strings.Count(text, "  equal\n") < 2 {
		t.Errorf("the worlds of two tabs are not equal at the end:\n%s", text)
	}
}

// toTheMiddle teleports all until this player is where others fight.
func (p *tab) toTheMiddle() {
	p.t.Helper()
	for range 20 {
		p.post(`{action: "teleport"}`)
		time.Sleep(300 * time.Millisecond)
		if own := p.status().Own; math.Hypot(own.X, own.Y) < 200 {
			return
		}
	}
}

// text returns the words of an element.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return js[string](p, fmt.Sprintf(`document.querySelector(%q).innerText.replace(/[\u00a0\u202f]/g, " ")`, selector))
}

// TestWithoutTheRepository: a program that is started elsewhere cannot compile the client, and the page reports that.
func TestWithoutTheRepository(t *testing.T) {
	url, _ := startArenaIn(t, t.TempDir())
	p := openTab(t, startBrowser(t), "Ada", url, "")
	p.compiled()
	time.Sleep(time.Second)
	if text := p.text("#cover"); !strings.Contains(text, "The client does not compile") || strings.Contains(text, "Compiling") ||
		!strings.Contains(text, "run the arena in a clone of its repository") {
		t.Errorf("the page has %q", text)
	}
	p.shoot("failed")
}

// loss drags the page's slider to so many percent, and returns what the network has then. It calls seen after each step.
func (p *tab) loss(percent float64, seen func()) float64 {
	p.t.Helper()
	var slider struct{ Left, Top, Width, Height, Value, Max float64 }
	check(p.t, json.Unmarshal([]byte(js[string](p, `(() => {
		const s = document.getElementById("set-loss"), r = s.getBoundingClientRect()
		return JSON.stringify({left: r.left, top: r.top, width: r.width, height: r.height, value: Number(s.value), max: Number(s.max)})
	})()`)), &slider))
	const knob = 14 // its middle does not reach the ends
	at := func(value float64) float64 {
		return slider.Left + knob/2 + (slider.Width-knob)*value/slider.Max
	}
	y := slider.Top + slider.Height/2
	const steps = 14
	mouse := func(kind input.DispatchMouseEventType, step int) {
		x := at(slider.Value + (percent-slider.Value)*float64(step)/steps)
		check(p.t, chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1,
			})
			return err
		})))
	}
	mouse(input.DispatchMouseEventTypeMousePressed, 0)
	for step := range steps {
		mouse(input.DispatchMouseEventTypeMouseMoved, step+1)
		seen()
	}
	mouse(input.DispatchMouseEventTypeMouseReleased, steps)
	var loss float64
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		loss = js[float64](p, `fetch("/break").then(r => r.json()).then(s => s.loss)`)
		if math.Abs(100*loss-percent) <= 2 {
			return loss
		}
	}
	p.t.Fatalf("the slider sets a loss of %.3g, not of %v %%", loss, percent)
	return 0
}

// click clicks the button of the page with this text.
func (p *tab) click(text string) {
	p.t.Helper()
	at := js[[]float64](p, fmt.Sprintf(`(() => {
		const of = [...document.querySelectorAll("button")].find(b => b.textContent.replace(/\s/g, " ").trim() === %q && b.offsetParent)
		if (!of) throw new Error("no button")
		const r = of.getBoundingClientRect()
		return [r.left + r.width / 2, r.top + r.height / 2]
	})()`, text))
	check(p.t, chromedp.Do(p.ctx, chromedp.MouseClickXY(at[0], at[1])))
}
