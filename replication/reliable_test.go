package replication

import (
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// A structureLog knows the component set of every slot at every tick, to check what a message
// handler may see.
type structureLog struct {
	versions map[uint32][]structureVersion
	now      map[uint32]string
}

type structureVersion struct {
	tick      uint32
	structure string // generation and components, "" for an empty slot
}

func newStructureLog() *structureLog {
	return &structureLog{versions: map[uint32][]structureVersion{}, now: map[uint32]string{}}
}

func structureOf(schema *Schema, w *ecs.World, e ecs.Entity, id NetID) string {
	structure := fmt.Sprint(id.Generation, " ")
	for i := range schema.raw.Components {
		if w.Has(e, ecs.TypeID(w, schema.raw.Components[i].Typ)) {
			structure += string(rune('a' + i))
		}
	}
	return structure
}

// record notes the component sets after a Replicate. visible may be nil.
func (o *structureLog) record(s *Server, visible func(e ecs.Entity) bool) {
	now := map[uint32]string{}
	filter := ecs.All(s.snap.Capture.Marker)
	q := s.snap.World.Query(&filter)
	for q.Next() {
		if visible == nil || visible(q.Entity()) {
			id, _ := s.NetID(q.Entity())
			now[id.Slot] = structureOf(faceOf(s.schema), s.snap.World, q.Entity(), id)
		}
	}
	for slot := range o.now {
		if now[slot] == "" {
			o.versions[slot] = append(o.versions[slot], structureVersion{uint32(s.Tick()), ""})
		}
	}
	for slot, structure := range now {
		if o.now[slot] != structure {
			o.versions[slot] = append(o.versions[slot], structureVersion{uint32(s.Tick()), structure})
		}
	}
	for slot, v := range o.versions {
		if len(v) > 3000 {
			o.versions[slot] = append([]structureVersion(nil), v[1000:]...)
		}
	}
	o.now = now
}

// check requires that the component set of every slot that a client shows is of the given tick or
// later.
func (o *structureLog) check(t testing.TB, c *Client, w *ecs.World, tick uint32) {
	shown := map[uint32]string{}
	for id, e := range c.Entities() {
		shown[id.Slot] = structureOf(faceOf(c.schema), w, e, id)
	}
	for slot, v := range o.versions {
		i := len(v) - 1
		for ; i > 0 && int32(v[i].tick-tick) > 0; i-- { // later component sets are allowed
			if v[i].structure == shown[slot] {
				break
			}
		}
		if int32(v[i].tick-tick) > 0 && v[i].structure != shown[slot] {
			continue // the first one is later
		}
		if v[i].structure != shown[slot] {
			require.FailNow(t, "a message came before the state of its tick",
				"tick %d, slot %d: shown %q, was %q since %d", tick, slot, shown[slot], v[i].structure, v[i].tick)
		}
	}
}

// A messageRig is a server with clients, and numbered messages that go both ways.
type messageRig struct {
	t      testing.TB
	server *Server
	game   *game
	log    *structureLog
	ends   []*messageEnd

	visible   func(e ecs.Entity) bool // nil: everything is visible
	unchecked bool                    // clients keep entities out of view
}

type messageEnd struct {
	*end
	log              *structureLog
	sent, got        uint32 // to the client, waiting for state
	sentNow, gotNow  uint32 // immediate
	sentUp, gotUp    uint32
	sparks, gotSpark map[uint32]bool
	newest           uint32 // tick of a message handled in this Apply
	any              bool
	checks           int
}

func newMessageRig(t testing.TB, seed uint64, links []netsim.Config, opts ...ServerOption) *messageRig {
	w := ecs.NewWorld()
	s := NewServer(&w, messageSchema(), append([]ServerOption{WithSeed(seed)}, opts...)...)
	r := &messageRig{t: t, server: s, game: newGame(seed, &w, faceOf(s.schema), 25), log: newStructureLog()}
	for i, cfg := range links {
		e := &messageEnd{end: connect(s, seed+uint64(i), cfg, WithSeed(seed+uint64(i))), log: r.log}
		e.sparks, e.gotSpark = map[uint32]bool{}, map[uint32]bool{}
		r.ends = append(r.ends, e)
		c := e.client
		OnServerMessage(c, func(m mHit) {
			require.Equal(t, e.got, m.Number, "once and in order")
			e.got++
			e.note(uint32(c.MessageTick()))
		})
		OnServerMessage(c, func(m mMap) {
			require.Equal(t, mapOf(e.got), m, "once, complete and in order")
			e.got++
			e.note(uint32(c.MessageTick()))
		})
		OnServerMessage(c, func(m mChat) {
			require.Equal(t, e.gotNow, m.Number, "once and in order")
			e.gotNow++
		})
		OnServerMessage(c, func(m mSpark) {
			require.True(t, e.sparks[m.Number], "sent")
			require.False(t, e.gotSpark[m.Number], "at most once")
			e.gotSpark[m.Number] = true
			e.note(uint32(c.MessageTick()))
		})
	}
	OnClientMessage(s, func(p *Peer, m mHit) {
		e := r.endOf(p)
		require.Equal(t, e.gotUp, m.Number, "once and in order")
		e.gotUp++
	})
	OnClientMessage(s, func(p *Peer, m mMap) {
		e := r.endOf(p)
		require.Equal(t, mapOf(e.gotUp), m, "once, complete and in order")
		e.gotUp++
	})
	return r
}

// mapOf returns the message with a number, of 1200 bytes.
func mapOf(number uint32) (m mMap) {
	for i := range m.Cells {
		m.Cells[i] = uint64(number) + uint64(i)<<40
	}
	return m
}

// sendHit sends the next ordered message; some are large, and go in fragments.
func sendHit(number uint32, hit func(mHit) error, large func(mMap) error) error {
	if number%24 == 7 {
		return large(mapOf(number))
	}
	return hit(mHit{Number: number})
}

func (r *messageRig) endOf(p *Peer) *messageEnd {
	for _, e := range r.ends {
		if e.peer == p {
			return e
		}
	}
	r.t.Fatal("an unknown peer")
	return nil
}

func (e *messageEnd) note(tick uint32) {
	if !e.any || int32(tick-e.newest) > 0 {
		e.any, e.newest = true, tick
	}
}

// tick plays a tick with so many messages of each kind, if there is room for them.
func (r *messageRig) tick(messages int) {
	for _, e := range r.ends {
		if e.peer.Connected() {
			for range messages {
				if sendHit(e.sent, func(m mHit) error { return SendToClient(e.peer, m) }, func(m mMap) error { return SendToClient(e.peer, m) }) == nil {
					e.sent++
				}
			}
			if messages > 0 && SendToClient(e.peer, mChat{Number: e.sentNow}) == nil {
				e.sentNow++
			}
			if n := uint32(len(e.sparks)); messages > 0 && SendToClient(e.peer, mSpark{Number: n}) == nil {
				e.sparks[n] = true
			}
		}
		for range messages {
			if sendHit(e.sentUp, func(m mHit) error { return SendToServer(e.client, m) }, func(m mMap) error { return SendToServer(e.client, m) }) == nil {
				e.sentUp++
			}
		}
	}
	r.server.Replicate()
	r.log.record(r.server, r.visible)
	for _, e := range r.ends {
		e.any = false
		e.step(r.t)
		if e.any && !r.unchecked {
			e.log.check(r.t, e.client, e.world, e.newest)
			e.checks++
		}
	}
}

// TestReliableMessagesExactlyOnceInOrder sends many messages both ways over a bad network while
// entities spawn, despawn and change their components. Each is delivered once, in order, and never
// before the component sets of its tick.
func TestReliableMessagesExactlyOnceInOrder(t *testing.T) {
	t.Parallel()
	count := uint32(100_000)
	if testing.Short() || raceDetector {
		count = 10_000
	}
	seed := seedOf(t)
	r := newMessageRig(t, seed, []netsim.Config{{Latency: 3, Jitter: 1, Loss: 0.25, Duplicate: 0.25, Reorder: 0.3, ReorderBy: 8}})
	e := r.ends[0]
	ticks := 0
	for ; e.got < count || e.gotUp < count; ticks++ {
		r.game.step()
		r.tick(60)
		require.Less(t, ticks, 20_000)
	}
	require.Greater(t, e.checks, ticks/10, "whether messages came before the state of their tick was looked at")
	require.Greater(t, e.gotNow, uint32(ticks)/2)
	t.Logf("%d ticks, got %d %d, up %d, immediate %d of %d, sparks %d of %d, checks %d", ticks, e.got, e.sent, e.gotUp, e.gotNow, e.sentNow, len(e.gotSpark), len(e.sparks), e.checks)
	t.Logf("%+v\n%+v", e.peer.Stats(), e.client.Stats())
}

// settle plays ticks without messages on a good network until everything sent has arrived.
func (r *messageRig) settle(ticks int) {
	for _, e := range r.ends {
		e.link.SetConfig(netsim.Config{Latency: 1})
	}
	for i := 0; ; i++ {
		r.tick(0)
		open := 0
		for _, e := range r.ends {
			open += int(e.sent-e.got) + int(e.sentNow-e.gotNow) + int(e.sentUp-e.gotUp)
		}
		if open == 0 {
			return
		}
		for _, e := range r.ends {
			require.Less(r.t, i, ticks, "not all came: %d of %d, %d of %d, %d of %d\n%+v\n%+v",
				e.got, e.sent, e.gotNow, e.sentNow, e.gotUp, e.sentUp, e.peer.Stats(), e.client.Stats())
		}
	}
}

// TestMessagesHoldWhateverTheServerDoes combines messages with everything that changes what a
// client is sent and when.
func TestMessagesHoldWhateverTheServerDoes(t *testing.T) {
	t.Parallel()
	ticks := roundsOf(1000, 300, 200)
	for _, c := range []struct {
		name string
		opts []ServerOption
		set  func(r *messageRig)
		step func(r *messageRig, tick int)
	}{
		{name: "views that change", set: (*messageRig).limitViews},
		{name: "views that change, and what was seen is kept", set: func(r *messageRig) {
			r.limitViews()
			r.unchecked = true
			for _, e := range r.ends {
				e.peer.SetInterest(Interest{Visible: r.visible, Keep: true})
			}
		}},
		{name: "views set and lifted", set: (*messageRig).limitViews, step: func(r *messageRig, tick int) {
			switch tick % 97 {
			case 0:
				r.limitViews()
			case 40:
				r.visible = nil
				for _, e := range r.ends {
					e.peer.SetInterest(Interest{})
				}
			}
		}},
		{name: "budget", set: func(r *messageRig) {
			for _, e := range r.ends {
				e.peer.SetBudget(20_000)
			}
		}},
		{name: "interval", set: func(r *messageRig) {
			for i, e := range r.ends {
				e.peer.SetSendInterval(2 + 3*i)
			}
		}},
		{name: "small packets", opts: []ServerOption{WithMTU(64)}},
		{name: "no checksum", opts: []ServerOption{WithoutChecksum()}},
		{name: "workers and grid", opts: []ServerOption{WithWorkers(3), WithBaselineInterval(4)}},
		{name: "nothing in sync", opts: []ServerOption{withoutSharedPackets}},
		{name: "small window", opts: []ServerOption{WithWindow(8)}},
		{name: "ticks wrap", opts: []ServerOption{replicationtest.FirstTick(1<<32 - 100), replicationtest.FirstSequence(1<<16 - 50)}},
		{name: "ids wrap", set: func(r *messageRig) {
			for i, e := range r.ends {
				r.firstIDs(e, []uint32{1<<16 - 100, 1<<32 - 100, 1<<31 - 100}[i])
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := seedOf(t)
			r := newMessageRig(t, seed, []netsim.Config{
				{},
				{Latency: 3, Jitter: 2, Loss: 0.25, Duplicate: 0.25, Reorder: 0.3, ReorderBy: 8},
				{Latency: 12, Jitter: 10, Loss: 0.4},
			}, c.opts...)
			for _, e := range r.ends {
				for !e.peer.Connected() {
					r.tick(0)
				}
			}
			if c.set != nil {
				c.set(r)
			}
			for tick := range ticks {
				r.game.step()
				if c.step != nil {
					c.step(r, tick)
				}
				r.tick(3)
			}
			for _, e := range r.ends[:2] {
				require.Greater(t, e.got, uint32(ticks/2), "%+v", e.peer.Stats())
				require.Greater(t, e.gotUp, uint32(ticks/2))
			}
			r.settle(600)
		})
	}
}

// limitViews hides entities from time to time.
func (r *messageRig) limitViews() {
	r.visible = func(e ecs.Entity) bool {
		return (Tick(e.ID())*7+r.server.Tick()/16)%3 != 0
	}
	for _, e := range r.ends {
		e.peer.SetInterest(Interest{Visible: r.visible})
	}
}

// firstIDs makes the ids of messages continue from an id, at both ends.
func (r *messageRig) firstIDs(e *messageEnd, id uint32) {
	for channel := range wire.Channels {
		for _, o := range []*message.OutChannel{&e.peer.messages.Out[channel], &e.client.messages.Out[channel]} {
			require.True(r.t, o.Empty())
			o.First, o.Next, o.Unsent = id, id, id
		}
		for _, i := range []*message.InChannel{&e.peer.messages.In[channel], &e.client.messages.In[channel]} {
			i.Next, i.Top = id, id
		}
	}
}
