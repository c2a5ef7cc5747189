//go:build js

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall/js"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// replay is a recording that the page plays.
type replay struct {
	world  ecs.World
	player *recording.Player
	reader *game.Reader
	view   *view
	failed error

	plays    bool
	wanted   time.Duration // where to seek in the next frame; negative: nowhere
	took     time.Duration // by the latest seek
	follow   int           // Ship.Number, or -1
	followed string        // its name
	wish     string        // the name of the ship to follow whenever it is there
	chosen   bool          // by the user
	bot      bool          // the page wishes for a bot, as there was no player
	seen     time.Time

	segments []recording.Segment
	file     js.Value
}

// array reads a Uint8Array of the page.
type array struct{ js js.Value }

func (a array) ReadAt(b []byte, at int64) (int, error) {
	n := js.CopyBytesToGo(b, a.js.Call("subarray", at, at+int64(len(b))))
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// replay exports what plays the recording in a Uint8Array.
func (page exports) replay(file js.Value) {
	r := &replay{world: ecs.NewWorld(1024), file: file, follow: -1, plays: true}
	schema, _ := game.NewSchema()
	if r.player, r.failed = recording.NewPlayer(&r.world, schema, array{file}, int64(file.Length())); r.failed == nil {
		client := r.player.Client()
		replication.OnServerMessage(client, func(h game.Hit) { r.view.hit(h, r.follow) })
		r.view = newView(&r.world, client, interpolation.Attach(client))
		r.reader = game.NewReader(&r.world, schema)
		r.segments = r.player.Segments()
		r.frame(0)
		page.function("frame", func(args []js.Value) any {
			r.frame(time.Duration(numberOf(args[0]) * float64(time.Millisecond)))
			return r.view.result()
		})
		page.function("status", func([]js.Value) any { return r.status().js })
		page.function("about", func([]js.Value) any { return r.about().js })
		page.function("sum", func([]js.Value) any { // over all values of all entities
			return fmt.Sprintf("%016x", r.reader.Census(client.Entities()).Sum)
		})
		page.function("events", func([]js.Value) any { return r.view.takeEvents() })
		page.function("set", func(args []js.Value) any {
			r.set(args[0].String(), args[1])
			return nil
		})
	}
	page.function("failed", func([]js.Value) any { return words(r.failed) })
}

// words returns an error as the page writes it.
func words(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "recording: ")
}

// frame lets time pass, or goes where the page wants to.
func (r *replay) frame(dt time.Duration) {
	if r.failed != nil {
		return
	}
	switch {
	case r.wanted >= 0:
		began := time.Now()
		r.failed = r.player.Seek(r.wanted)
		r.took, r.wanted = time.Since(began), -1
		r.view.forget()
		r.seen = time.Time{}
	case r.plays || r.ended(): // there, what is interpolated completes its motion
		r.failed = r.player.Frame(dt)
		r.plays = r.plays && !r.ended()
	}
	r.draw()
}

func (r *replay) ended() bool { return r.player.Ended() || r.player.Position() >= r.player.Duration() }

func (r *replay) draw() {
	r.view.draw(r.follow, false, nil)
	if r.direct() {
		r.view.draw(r.follow, false, nil)
	}
	if s := r.view.ships[r.follow]; s != nil {
		r.followed, r.seen = s.title(), time.Now()
	}
}

// direct follows the ship that is wished for. While that is not there, and the user has not chosen it, direct follows a
// player, or else the best bot. It returns whether that is another ship than before.
func (r *replay) direct() bool {
	before, now := r.follow, r.view.ships[r.follow]
	switch wish := r.wished(); {
	case wish != nil:
		now = wish
	case r.chosen:
		r.follow = -1
		return before >= 0
	case now == nil && r.present():
		return false
	}
	if now == nil || now.name == "" && !r.chosen {
		ranking := r.view.ranking()
		if i := slices.IndexFunc(ranking, func(s *ship) bool { return s.name != "" }); i >= 0 {
			now = ranking[i]
		} else if now == nil && len(ranking) > 0 {
			now = ranking[0]
		}
		if now == nil {
			return false
		}
		if r.wish == "" || r.bot {
			r.wish, r.bot = now.title(), now.name == ""
		}
	}
	r.follow = now.number
	return r.follow != before
}

