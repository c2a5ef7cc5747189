package playout

import (
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	frames "github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Playout shows the components of a client's world as they were a short while ago, at a time for which the states
// before and after are known. It belongs to the goroutine of its client.
type Playout struct {
	client *replication.Client
	inside *seam.Client
	world  *ecs.World
	marker ecs.ID // of replication.Mirrored
	watch  receive.Watch

	clock    clock
	zero     delta.Tick // the tick at which the clock's server time is 0
	sequence uint32     // the newest of a packet
	sessions int        // of the watch, when it was last looked at
	at       blend.Time
	joining  bool              // the session has begun, and the client was not complete in the last frame
	joined   delta.Tick        // what has states of this tick or before was there when the session began, or is shown
	looked   bool              // the columns have looked up states of this session
	resets   int               // of the world, when they did
	long     frames.LongFrames // in which nobody knows when packets arrived

	tables      tables
	columns     []column
	twins       []twin
	messages    timeline
	cuts        []cut
	extrapolate delta.Tick // for how long; 0: not at all
	guessed     bool       // that was done in this frame
	guesses     uint64     // frames in which it was done
}

// New returns a play-out for a client. It changes nothing until components are named with [Interpolate],
// [InterpolateInto], [Hermite] or [Custom]. A client can have one play-out, for as long as the client lives; it keeps
// working after [replication.Client.Reconnect].
//
// Panics if the client has one already, or if an option is nil.
func New(client *replication.Client, opts ...Option) *Playout {
	for _, opt := range opts {
		if opt == nil {
			panic("playout: New: an option is nil: leave it out")
		}
	}
	inside := seam.OfClient(client)
	if inside.Recv.Watch != nil {
		panic("playout: New: this client has a Playout: make one per client and keep it")
	}
	p := &Playout{
		client: client, inside: inside, world: inside.Apply.View.World, marker: inside.Apply.View.Marker, joining: true,
	}
	p.tables = tables{world: p.world, known: map[ecs.Mask]*table{}}
	p.clock = clock{limits: limits{margin: defaultMargin, slowest: 0.75, fastest: 1.05}}
	for _, opt := range opts {
		opt(p)
	}
	inside.Recv.Watch = &p.watch
	inside.Apply.Calls.ExpectMeets()
	return p
}

// Advance moves [Playout.Time] on by dt and shows the world as of then. While the delay has to change, time passes a
// little slower or faster than dt: see [Speed]. Call it once per frame, after [replication.Client.Apply], with the same
// dt as [replication.Client.Advance]: the time since the last call, however long.
//
// It writes the components named with [Interpolate] and the like in all replicas. Before the first state of a session
// has arrived, it changes nothing.
//
// A negative dt, of a clock that was set back or of a ticker under load, counts as 0 and in [Stats].
//
// Call it on the goroutine of Apply, or hold a mutex around each call of both. On another goroutine, the first 128
// calls take a millisecond longer, so that what Apply's goroutine calls meanwhile panics if there is no mutex.
//
// Panics if the world is locked, and in a hook.
func (p *Playout) Advance(dt time.Duration) {
	p.mustExist()
	calls := p.inside.Apply.Calls
	calls.Check()
	p.inside.Apply.Hooks.NotInHook("Playout.Advance")
	defer calls.Leave(calls.Enter(exclusive.PlayoutAdvance))
	calls.Meet()
	calls.PermitReading() // for the function of Custom, and Arche's listener
	if p.world.IsLocked() {
		panic("playout: Advance on a locked world: call it outside of queries")
	}
	if dt < 0 {
		p.clock.counts.clockSteps++
		dt = 0
	}
	if p.watch.Sessions != p.sessions {
		p.sessions = p.watch.Sessions
		p.restart()
		p.handleMessages(true) // their ticks may mean nothing in this session
	}
	p.receive(min(dt, maxAdvance))
	defer p.watch.Empty(&p.inside.Recv.Replicas)
	if !p.clock.running {
		return
	}
	if p.joining {
		p.joined, p.joining = p.zero+delta.Tick(p.clock.newest), !p.client.Complete()
	} else if p.at.Tick.After(p.joined) {
		p.joined = p.at.Tick
	}
	stamp(p)
	p.invalidate()
	for i := range p.twins {
		p.twins[i].match(p)
	}
	p.guessed = false
	for _, c := range p.columns {
		c.show(p)
		c.sample(p)
	}
	if p.guessed {
		p.guesses++
	}
	p.handleMessages(false)
}

// handleMessages delivers the messages that have arrived for what is shown, or all of them.
func (p *Playout) handleMessages(all bool) {
	if m := p.inside.Messages; m != nil {
		p.messages.handle(p.inside.Apply.Calls, &m.Closed, p.beginMessage, p.at.Tick, all)
	}
}

// nextState returns the first tick from the given one on in which the send interval allows a state. What the server has
// sent with a message is shown then.
func (p *Playout) nextState(tick delta.Tick) delta.Tick {
	c := &p.clock
	if !c.any {
		return tick
	}
	interval := int64(max(int(p.inside.Recv.Interval), 1))
	until := (int64(c.newest) - int64(int32(tick-p.zero))) % interval
	return tick + delta.Tick((until+interval)%interval)
}

// beginMessage makes a message that has waited the one that is being handled. It reports whether the world has been
// reset since the message came.
func (p *Playout) beginMessage(m waitingMessage) (reset bool) {
	p.inside.Messages.Tick = m.tick
	return m.resets != p.inside.Apply.Resets || !p.inside.Apply.View.Intact()
}

// receivePacket takes note of a state packet. known reports that it came just now.
func (p *Playout) receivePacket(packet receive.Arrival, known bool) {
	c := &p.clock
	if !c.any {
		p.zero, p.sequence = packet.Tick, packet.Sequence-1
		c.now = 0
	}
	sent, ticks := max(int32(packet.Sequence-p.sequence), 0), 0 // sent are with those that got lost
	at := float64(int32(packet.Tick - p.zero))
	counted := sent
	if !c.any || at > c.newest {
		if packet.Crowded || at-c.newest >= longestGap*c.rate {
			counted = 1 // what is left out has come, and of an outage nothing got lost by chance
		}
		c.settle(at, packet.Settled)
		length := min(at-c.newest, max(float64(sent)*c.interval, c.saving()))
		c.received(at, length, known)
		ticks = 1
	}
	p.sequence += uint32(sent)
	c.losses.add(int(counted), 1, ticks)
}

// mustExist panics if there is no play-out.
func (p *Playout) mustExist() {
	if p == nil || p.world == nil {
		panic("playout: there is no Playout: New makes one")
	}
}

// receive makes time pass, and takes note of what came.
func (p *Playout) receive(dt time.Duration) {
	c := &p.clock
	c.rate = float64(p.client.TickRate())
	c.setInterval(float64(int(p.inside.Recv.Interval)))
	p.watch.Keep = delta.Tick(c.rate + 3*c.interval) // longer than almost any delay
	c.follow(p.inside.Clock.Speed())
	ticks := c.pass(dt.Seconds())
	c.alive = p.alive()
	short := dt.Seconds() <= longFrame
	p.long.Note(dt.Seconds() / longFrame)
	for i, packet := range p.watch.Packets {
		// In a long frame nobody knows when packets arrived. A slow client has to take the last one for one that
		// arrived at the end of the frame.
		p.receivePacket(packet, short || p.long.Usual() && i == len(p.watch.Packets)-1)
	}
	c.advance(ticks)
	p.at = round(blend.Time{Tick: p.zero}.Add(int64(math.Floor(c.shown*blend.Parts+0.5))), c.rate)
	if c.newest > rebase {
		p.rebase()
	}
}

// alive returns the server's time of the newest packet that came. Without messages and inputs, all packets are states.
func (p *Playout) alive() float64 {
	if m := p.inside.Messages; m != nil && m.Clock.Known {
		return float64(int32(delta.Tick(m.Clock.Newest) - p.zero))
	}
	return p.clock.newest
}

// invalidate makes the columns look up what came, or all of it if the clock has just begun to run, or if Apply has
// spawned everything anew.
func (p *Playout) invalidate() {
	if resets := p.inside.Apply.Resets; !p.looked || p.resets != resets {
		p.looked, p.resets = true, resets
		for _, c := range p.columns {
			c.forget(p.at.Tick)
		}
	}
	for _, slot := range p.watch.Slots {
		slot = p.entitySlot(slot)
		for _, c := range p.columns {
			c.invalidate(slot, p.at.Tick)
		}
	}
}

const (
	// maxAdvance bounds the time that passes at once, as that of the client.
	maxAdvance = time.Hour
	// rebase is how many ticks times count up to, so that small differences of times remain exact.
	rebase = 1 << 22
)

// rebase lets the clock's times count from another tick.
func (p *Playout) rebase() {
	c := &p.clock
	by := math.Floor(c.newest)
	p.zero += delta.Tick(by)
	c.now, c.time, c.shown, c.newest, c.computed = c.now-by, c.time-by, c.shown-by, c.newest-by, c.computed-by
}

// restart forgets what was known of the network and of ticks, which may be those of another server.
func (p *Playout) restart() {
	old := &p.clock
	p.looked, p.joining = false, true
	p.clock = clock{
		limits: old.limits, ahead: old.ahead, counts: old.counts,
		gaps: gaps{ring: old.gaps.ring, offsets: old.gaps.offsets[:0]},
	}
}

// replica returns the NetID of a replica, by its marker, and false if it is the replica of another client.
func (p *Playout) replica(marker unsafe.Pointer) (id wire.NetID, own bool) {
	m := (*seam.Mirrored)(marker)
	return m.ID, m.By == p.inside.Apply
}

// entitySlot returns the slot of the entity that has the components of a slot.
func (p *Playout) entitySlot(slot uint32) uint32 {
	link := p.inside.Schema.Link
	if link < 0 {
		return slot
	}
	if r := p.inside.Recv.Replicas.At(slot); r != nil && !r.Empty {
		if state := r.Held.At(r.Newest); state != nil {
			if row := state.Row(link, 2); row != nil {
				return row[0] - 1
			}
		}
	}
	return slot
}

// Time returns the moment shown: a server tick, and the fraction of the time to the next tick, from 0 up to but not
// including 1, in steps of 1/64, or of about a millisecond where that is longer. It never goes back within a session.
// ok is false before the first state of the session has arrived, and for some frames longer if these take more than a
// tenth of a second.
func (p *Playout) Time() (tick uint32, fraction float32, ok bool) {
	p.mustExist()
	return uint32(p.at.Tick), float32(p.at.Part) / blend.Parts, p.clock.running
}

// Shown reports whether a replica is there at [Playout.Time], as far as the client knows. It is not before its first
// state, or the first one since it came into view, at which it stands still until then; nor from its end on, if it
// lingers: see [Linger]. Hide it in the meantime, and it comes and goes when the others that are seen with it do. Until
// a session is [replication.Client.Complete], what arrives is shown at once, as is what is left over from an earlier
// one. It is false for what is no replica of the client.
func (p *Playout) Shown(e ecs.Entity) bool {
	p.mustExist()
	if !p.world.Alive(e) || !p.world.Has(e, p.marker) {
		return false
	}
	id, own := p.replica(p.world.Get(e, p.marker))
	if !own {
		return false
	}
	r := p.inside.Recv.Replicas.At(id.Slot)
	if r == nil || !r.Any || !p.clock.running {
		return true
	}
	before, after := r.Held.Around(p.at.Tick)
	if before == nil || before.Generation != id.Generation {
		return after != nil && !after.Tick.After(p.joined)
	}
	if after == nil {
		return !r.Empty || p.at.Tick.Before(r.Ended)
	}
	end, gone := after.Ended()
	return !gone || p.at.Tick.Before(end)
}

// component returns a registered component by its type.
func component[T any](p *Playout, what string) (number int, c *schema.Component) {
	p.mustExist()
	number = p.inside.Apply.View.Number("playout."+what, reflect.TypeFor[T]())
	c = &p.inside.Schema.Components[number]
	if c.Resource {
		panic(fmt.Sprintf("playout: %s: %v is a resource: only components are shown as of another time", what, c.Typ))
	}
	return number, c
}
