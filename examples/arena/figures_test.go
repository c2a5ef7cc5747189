package main

import (
	"encoding/json"
	"testing"

	"github.com/mlange-42/arche/generic"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
)

func TestBandwidthIsOfTheLatestSecond(t *testing.T) {
	m := &meter{}
	total, last := traffic{}, 0.0
	for tick := 1; tick <= 300; tick++ {
		total.Seconds += 2.0 / 60 // two clients
		total.Bytes += 50         // 25 each
		if tick > 200 {
			total.Bytes += 50
		}
		last = m.add(sample{tick, total}, 60)
		if tick <= 200 {
			require.InDelta(t, 25*60*8/1000.0, last, 0.01, "tick %d", tick)
		}
	}
	require.InDelta(t, 50*60*8/1000.0, last, 0.01, "and not of the mean")
	require.LessOrEqual(t, len(m.samples), 62)
	require.Len(t, m.trend, 10, "one per half second")
}

func TestAgesOfBaselines(t *testing.T) {
	require.Equal(t, "unknown", ageText(0))
	require.Equal(t, "9.1 ticks", ageText(9.12))
	require.Equal(t, "over 31 ticks", ageText(32))
}

// The cost of JSON snapshots is the size that encoding/json produces.
func TestJSONIsMeasured(t *testing.T) {
	c := testConfig(t, "-bots", "10", "-clients", "1")
	m := newMatch(&c)
	for range 60 {
		require.NoError(t, m.step(true))
	}
	world := &m.host.Game.World
	position, ship := generic.NewMap[game.Position](world), generic.NewMap[game.Ship](world)
	text, ships, others := []byte("["), 0, 0
	for id, e := range m.entities() {
		if ship.Get(e) == nil {
			others++
			continue
		}
		ships++
		one, err := m.reader.JSON(e, id)
		require.NoError(t, err)
		var got struct {
			ID       string `json:"id"`
			Position game.Position
			Ship     game.Ship
			Bullet   *game.Bullet
		}
		require.NoError(t, json.Unmarshal(one, &got))
		require.Equal(t, *position.Get(e), got.Position)
		require.Equal(t, *ship.Get(e), got.Ship)
		require.Equal(t, id.String(), got.ID)
		require.Nil(t, got.Bullet)
		text = append(append(text, one...), ',')
	}
	require.Equal(t, 10, ships)
	require.Equal(t, 4, others, "three power-ups and the match")
	all := jsonBytes(m.reader, m.entities())
	require.Greater(t, all, len(text))
	require.Less(t, all, len(text)+others*100)
	require.Positive(t, m.costs.JSON)
	require.Greater(t, m.costs.JSON, m.costs.Raw)
}