// wished returns the ship that is wished for, or nil if it is not there.
func (r *replay) wished() *ship {
	var found *ship
	for _, s := range r.view.ships {
		switch { // of several with that name, the one that is followed, or else the first
		case s.title() != r.wish:
		case s.number == r.follow:
			return s
		case found == nil || s.number < found.number:
			found = s
		}
	}
	return found
}

// choose follows a ship from now on.
func (r *replay) choose(s *ship) { r.follow, r.wish, r.chosen = s.number, s.title(), true }

// present reports whether the ship that is followed is there, or was a moment ago: it may be about to respawn.
func (r *replay) present() bool { return time.Since(r.seen) < time.Second }

// next follows the ship after the present one, by the ranking.
func (r *replay) next() {
	if ranking := r.view.ranking(); len(ranking) > 0 {
		at := slices.IndexFunc(ranking, func(s *ship) bool { return s.number == r.follow })
		r.choose(ranking[(at+1)%len(ranking)])
	}
}

// nearest follows the ship nearest to a point.
func (r *replay) nearest(x, y float64) {
	ships := r.view.ranking()
	if len(ships) == 0 {
		return
	}
	far := func(s *ship) float64 { return (s.x-x)*(s.x-x) + (s.y-y)*(s.y-y) }
	r.choose(slices.MinFunc(ships, func(a, b *ship) int { return cmp.Compare(far(a), far(b)) }))
}

// set changes what is played.
func (r *replay) set(name string, value js.Value) {
	seconds := func(s float64) time.Duration { return max(0, time.Duration(s*float64(time.Second))) }
	switch name {
	case "play":
		r.plays = value.Truthy()
		if r.plays && r.ended() {
			r.wanted = 0
		}
	case "speed":
		r.player.SetSpeed(max(0, min(numberOf(value), recording.MaxSpeed)))
	case "seek":
		r.wanted = seconds(numberOf(value))
	case "step": // ticks
		r.plays = false
		tick := 1 / float64(max(r.player.Client().TickRate(), 1))
		r.wanted = seconds(r.player.Position().Seconds() + numberOf(value)*tick)
	case "follow":
		r.next()
	case "followAt":
		r.nearest(numberOf(value.Index(0)), numberOf(value.Index(1)))
	default:
		js.Global().Get("console").Call("warn", "arena.set: there is no setting "+name)
	}
}

// kbits returns the bandwidth of the recording at a moment.
func (r *replay) kbits(at time.Duration) float64 {
	end := r.player.Duration()
	for _, s := range slices.Backward(r.segments) {
		if s.At <= at && end > s.At {
			return 8 * float64(s.Bytes) / 1000 / (end - s.At).Seconds()
		}
		end = s.At
	}
	return 0
}

// status is what the page writes.
func (r *replay) status() object {
	at, now := r.player.Position(), time.Now()
	o := newObject()
	o.text("why", words(r.failed))
	o.text("damage", words(r.player.Damage()))
	o.number("position", at.Seconds())
	o.integer("tick", int(r.player.Client().Tick()))
	o.truth("plays", r.plays)
	o.truth("ended", r.ended())
	o.integer("entities", r.view.entities)
	o.number("kbits", r.kbits(at))
	o.known("seekMs", float64(r.took.Microseconds())/1000, r.took > 0)
	o.text("followed", r.followed)
	o.truth("present", r.present())
	o.text("entity", r.entity())
	o.object("own", r.view.ownStatus(r.follow, r.followed, now))
	o.object("match", r.view.matchStatus(r.follow))
	return o
}

// entity returns the number of the entity that is followed, or "" if it is not there.
func (r *replay) entity() string {
	if s := r.view.ships[r.follow]; s != nil {
		return s.id.String()
	}
	return ""
}

// about is what does not change.
func (r *replay) about() object {
	marks, segments := newList(), newList()
	for _, m := range r.player.Marks() {
		o := newObject()
		o.number("at", m.At.Seconds())
		o.text("text", m.Text)
		marks.add(o.js)
	}
	for _, s := range r.segments {
		segments.add(js.ValueOf([]any{s.At.Seconds(), float64(s.Bytes)}))
	}
	meta := newObject()
	for key, value := range r.player.Meta() {
		meta.text(key, value)
	}
	o := newObject()
	o.number("duration", r.player.Duration().Seconds())
	o.integer("bytes", r.file.Length())
	o.integer("rate", r.player.Client().TickRate())
	o.object("meta", meta)
	o.list("marks", marks)
	o.list("segments", segments)
	return o
}
