package replication

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func (a *chaosGame) run() {
	c := &a.cfg
	for range c.ticks {
		a.events()
		a.tick(true)
	}
	for _, e := range a.ends {
		e.l.loss, e.l.upLoss, e.l.sendErr, e.l.burst, e.l.upBurst = 0, 0, 0, 0, 0
		if c.views {
			continue // the checks below need peers that see everything
		}
		e.peer.SetInterest(Interest{})
		e.peer.SetBudget(0)
		e.peer.SetSendInterval(1)
	}
	if c.views {
		return
	}
	for range 300 + 6*c.delay {
		a.tick(false)
	}
	a.equal()
	var before []uint64
	for _, e := range a.ends {
		before = append(before, e.peer.Stats().InFlight)
	}
	for range 20 {
		a.tick(false)
	}
	for i, e := range a.ends {
		if got := e.peer.Stats().InFlight; got != before[i] && a.stuck(e.peer) != "" && e.peer.acked.Log.Next == e.peer.acked.Log.Oldest {
			a.fail("end %d: InFlight grows in quiet: %d to %d%s", i, before[i], got, a.stuck(e.peer))
		}
	}
	// and once more with changes
	for range 60 {
		a.tick(true)
	}
	for range 2*c.delay + 3*c.jitter + 140 {
		a.tick(false)
	}
	for range 300 + 6*c.delay { // entities that are sent in parts wait for one another
		if a.differs() == "" {
			break
		}
		a.tick(false)
	}
	a.equal()
}

func runChaos(t testing.TB, c chaosConfig) (msg string, a *chaosGame) {
	defer func() {
		if r := recover(); r != nil {
			if f, ok := r.(chaosFailure); ok {
				msg = f.msg
				if a != nil {
					msg = fmt.Sprintf("tick %d (server %d): %s", a.now, a.server.Tick(), msg)
				}
				return
			}
			panic(r)
		}
	}()
	a = newChaosGame(t, c)
	a.run()
	return "", a
}

// chaosSeeds are seeds that once found a bug.
var chaosSeeds = []uint64{333, 55, 136, 142, 203, 444, 574, 575, 623, 640, 696, 700, 808, 873}

// TestChaos: clients show only states that existed, miss nothing, and converge.
func TestChaos(t *testing.T) {
	t.Parallel()
	run := func(c chaosConfig) {
		msg, _ := runChaos(t, c)
		require.Empty(t, msg, "%+v", c)
	}
	for _, seed := range chaosSeeds {
		c := randomChaosConfig(seed)
		if c.grid = 1; seed != 333 { // this seed needs its full length
			c.ticks = 200
		}
		if raceDetector && c.workers < 2 {
			continue // a single worker has nothing to race with
		}
		run(c)
	}
	seed := seedOf(t)
	for i := range uint64(roundsOf(5, 3, 2)) {
		c := randomChaosConfig(seed + i)
		c.n, c.ticks = min(c.n, 70), 200
		run(c)
	}
}

// requireSameChaosPackets plays two configurations of a chaos game and compares all packets.
func requireSameChaosPackets(t *testing.T, c, d chaosConfig) {
	c.keepLog, d.keepLog = true, true
	c.ticks, d.ticks = 120, 120
	msg, a := runChaos(t, c)
	require.Empty(t, msg, "%+v", c)
	msg, b := runChaos(t, d)
	require.Empty(t, msg, "%+v", d)
	was, is := a.server.Stats(), b.server.Stats()
	require.Equal(t, was.Entries, is.Entries, "%+v", c)
	require.Equal(t, was.BaselineAges, is.BaselineAges, "%+v", c)
	for i := range a.ends {
		require.Equal(t, len(a.ends[i].log), len(b.ends[i].log), "%+v", c)
		for k := range a.ends[i].log {
			require.True(t, bytes.Equal(a.ends[i].log[k], b.ends[i].log[k]), "end %d packet %d: %+v", i, k, c)
		}
	}
}

// TestChaosWithWorkersSendsTheSamePackets: the number of workers does not change any packet.
func TestChaosWithWorkersSendsTheSamePackets(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	for i := range uint64(roundsOf(4, 3, 2)) {
		c := randomChaosConfig(seed + i)
		c.n, c.workers = min(c.n, 70), 1
		d := c
		d.workers = 3
		requireSameChaosPackets(t, c, d)
	}
}
