package replication

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// tCrew names the crew of an entity, 0 for none. All members of a crew have the stamp of the tick
// in which the crew last changed as a unit; Own changes for each alone.
type tCrew struct {
	Crew  uint16
	Stamp uint32
	Own   uint32
}

// A crewGame is a game of crews, each of which is a group, and of entities without a crew. It
// records the state of every crew after every tick.
type crewGame struct {
	world   *ecs.World
	server  *Server
	rng     *rand.Rand
	crews   []*crew // number 0 is unused
	singles []ecs.Entity
	limit   int // members of a crew
	rarity  int // one in so many structural changes happens
	ends    []*end
	shown   []map[int]int // by end: which past state of each crew it shows
	bursts  []bool        // by end: the link loses packets for so long that changes may pile up

	crew, frozen, marker ecs.ID
}

type crew struct {
	group   *Group
	members []ecs.Entity
	stamp   uint32
	resting int
	closed  bool
	past    []uint64 // hashes of its distinct states, in order
}

func newCrewGame(seed uint64, crews, limit int, opts ...ServerOption) *crewGame {
	schema := NewSchema()
	Register[tCrew](schema)
	Register[tFrozen](schema)
	w := ecs.NewWorld()
	return addCrewGame(NewServer(&w, schema, append(opts, WithSeed(seed))...), seed, crews, limit)
}

// addCrewGame adds crews to a world that may contain other entities.
func addCrewGame(s *Server, seed uint64, crews, limit int) *crewGame {
	f := &crewGame{world: s.snap.World, server: s, rng: rand.New(rand.NewPCG(seed, 8)), limit: limit, rarity: 1}
	f.crew, f.frozen, f.marker = ecs.ComponentID[tCrew](f.world), ecs.ComponentID[tFrozen](f.world), ReplicatedID(f.world)
	for range crews + 1 {
		f.crews = append(f.crews, &crew{group: f.server.NewGroup(), past: []uint64{0}})
	}
	for range 3 * crews {
		f.singles = append(f.singles, f.spawn())
	}
	return f
}

func (f *crewGame) connect(cfg netsim.Config) *end {
	n := uint64(len(f.ends))
	e := connect(f.server, f.rng.Uint64(), cfg, WithSeed(n+1))
	f.watch(e, losesMuch(cfg))
	return e
}

// losesMuch reports whether packets get lost for so long at times that changes of a group pile up.
func losesMuch(cfg netsim.Config) bool { return cfg.Burst.Length > 0 || cfg.Loss >= 0.5 }

// watch adds an end.
func (f *crewGame) watch(e *end, bursts bool) {
	f.ends, f.shown, f.bursts = append(f.ends, e), append(f.shown, map[int]int{}), append(f.bursts, bursts)
}

func (f *crewGame) of(e ecs.Entity) *tCrew { return (*tCrew)(f.world.Get(e, f.crew)) }

// spawn makes an entity without a crew.
func (f *crewGame) spawn() ecs.Entity {
	e := f.world.NewEntity(f.crew, f.marker)
	f.of(e).Own = f.rng.Uint32()
	return e
}

// enlist puts an entity into a crew.
func (f *crewGame) enlist(number int, e ecs.Entity) {
	c := f.crews[number]
	c.group.Add(e)
	c.members = append(c.members, e)
	f.of(e).Crew, f.of(e).Stamp = uint16(number), c.stamp
}

// dismiss takes a member out of its crew.
func (f *crewGame) dismiss(number, i int) ecs.Entity {
	c := f.crews[number]
	e := c.members[i]
	c.members = slices.Delete(c.members, i, i+1)
	c.group.Remove(e)
	f.of(e).Crew = 0
	return e
}

// step plays one tick.
func (f *crewGame) step() {
	r := f.rng
	for i, e := range f.singles {
		if r.IntN(4) == 0 {
			f.of(e).Own++
		}
		if r.IntN(60) == 0 {
			f.world.RemoveEntity(e)
			f.singles[i] = f.spawn()
		}
	}
	for n, c := range f.crews[1:] {
		f.play(n+1, c)
	}
}

