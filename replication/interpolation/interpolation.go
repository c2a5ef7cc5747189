package interpolation

import (
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	frames "github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// An Interpolation shows the components of a client's world as they were a short while ago, at a time for which the
// states before and after are known. [Attach] makes one. It belongs to the goroutine of its client.
type Interpolation struct {
	client *replication.Client
	inside *seam.Client
	world  *ecs.World
	marker ecs.ID // of replication.Replica
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

	tables      archeutil.Tables
	columns     []*column
	twins       []twin
	messages    timeline
	cuts        []blend.Cut
	extrapolate time.Duration // for how long; 0: not at all
	guessed     bool          // that was done in this frame
	guesses     uint64        // frames in which it was done
	teleports   uint64
}

// Attach makes a client show its world as of [Interpolation.Time], a short while ago, for as long as the client lives:
// every component of the schema, except for those that are registered with [replication.Newest] or [replication.Once].
// How is up to the tags and options of the schema: see [replication.Register], [replication.Snap] and
// [replication.Hermite].
//
// Everything else follows. Entities that the server removed stay until the moment of their end is shown, and complete
// their motion; the functions of [replication.OnDespawn] are called then. They go earlier if another entity gets
// their slot, if the world is reset, or if a new session shows that they have ended; their components under a
// condition, such as [replication.OwnerOnly], go at once. Functions of [replication.OnServerMessage] are called when
// the tick of their message is shown, or with a send interval the state that was sent with it, unless the message is
// [replication.Immediate]. When a new session begins, messages that still wait are delivered at once, and the oldest
// ones if more than 4096 wait. [replication.Client.Verify] skips what is written.
//
// Panics if the client has an Interpolation already, if an option is nil, and if a component is registered with
// [replication.Every] and has fields that move, which would stand still and jump.
func Attach(client *replication.Client, opts ...Option) *Interpolation {
	inside := seam.OfClient(client)
	for _, opt := range opts {
		if opt == nil {
			panic("interpolation: Attach: an option is nil: leave it out")
		}
	}
	if inside.Apply.Shown != nil {
		panic("interpolation: Attach: this client has an Interpolation already: attach one per client and keep it")
	}
	p := &Interpolation{
		client: client, inside: inside, world: inside.Apply.View.World, marker: inside.Apply.View.Marker, joining: true,
		cuts: blend.Cuts(inside.Schema),
	}
	p.tables = archeutil.NewTables(p.world)
	p.clock = clock{limits: limits{margin: defaultMargin, slowest: 0.75, fastest: 1.05}}
	for _, opt := range opts {
		opt(p)
	}
	for k := range inside.Schema.Components {
		show(p, k)
	}
	inside.Recv.Watches.Add(&p.watch)
	*inside.Attached = slices.Insert(*inside.Attached, 0, p.frame) // what predicts looks at what is shown
	inside.Apply.Shown = func() (at blend.Time, ok bool) { return p.at, p.clock.running }
	if inside.Messages != nil {
		inside.Messages.Delay = p.delay
	}
	return p
}

// frame moves the time shown on by dt and shows the world as of then. [replication.Client.Frame] calls it at its end.
func (p *Interpolation) frame(dt time.Duration) {
	calls := p.inside.Apply.Calls
	defer calls.Leave(calls.PermitReading()) // for the function of Custom, and Arche's listener
	dt = max(dt, 0)
	if p.watch.Sessions != p.sessions {
		p.sessions = p.watch.Sessions
		p.restart()
		p.deliver(true) // their ticks may mean nothing in this session
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
	p.deliver(false)
}

// receivePacket takes note of a state packet. known reports that it came just now.
func (p *Interpolation) receivePacket(packet receive.Arrival, known bool) {
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

// mustExist panics if there is no interpolation.
func (p *Interpolation) mustExist() {
	if p == nil || p.world == nil {
		panic("interpolation: there is no Interpolation: Attach makes one")
	}
}

// receive makes time pass, and takes note of what came.
func (p *Interpolation) receive(dt time.Duration) {
	c := &p.clock
	c.rate = float64(p.client.TickRate())
	c.setInterval(float64(p.inside.Recv.Interval))
	c.ahead = p.extrapolate.Seconds() * c.rate
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
func (p *Interpolation) alive() float64 {
	if m := p.inside.Messages; m != nil && m.Clock.Known {
		return float64(int32(delta.Tick(m.Clock.Newest) - p.zero))
	}
	return p.clock.newest
}

// invalidate makes the columns look up what came, or all of it if the clock has just begun to run, or if Apply has
// spawned everything anew.
func (p *Interpolation) invalidate() {
	if resets := p.inside.Apply.Resets; !p.looked || p.resets != resets {
		p.looked, p.resets = true, resets
		for _, c := range p.columns {
			c.pages.forget(p.at.Tick)
		}
	}
	for _, slot := range p.watch.Slots {
		slot = p.entitySlot(slot)
		for _, c := range p.columns {
			c.pages.invalidate(slot, p.at.Tick)
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
func (p *Interpolation) rebase() {
	c := &p.clock
	by := math.Floor(c.newest)
	p.zero += delta.Tick(by)
	c.now, c.time, c.shown, c.newest, c.computed = c.now-by, c.time-by, c.shown-by, c.newest-by, c.computed-by
}

// restart forgets what was known of the network and of ticks, which may be those of another server.
func (p *Interpolation) restart() {
	old := &p.clock
	p.looked, p.joining = false, true
	p.clock = clock{
		limits: old.limits, counts: old.counts,
		gaps: gaps{ring: old.gaps.ring, offsets: old.gaps.offsets[:0]},
	}
}

// replica returns the NetID of a replica, by its marker, and false if it is the replica of another client.
func (p *Interpolation) replica(marker unsafe.Pointer) (id wire.NetID, own bool) {
	m := (*seam.Mirrored)(marker)
	return m.ID, m.By == p.inside.Apply
}

// entitySlot returns the slot of the entity that has the components of a slot.
func (p *Interpolation) entitySlot(slot uint32) uint32 {
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

// Time returns the moment shown, in steps of 1/64 of a tick, or of about a millisecond where that is longer. It never
// goes back within a session. ok is false before the first state of the session has arrived, and for some frames longer
// if these take more than a tenth of a second.
func (p *Interpolation) Time() (at replication.Time, ok bool) {
	p.mustExist()
	return replication.Time{Tick: p.at.Tick, Fraction: float32(p.at.Part) / blend.Parts}, p.clock.running
}

// Shown reports whether a replica is there at [Interpolation.Time], as far as the client knows. It is not before its
// first state, or the first one since it came into view, at which it stands still until then; nor from its end on. Hide
// it in the meantime, and it comes and goes when the others that are seen with it do. Until a session is
// [replication.Client.Complete], what arrives is shown at once, as is what is left over from an earlier one. It is
// false for what is no replica of the client.
func (p *Interpolation) Shown(e ecs.Entity) bool {
	p.mustExist()
	if !p.world.Alive(e) || !p.world.Has(e, p.marker) {
		return false
	}
	id, own := p.replica(p.world.Get(e, p.marker))
	if !own {
		return false
	}
	if p.inside.Apply.View.Withheld.Marks(p.world, e) {
		return true // it is predicted, ahead of this
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
