package replication

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A game of resources that are added, changed and removed, and the checks of what clients may show
// of them, computed naively.

type rsMatch struct {
	Round  uint8
	Clock  int32 `repl:"range=0:36000"`
	Leader ecs.Entity
	Seats  [2]ecs.Entity
	Local  *int `repl:"-"`
}

type rsWeather struct {
	Wind [2]float32 `repl:"range=-50:50,step=0.1,margin=0"`
	Rain uint8
}

type rsOpen struct{} // a tag: it has no values

type rsMap struct{ Cells [300]uint16 }

func resourceSchema() *Schema {
	s := NewSchema()
	Register[tPosition](s)
	RegisterResource[rsMatch](s)
	Register[rTarget](s)
	RegisterResource[rsWeather](s)
	RegisterResource[rsOpen](s)
	RegisterResource[rsMap](s)
	return s
}

// resourceOf returns a world's resource, nil if it has none.
func resourceOf[T any](w *ecs.World) *T {
	p, _ := w.Resources().Get(ecs.ResourceID[T](w)).(*T)
	return p
}

// setResource adds a resource to a world, or assigns the one that is there.
func setResource[T any](w *ecs.World, v T) *T {
	p := resourceOf[T](w)
	if p == nil {
		p = new(T)
		ecs.AddResource(w, p)
	}
	*p = v
	return p
}

// dropResource removes a resource from a world, if it has one.
func dropResource[T any](w *ecs.World) {
	if resourceOf[T](w) != nil {
		w.Resources().Remove(ecs.ResourceID[T](w))
	}
}

// resourceView is the state of a world's resources, with references apart.
type resourceView struct {
	text string
	refs []NetID // without zero references
}

var noNetID NetID // generations begin at 1

// viewResources returns the state of a world's resources; name returns the NetID of an entity.
func viewResources(s *Schema, w *ecs.World, name func(e ecs.Entity) (NetID, bool)) (v resourceView) {
	ref := func(e ecs.Entity) {
		id, ok := name(e)
		if !ok {
			id = noNetID
		}
		v.refs = append(v.refs, id)
	}
	if p := resourceOf[rsMatch](w); p != nil {
		v.text += fmt.Sprintf("match %d %d;", p.Round, p.Clock)
		ref(p.Leader)
		ref(p.Seats[0])
		ref(p.Seats[1])
	}
	if p := resourceOf[rsWeather](w); p != nil {
		v.text += fmt.Sprint("weather ", s.Codes(p, nil))
	}
	if p := resourceOf[rsOpen](w); p != nil {
		v.text += "open;"
	}
	if p := resourceOf[rsMap](w); p != nil {
		v.text += fmt.Sprint("map ", p.Cells)
	}
	return v
}

// resourceTruth is the state of the server's resources at every tick.
type resourceTruth map[uint32]resourceView

func (o resourceTruth) record(s *Server) {
	o[uint32(s.Tick())] = viewResources(faceOf(s.schema), s.snap.World, s.NetID)
}

// shownResources returns what a client shows and its tick, if it has shown any state yet.
func shownResources(t testing.TB, c *Client) (v resourceView, tick uint32, ok bool) {
	m := c.apply.View.Replicas.At(archeutil.ResourceSlot)
	if m == nil || !m.Shown || !c.apply.View.Intact() {
		return v, 0, false
	}
	return viewResources(faceOf(c.schema), c.apply.View.World, func(e ecs.Entity) (NetID, bool) {
		id, ok := c.NetID(e)
		require.True(t, ok || e.IsZero(), "%v is no mirror of anybody", e)
		return id, ok
	}), uint32(m.Tick), true
}

// requireThatView requires that a client shows the given state, apart from references to entities
// that it does not have.
func requireThatView(t testing.TB, c *Client, got, want resourceView, msg ...any) {
	t.Helper()
	require.Equal(t, want.text, got.text, msg...)
	require.Len(t, got.refs, len(want.refs))
	for i, id := range want.refs {
		if _, here := c.Entity(id); !here {
			id = noNetID
		}
		require.Equal(t, id, got.refs[i], msg...)
	}
}