// play plays one tick of a crew.
func (f *crewGame) play(n int, c *crew) {
	r := f.rng
	if c.closed {
		return
	}
	if c.resting > 0 {
		c.resting--
		return
	}
	size := len(c.members)
	k := r.IntN(60)
	if r.IntN(f.rarity) > 0 {
		k = 60
	}
	switch {
	case size == 0 || k < 2 && size < f.limit: // one or several spawn
		for range 1 + r.IntN(max(1, f.limit/2)) {
			if len(c.members) < f.limit {
				f.enlist(n, f.spawn())
			}
		}
	case k == 2 && size < f.limit && len(f.singles) > 0: // an existing entity joins
		i := r.IntN(len(f.singles))
		f.enlist(n, f.singles[i])
		f.singles[i] = f.spawn()
	case k == 3: // one despawns
		i := r.IntN(size)
		f.world.RemoveEntity(c.members[i])
		c.members = slices.Delete(c.members, i, i+1)
	case k == 4: // one leaves
		i := r.IntN(len(f.singles))
		f.world.RemoveEntity(f.singles[i])
		f.singles[i] = f.dismiss(n, r.IntN(size))
	case k == 5: // or changes to another crew
		if other := 1 + r.IntN(len(f.crews)-1); other != n && !f.crews[other].closed && len(f.crews[other].members) < f.limit {
			f.enlist(other, f.dismiss(n, r.IntN(size)))
		}
	case k == 6 && r.IntN(4) == 0: // all despawn
		for _, e := range c.members {
			f.world.RemoveEntity(e)
		}
		c.members = nil
	case k == 7 && r.IntN(4) == 0: // the group is closed, and another one is made
		for len(c.members) > 0 {
			f.world.RemoveEntity(f.dismiss(n, 0))
		}
		c.closed = true
		f.crews = append(f.crews, &crew{group: f.server.NewGroup(), past: []uint64{0}})
	case k == 8:
		c.resting = r.IntN(80)
	case k == 9: // leaves replication, for a while or forever
		i := r.IntN(size)
		e := c.members[i]
		c.members = slices.Delete(c.members, i, i+1)
		f.world.Remove(e, f.marker)
		if r.IntN(2) == 0 {
			c.group.Remove(e)
		}
	case k == 10:
		if e := c.members[r.IntN(size)]; f.world.Has(e, f.frozen) {
			f.world.Remove(e, f.frozen)
		} else {
			f.world.Add(e, f.frozen)
		}
	}
	if r.IntN(3) == 0 { // a change of all members
		c.stamp = uint32(f.server.Tick() + 1)
		for _, e := range c.members {
			f.of(e).Stamp = c.stamp
		}
	}
	for _, e := range c.members { // changes of single members
		if r.IntN(6) == 0 {
			f.of(e).Own++
		}
	}
}

// hash returns the hash of an entity; the hash of a crew is the sum of those of its members.
func (t *tCrew) hash(id NetID, frozen bool) uint64 {
	h := wire.Mix64(uint64(id.Slot)<<32 | uint64(id.Generation))
	h = wire.Mix64(h ^ uint64(t.Stamp)<<32 ^ uint64(t.Own))
	if frozen {
		h = wire.Mix64(h + 1)
	}
	return h
}

// record notes the states of the crews.
func (f *crewGame) record() {
	for _, c := range f.crews[1:] {
		sum := uint64(0)
		for _, e := range c.members {
			id, ok := f.server.NetID(e)
			if !ok {
				panic("a member without a NetID")
			}
			sum += f.of(e).hash(id, f.world.Has(e, f.frozen))
		}
		if c.past[len(c.past)-1] != sum {
			c.past = append(c.past, sum)
		}
	}
}

// mismatch describes what is wrong with what an end shows, or returns "": of every crew the end
// shows all members as they were in one tick, not before the tick that it showed last. With partly
// it may also show none of them.
func (f *crewGame) mismatch(k int, partly bool) string {
	e := f.ends[k]
	id, frozen := ecs.ComponentID[tCrew](e.world), ecs.ComponentID[tFrozen](e.world)
	sums, stamps := make([]uint64, len(f.crews)), make([]map[uint32]bool, len(f.crews))
	for net, entity := range e.client.Entities() {
		t := (*tCrew)(e.world.Get(entity, id))
		if t == nil {
			continue
		}
		sums[t.Crew] += t.hash(net, e.world.Has(entity, frozen))
		if stamps[t.Crew] == nil {
			stamps[t.Crew] = map[uint32]bool{}
		}
		stamps[t.Crew][t.Stamp] = true
	}
	for n := 1; n < len(f.crews); n++ {
		if len(stamps[n]) > 1 {
			return fmt.Sprintf("end %d shows stamps %v of crew %d", k, stamps[n], n)
		}
		if len(stamps[n]) == 0 && partly {
			continue
		}
		past, i := f.crews[n].past, f.shown[k][n]
		for i < len(past) && past[i] != sums[n] {
			i++
		}
		if i == len(past) {
			return fmt.Sprintf("end %d shows crew %d as it never was, or not since", k, n)
		}
		f.shown[k][n] = i
	}
	return ""
}

