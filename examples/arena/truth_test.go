package main

import (
	"slices"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
)

func TestTheRecordKnowsEveryTick(t *testing.T) {
	a, b := replication.NetID{Slot: 1}, replication.NetID{Slot: 2}
	start := ^replication.Tick(0) - 5 // ticks wrap
	truth := newTruth()
	truth.add(a, version{start, []uint64{1}})
	truth.add(a, version{start + 6, []uint64{2}})
	truth.add(b, version{start + 6, []uint64{9}})
	truth.add(a, version{tick: start + 9})
	truth.advance(start + 9)

	tests := []struct {
		name string
		id   replication.NetID
		tick replication.Tick
		code uint64
		want bool
	}{
		{"as it was", a, start, 1, true},
		{"as it still was", a, start + 3, 1, true},
		{"as it became", a, start + 6, 2, true},
		{"too early", a, start + 3, 2, false},
		{"too late", a, start + 6, 1, false},
		{"never", a, start + 6, 3, false},
		{"gone", a, start + 9, 2, false},
		{"not there yet", b, start + 3, 9, false},
		{"still there", b, start + 9, 9, true},
		{"another incarnation", replication.NetID{Slot: 2, Generation: 1}, start + 9, 9, false},
	}
	for _, tt := range tests {
		codes, known := truth.at(tt.id, tt.tick)
		require.True(t, known)
		require.Equal(t, tt.want, slices.Equal(codes, []uint64{tt.code}), tt.name)
	}
	require.Equal(t, 1, truth.census().Entities)
}

func TestTheRecordIsBounded(t *testing.T) {
	truth := newTruth()
	still, busy, dead := replication.NetID{Slot: 1}, replication.NetID{Slot: 2}, replication.NetID{Slot: 3}
	const ticks = 10 * truthTicks
	for tick := range replication.Tick(ticks) {
		truth.add(busy, version{tick, []uint64{uint64(tick)}})
		switch tick {
		case 0:
			truth.add(still, version{tick, []uint64{7}})
			truth.add(dead, version{tick, []uint64{8}})
		case 1:
			truth.add(dead, version{tick: tick})
		}
		truth.advance(tick)
		require.LessOrEqual(t, len(truth.log[busy]), 2*truthTicks)
	}
	require.NotContains(t, truth.log, dead)
	for _, tt := range []struct {
		id    replication.NetID
		tick  replication.Tick
		want  uint64
		known bool
	}{
		{still, ticks - 1, 7, true},
		{still, ticks - truthTicks, 7, true},
		{busy, 5, 0, false},
		{busy, ticks - truthTicks, ticks - truthTicks, true},
	} {
		codes, known := truth.at(tt.id, tt.tick)
		require.Equal(t, tt.known, known)
		if known {
			require.Equal(t, []uint64{tt.want}, codes)
		}
	}
}

// TestDifferencesAreFound: the checks above mean something only if they can fail.
func TestDifferencesAreFound(t *testing.T) {
	tests := []struct {
		name   string
		damage func(c *client, ship ecs.Entity)
		found  int
	}{
		{"nothing", func(*client, ecs.Entity) {}, 0},
		{"a value", func(c *client, ship ecs.Entity) {
			(*game.Hull)(c.world.Get(ship, ecs.ComponentID[game.Hull](&c.world))).Points++
		}, 1},
		{"a component too few", func(c *client, ship ecs.Entity) {
			c.world.Remove(ship, ecs.ComponentID[game.Ammo](&c.world))
		}, 1},
		{"a component too many", func(c *client, ship ecs.Entity) {
			c.world.Add(ship, ecs.ComponentID[game.Bullet](&c.world))
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig(t, "-bots", "10", "-latency", "0", "-jitter", "0", "-loss", "0", "-dup", "0", "-reorder", "0")
			m := newMatch(&c)
			m.addClient(0)
			client := m.clients[0]
			for range 60 {
				require.NoError(t, m.step(true))
			}
			require.Positive(t, client.checks)
			require.Zero(t, client.mismatches)
			m.host.Game.Pause(true)
			for range 6 {
				require.NoError(t, m.step(false))
			}
			require.True(t, client.equals(m.truth))

			ship, ok := shipOf(&client.world, 3)
			require.True(t, ok)
			tt.damage(client, ship)
			client.check(m.truth)
			require.Equal(t, tt.found, client.mismatches)
			require.Equal(t, tt.found == 0, client.equals(m.truth))
		})
	}
}

// shipOf returns the ship with a number.
func shipOf(w *ecs.World, number uint16) (e ecs.Entity, ok bool) {
	query := generic.NewFilter1[game.Ship]().Query(w)
	for query.Next() {
		if query.Get().Number == number {
			e, ok = query.Entity(), true
		}
	}
	return e, ok
}
