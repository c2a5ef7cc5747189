package main

import (
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

func TestTheRecordCoversEveryComponent(t *testing.T) {
	s := NewSchema()
	components := map[string]bool{}
	for _, line := range strings.Split(s.Text(), "\n") {
		if strings.HasPrefix(line, "message ") {
			break // no components follow
		}
		if component, _, ok := strings.Cut(line, "."); ok {
			components[component] = true
		}
	}
	w := ecs.NewWorld()
	require.Len(t, newReader(&w, s).columns, len(components))
}

func TestVerdicts(t *testing.T) {
	a, b := replication.NetID{Slot: 1}, replication.NetID{Slot: 2}
	start := ^uint32(0) - 5 // ticks wrap
	truth := newTruth()
	truth.add(start, []change{{a, start, []uint64{1}}})
	truth.add(start+3, nil)
	truth.add(start+6, []change{{a, start + 6, []uint64{2}}, {b, start + 6, []uint64{9}}})
	truth.add(start+9, []change{{ID: a, Tick: start + 9}})

	tests := []struct {
		name string
		id   replication.NetID
		tick uint32
		code uint64
		want verdict
	}{
		{"as it was", a, start, 1, right},
		{"as it still was", a, start + 3, 1, right},
		{"as it became", a, start + 6, 2, right},
		{"too early", a, start + 3, 2, wrong},
		{"too late", a, start + 6, 1, wrong},
		{"never", a, start + 6, 3, wrong},
		{"gone", a, start + 9, 2, wrong},
		{"not there yet", b, start + 3, 9, wrong},
		{"still there", b, start + 9, 9, right},
		{"another incarnation", replication.NetID{Slot: 2, Generation: 1}, start + 9, 9, wrong},
		{"not recorded yet", b, start + 10, 9, tooNew},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, truth.check(tt.id, tt.tick, []uint64{tt.code}), tt.name)
	}
	require.Equal(t, 1, truth.alive())
	require.Equal(t, []change{{b, start + 6, []uint64{9}}}, truth.snapshot())
}

func TestTheRecordIsBounded(t *testing.T) {
	truth := newTruth()
	still, busy, dead := replication.NetID{Slot: 1}, replication.NetID{Slot: 2}, replication.NetID{Slot: 3}
	const ticks = 10 * truthTicks
	for tick := range uint32(ticks) {
		changes := []change{{busy, tick, []uint64{uint64(tick)}}}
		switch tick {
		case 0:
			changes = append(changes, change{still, tick, []uint64{7}}, change{dead, tick, []uint64{8}})
		case 1:
			changes = append(changes, change{ID: dead, Tick: tick})
		}
		truth.add(tick, changes)
		require.LessOrEqual(t, len(truth.log[busy]), 2*truthTicks)
	}
	require.NotContains(t, truth.log, dead)
	require.Equal(t, right, truth.check(still, ticks-1, []uint64{7}))
	require.Equal(t, right, truth.check(still, ticks-truthTicks, []uint64{7}))
	require.Equal(t, tooOld, truth.check(busy, 5, []uint64{5}))
	require.Equal(t, right, truth.check(busy, ticks-truthTicks, []uint64{ticks - truthTicks}))
}

// TestDifferencesAreFound: the checks above mean something only if they can fail.
func TestDifferencesAreFound(t *testing.T) {
	tests := []struct {
		name   string
		damage func(m *mirror, ship ecs.Entity)
		found  int
	}{
		{"nothing", func(*mirror, ecs.Entity) {}, 0},
		{"a value", func(m *mirror, ship ecs.Entity) {
			(*Hull)(m.world.Get(ship, ecs.ComponentID[Hull](&m.world))).Points++
		}, 1},
		{"a component too few", func(m *mirror, ship ecs.Entity) {
			m.world.Remove(ship, ecs.ComponentID[Ammo](&m.world))
		}, 1},
		{"a component too many", func(m *mirror, ship ecs.Entity) {
			m.world.Add(ship, ecs.ComponentID[Bullet](&m.world))
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig(t, "-bots", "10", "-latency", "0", "-jitter", "0", "-loss", "0", "-dup", "0", "-reorder", "0")
			h := newHost(&c)
			atServer, atClient := memoryPorts()
			h.welcome(newLine(atServer, 1, c.weather()))
			m := newMirror("Ada", newLine(atClient, 2, c.weather()))
			for range 60 {
				h.step(true)
				require.NoError(t, m.step(h.truth))
			}
			require.Zero(t, m.mismatches)
			for range 6 {
				h.step(false)
				require.NoError(t, m.step(h.truth))
			}
			require.True(t, m.equal(h.truth))

			id, ok := h.server.NetID(h.game.ships[3])
			require.True(t, ok)
			ship, ok := m.client.Entity(id)
			require.True(t, ok)
			tt.damage(m, ship)
			m.check(h.truth)
			require.Equal(t, tt.found, m.mismatches)
			require.Equal(t, tt.found == 0, m.equal(h.truth))
		})
	}
}