// tick plays a tick and checks what all ends show; partly reports which ends may show less than
// everything.
func (f *crewGame) tick(t testing.TB, partly func(end int) bool) {
	t.Helper()
	f.step()
	f.server.Replicate()
	f.record()
	for k, e := range f.ends {
		e.step(t)
		if mismatch := f.mismatch(k, partly(k)); mismatch != "" && !f.burst(k) {
			require.FailNow(t, "split", "tick %d: %s\n%+v", f.server.Tick(), mismatch, e.peer.Stats())
		}
	}
}

// burst reports whether a link that loses much made more changes of a group pile up than fit into a
// packet.
func (f *crewGame) burst(k int) bool {
	return f.ends[k].peer.Stats().SplitGroups > 0 && f.bursts[k]
}

func noneOfThem(int) bool { return false }
func allOfThem(int) bool  { return true }

// requireSettled lets everything become idle: all clients converge, and nothing remains of former
// members.
func (f *crewGame) requireSettled(t testing.TB) {
	t.Helper()
	for _, e := range f.ends {
		e.link.SetConfig(netsim.Config{Latency: 2})
		e.peer.SetInterest(Interest{})
		e.peer.SetBudget(0)
		e.peer.SetSendInterval(1)
	}
	for range 300 {
		f.server.Replicate()
		f.record()
		for _, e := range f.ends {
			e.step(t)
		}
	}
	want := f.server.Stats().Entities
	for k, e := range f.ends {
		require.Empty(t, f.mismatch(k, false))
		shown := 0
		for range e.client.Entities() {
			shown++
		}
		require.Equal(t, want, shown, "end %d", k)
		for n := 1; n < len(f.crews); n++ {
			past := f.crews[n].past
			require.Equal(t, past[len(past)-1], past[f.shown[k][n]], "end %d shows crew %d as it was", k, n)
		}
		// A very late packet may need a baseline that the client dropped for newer states: the
		// client does not report that as missing.
		require.Zero(t, e.peer.Stats().MissingBaselines, "end %d", k)
	}
	for n, c := range f.crews {
		require.Empty(t, c.group.in.Former, "crew %d", n)
	}
}

func (f *crewGame) requireUnsplit(t testing.TB) {
	t.Helper()
	for k, e := range f.ends {
		stats := e.peer.Stats()
		require.True(t, stats.SplitGroups == 0 || f.burst(k), "end %d: a test of groups that fit", k)
		t.Logf("end %d: %d packets, %d bytes, %d updates, %d wholes, %d once more", k, stats.Packets, stats.Bytes, stats.Updates, stats.FullStates, stats.GroupResends)
	}
}

// TestGroupsAreNeverSplit: whatever crews and networks do, a client shows each crew as it was in
// one tick, completely or not at all, and never goes back.
func TestGroupsAreNeverSplit(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	f := newCrewGame(seedOf(t), 8, 10)
	for _, cfg := range hostileLinks() {
		f.connect(cfg)
	}
	for range ticksOf(5000, 700) {
		f.tick(t, noneOfThem)
	}
	f.requireUnsplit(t)
	f.requireSettled(t)
}

// TestGroupsOfManyPackets: small crews among so many other entities that everything never fits into
// one packet.
func TestGroupsOfManyPackets(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	f := newCrewGame(seedOf(t), 12, 4, WithMTU(420))
	f.rarity = 16
	for range 420 {
		f.singles = append(f.singles, f.spawn())
	}
	for _, cfg := range hostileLinks() {
		f.connect(cfg)
	}
	for range ticksOf(2000, 300) {
		f.tick(t, noneOfThem)
	}
	f.requireUnsplit(t)
	f.requireSettled(t)
}

