package replication

import (
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestTunedEnds: two ends that are tuned alike replicate, in other bits than untuned ones; two that
// are not refuse each other.
func TestTunedEnds(t *testing.T) {
	const tables = "tPosition.X=7777 tPosition.Y=7777"
	bytes := map[string]int{}
	for _, text := range []string{"", tables} {
		s := testSchema()
		s.Tune(text)
		require.Equal(t, text != "", strings.Contains(s.Text(), "orders=7777\n"))
		x := connectedWire(t, s)
		position := ecs.ComponentID[tPosition](x.world)
		e := x.spawn(position)
		for i := range 40 {
			(*tPosition)(x.world.Get(e, position)).X = float32(i*i%7) / 4
			packets := x.replicate()
			for _, packet := range packets {
				bytes[text] += len(packet)
			}
			x.deliver(packets...)
			x.answer(x.apply()...)
		}
		x.rounds(3)
		x.requireEqual()
	}
	require.Greater(t, bytes[tables], bytes[""])

	tuned := testSchema()
	tuned.Tune(tables)
	require.NotEqual(t, testSchema().Fingerprint(), tuned.Fingerprint())
	require.PanicsWithValue(t, "replication: Tune: tPosition.X is tuned twice", func() { tuned.Tune("tPosition.X=1") })
	require.PanicsWithValue(t, "replication: there is no schema: make one with NewSchema", func() { (*Schema)(nil).Tune("") })

	x := newWire(t, testSchema())
	x.restart(tuned, 7)
	err := x.untilRefused(1200)
	require.ErrorContains(t, err, "with the same fields, options and tables of Tune: line 3")
	require.ErrorContains(t, err, "orders=7777")
}