// resourceGame changes a world's resources, and the entities that they reference, at random.
type resourceGame struct {
	rng      *rand.Rand
	world    *ecs.World
	entities []ecs.Entity
	limit    int // 0: 20
}

func (g *resourceGame) anybody() ecs.Entity {
	if len(g.entities) == 0 || g.rng.IntN(8) == 0 {
		return ecs.Entity{}
	}
	return g.entities[g.rng.IntN(len(g.entities))]
}

func (g *resourceGame) step() {
	r, w := g.rng, g.world
	if len(g.entities) < cmp.Or(g.limit, 20) && r.IntN(4) == 0 {
		g.entities = append(g.entities, w.NewEntity(ecs.ComponentID[tPosition](w), ReplicatedID(w)))
	}
	if len(g.entities) > 0 && r.IntN(10) == 0 {
		i := r.IntN(len(g.entities))
		w.RemoveEntity(g.entities[i])
		g.entities[i] = g.entities[len(g.entities)-1]
		g.entities = g.entities[:len(g.entities)-1]
	}
	for _, e := range g.entities {
		(*tPosition)(w.Get(e, ecs.ComponentID[tPosition](w))).X += r.Float32() - 0.5
	}
	switch m := resourceOf[rsMatch](w); {
	case m == nil && r.IntN(10) == 0:
		setResource(w, rsMatch{Round: uint8(r.IntN(200)), Leader: g.anybody()})
	case m == nil:
	case r.IntN(60) == 0:
		dropResource[rsMatch](w)
	default:
		m.Clock = (m.Clock + 1) % 36000
		if r.IntN(5) == 0 {
			m.Leader = g.anybody()
		}
		m.Seats[r.IntN(2)] = g.anybody()
	}
	switch v := resourceOf[rsWeather](w); {
	case v == nil && r.IntN(10) == 0:
		setResource(w, rsWeather{Rain: uint8(r.IntN(200))})
	case v == nil:
	case r.IntN(60) == 0:
		dropResource[rsWeather](w)
	case r.IntN(3) == 0:
		v.Wind[r.IntN(2)] = r.Float32()*100 - 50
	}
	switch r.IntN(30) {
	case 0:
		setResource(w, rsOpen{})
	case 1:
		dropResource[rsOpen](w)
	case 2:
		dropResource[rsMap](w)
	case 3:
		p := setResource(w, rsMap{})
		for i := range p.Cells {
			p.Cells[i] = uint16(r.Uint32())
		}
	}
	if p := resourceOf[rsMap](w); p != nil && r.IntN(3) == 0 {
		p.Cells[r.IntN(len(p.Cells))]++
	}
}