// views changes what the ends may see: by set, predicate or filter, with Keep and without, and
// everything at times.
func (f *crewGame) views() {
	set := f.server.NewEntitySet()
	for k, e := range f.ends {
		visible := func(e ecs.Entity) bool {
			return wire.Mix64(uint64(e.ID())<<32|uint64(f.server.Tick()+Tick(k)*7)/16)%5 < 2
		}
		keep := f.rng.IntN(2) == 0
		switch f.rng.IntN(4) {
		case 0:
			e.peer.SetInterest(Interest{Keep: keep})
		case 1:
			filter := ecs.All(f.frozen)
			e.peer.SetInterest(Interest{Filter: &filter, Keep: keep})
		case 2:
			for _, c := range f.crews {
				if f.rng.IntN(2) == 0 && len(c.members) > 0 {
					set.Add(c.members[0])
				}
			}
			e.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: keep})
		default:
			e.peer.SetInterest(Interest{Visible: visible, Keep: keep})
		}
	}
}

// TestGroupsComeIntoViewTogether: the same with ends that see only a part, which changes from time
// to time.
func TestGroupsComeIntoViewTogether(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	f := newCrewGame(seedOf(t), 8, 6)
	for _, cfg := range hostileLinks() {
		f.connect(cfg)
	}
	for i := range ticksOf(5000, 700) {
		if i%50 == 0 {
			f.views()
		}
		f.tick(t, allOfThem)
	}
	f.requireUnsplit(t)
	f.requireSettled(t)
}

// TestGroupsShareBudgets: the same with budgets that are too small, and with send intervals.
func TestGroupsShareBudgets(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	f := newCrewGame(seedOf(t), 8, 6)
	for k, cfg := range hostileLinks() {
		e := f.connect(cfg)
		e.peer.SetBudget(1500 + 1000*k)
		if k%2 == 1 {
			e.peer.SetSendInterval(1 + k)
		}
		if k%3 == 0 {
			e.peer.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
				for i, e := range entities {
					weights[i] *= 1 + float32(e.ID()%5)
				}
			})
		}
	}
	over := uint64(0)
	for range ticksOf(5000, 700) {
		f.tick(t, noneOfThem)
	}
	for k, e := range f.ends {
		over += e.peer.Stats().OverBudget
		moved := 0
		for n := 1; n < len(f.crews); n++ {
			moved += f.shown[k][n]
		}
		require.Greater(t, moved, 20, "end %d has seen next to nothing", k)
	}
	require.NotZero(t, over, "the budgets never were too small")
	f.requireUnsplit(t)
	f.requireSettled(t)
}

// TestTheCheckFindsSplitGroups: without groups on the server, the check of the tests above fails.
func TestTheCheckFindsSplitGroups(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	f := newCrewGame(seedOf(t), 12, 5, WithMTU(300), config.ServerFunc(func(o *config.ServerOptions) { o.NoGroups = true }))
	for range 100 {
		f.singles = append(f.singles, f.spawn())
	}
	for _, cfg := range hostileLinks() {
		f.connect(cfg)
	}
	found := map[int]bool{}
	for range 500 {
		f.step()
		f.server.Replicate()
		f.record()
		for k, e := range f.ends {
			e.step(t)
			if f.mismatch(k, false) != "" {
				found[k] = true
			}
		}
	}
	require.Greater(t, len(found), len(f.ends)/2)
}

// TestGroupsWithWorkers: the packets are the same for any number of workers.
func TestGroupsWithWorkers(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	play := func(workers, limit int) (sent [][]byte) {
		f := newCrewGame(seed, 20, 6, WithMTU(600), WithWorkers(workers))
		f.rarity = 4
		for i := range f.server.sender.workers.List {
			f.server.sender.workers.List[i].Limit = limit
		}
		for k := range 12 {
			e := f.connect(netsim.Config{Latency: float64(1 + k%4), Loss: float64(k%3) * 0.1})
			send := e.peer.out.Send
			e.peer.out.Send = func(p []byte) error {
				sent = append(sent, append([]byte{byte(k)}, p...))
				return send(p)
			}
			if k%3 == 0 {
				e.peer.SetBudget(3000 + 1000*k)
			}
		}
		for i := range ticksOf(300, 120) {
			if i%40 == 20 {
				f.views()
			}
			f.tick(t, allOfThem)
		}
		return sent
	}
	want := play(1, encode.MaxCacheBytes)
	for _, n := range []int{2, 3, 8} {
		got := play(n, 1000) // with little memory for encoded entries
		require.Equal(t, len(want), len(got))
		for i := range want {
			if !bytes.Equal(want[i], got[i]) {
				require.FailNow(t, "another packet", "number %d of peer %d, with %d workers", i, got[i][0], n)
			}
		}
	}
}
