package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
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
	h := newHost(&c)
	for range 60 {
		h.step(true)
	}
	text := []byte("[")
	count := 0
	for _, e := range h.game.ships {
		id, ok := h.server.NetID(e)
		require.True(t, ok)
		one, err := h.reader.json(e, id)
		require.NoError(t, err)
		var got struct {
			ID       string `json:"id"`
			Position Position
			Ship     Ship
			Bullet   *Bullet
		}
		require.NoError(t, json.Unmarshal(one, &got))
		at, _, _, ship := h.game.body.Get(e)
		require.Equal(t, *at, got.Position)
		require.Equal(t, *ship, got.Ship)
		require.Equal(t, id.String(), got.ID)
		require.Nil(t, got.Bullet)
		text = append(append(text, one...), ',')
		count++
	}
	require.Equal(t, 10, count)
	others := 0
	for id := range h.truth.log {
		if latest, ok := h.truth.latest(id); ok && latest.Codes[0]&(1<<2) == 0 { // not a ship
			others++
		}
	}
	require.Equal(t, 4, others, "three power-ups and the match")
	require.Greater(t, h.jsonBytes(), len(text))
	require.Less(t, h.jsonBytes(), len(text)+others*100)
	require.Positive(t, h.costs.JSON)
	require.Greater(t, h.costs.JSON, h.costs.Raw)
}