// TestResourcesConvergeOverHostileLinks: whatever happens to resources and packets, a client shows
// all of them as of one tick, never an older one than before, whatever its view and budget. Worlds
// are reset meanwhile, at both ends, and sessions end.
func TestResourcesConvergeOverHostileLinks(t *testing.T) {
	t.Parallel()
	ticks := 4000
	if testing.Short() {
		ticks = 800
	}
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, resourceSchema(), WithSeed(seed), WithMTU(400), WithWorkers(2)) // the map takes more than a packet
	g := &resourceGame{rng: rand.New(rand.NewPCG(seed, 1)), world: &w}
	o := resourceTruth{}
	var ends []*end
	for i, cfg := range hostileLinks() {
		e := connect(s, seed+uint64(i), cfg, WithSeed(seed+uint64(i)+1))
		switch i {
		case 1:
			e.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool {
				require.False(t, e.IsZero())
				return (Tick(e.ID())+s.Tick()/40)%3 > 0
			}})
		case 2:
			e.peer.SetInterest(Interest{Filter: ecs.All(ecs.ComponentID[rTarget](&w)), Keep: true})
		case 4:
			e.peer.SetBudget(6000)
			e.peer.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
				require.Len(t, weights, len(entities))
				for i, e := range entities {
					require.False(t, e.IsZero())
					weights[i] *= 2
				}
			})
		case 5:
			e.peer.SetInterest(Interest{Grid: s.NewGrid(10, "tPosition.X")})
		case 6:
			e.peer.SetSendInterval(3)
		}
		ends = append(ends, e)
	}
	last := make([]uint32, len(ends))
	tick := func() {
		s.Replicate()
		o.record(s)
		for i, e := range ends {
			e.step(t)
			v, at, ok := shownResources(t, e.client)
			if !ok {
				last[i] = 0
				continue
			}
			require.True(t, last[i] == 0 || int32(at-last[i]) >= 0, "link %d went back from %d to %d", i, last[i], at)
			last[i] = at
			requireThatView(t, e.client, v, o[at], "link %d at tick %d (server at %d)", i, at, s.Tick())
		}
	}
	for n := range ticks {
		g.step()
		switch {
		case n == ticks/3:
			w.Reset()
			g.entities = nil
		case n == ticks/2:
			ends[3].client.Reconnect()
			ends[6].client.Reconnect()
		case g.rng.IntN(100) == 0:
			ends[g.rng.IntN(len(ends))].world.Reset()
		}
		tick()
	}
	for _, e := range ends {
		e.peer.SetBudget(0)
	}
	for n := 0; ; n++ {
		require.Less(t, n, 4000, "all get there; parts that are lost one by one take their time")
		tick()
		behind := 0
		for i := range ends {
			if v, _, ok := shownResources(t, ends[i].client); !ok || v.text != o[uint32(s.Tick())].text {
				behind++
			}
		}
		if behind == 0 && n > 60 {
			break
		}
	}
	for i, e := range ends {
		v, _, _ := shownResources(t, e.client)
		requireThatView(t, e.client, v, o[uint32(s.Tick())], "link %d", i)
		checkLinks(&e.client.apply, t, 0)
		require.Zero(t, e.peer.Stats().MissingBaselines, "link %d", i)
	}
	require.NotZero(t, ends[0].peer.Stats().Parts, "the map is larger than a packet")
}

// TestResourcesInARelay pass through it like everything else.
func TestResourcesInARelay(t *testing.T) {
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, resourceSchema(), WithSeed(seed))
	bad := netsim.Config{Latency: 2, Jitter: 2, Loss: 0.2, Reorder: 0.2, ReorderBy: 5}
	r := newRelay(s, seed+1, bad)
	r.down = append(r.down, connect(r.server, seed+2, bad, WithSeed(seed+3)))
	g := &resourceGame{rng: rand.New(rand.NewPCG(seed, 1)), world: &w}
	tick := func() {
		s.Replicate()
		r.up.step(t)
		r.server.Replicate()
		r.down[0].step(t)
	}
	for range 600 {
		g.step()
		tick()
	}
	setResource(&w, rsMatch{Clock: 7, Leader: w.NewEntity(ReplicatedID(&w))})
	for range 100 {
		tick()
	}
	text := func(w *ecs.World) string {
		return viewResources(faceOf(s.schema), w, func(ecs.Entity) (NetID, bool) { return noNetID, true }).text
	}
	require.Contains(t, text(&w), "match 0 7;")
	require.Equal(t, text(&w), text(r.down[0].world))
	leader, ok := r.server.Entity(mustNetID(t, r.down[0].client, resourceOf[rsMatch](r.down[0].world).Leader))
	require.True(t, ok)
	original, ok := s.Entity(mustNetID(t, r.up.client, leader))
	require.True(t, ok)
	require.Equal(t, resourceOf[rsMatch](&w).Leader, original)
}

func mustNetID(t testing.TB, c *Client, e ecs.Entity) NetID {
	id, ok := c.NetID(e)
	require.True(t, ok)
	return id
}
