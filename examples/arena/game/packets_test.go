package game_test

import (
	"bytes"
	"reflect"
	"strconv"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// TestPacketsOfARecordingAreExplained: the bits of the parts of each packet are those of the packet, and codes and values
// of fields are those in the world.
func TestPacketsOfARecordingAreExplained(t *testing.T) {
	g := game.New(1, 40, 60)
	schema, model := game.NewSchema()
	server := replication.NewServer(&g.World, schema, replication.WithSeed(1), replication.WithTickRate(60))
	host := game.NewHost(g, server, model, 60)
	var file bytes.Buffer
	recorder := recording.NewRecorder(server, &file)
	for range 300 {
		host.Step()
		server.Replicate()
	}
	require.NoError(t, recorder.Close())

	w := ecs.NewWorld()
	player, err := recording.NewPlayer(&w, schema, bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	kinds, compared := map[string]int{}, 0
	var fields []recording.PacketPart
	player.OnPacket(func(p *recording.Packet) {
		sum := 0.
		for _, part := range p.Parts {
			kinds[p.Kind+" "+part.What]++
			if sum += part.Bits; part.What == "field" && p.Kind == "state" {
				fields = append(fields, part)
			}
		}
		require.NoError(t, p.Err)
		require.InDelta(t, float64(8*p.Bytes), sum, 1e-6, "%+v", p)
	})
	for !player.Ended() {
		fields = fields[:0]
		require.NoError(t, player.Step())
		for i := range fields {
			part := &fields[i]
			e, ok := player.Client().Entity(part.Entity)
			require.True(t, ok, "%+v", part)
			for _, id := range w.Ids(e) {
				info, _ := ecs.ComponentInfo(&w, id)
				if info.Type.Name() != part.Component {
					continue
				}
				v := reflect.NewAt(info.Type, w.Get(e, id))
				field, _ := info.Type.FieldByName(part.Field)
				require.Equal(t, v.Elem().FieldByIndex(field.Index).Interface(), part.Value, "%+v", part)
				if codes := schema.Codes(v.Interface(), nil); len(codes) == info.Type.NumField() {
					require.Equal(t, strconv.FormatUint(codes[field.Index[0]], 10), part.Code, "%+v", part)
				}
				compared++
			}
		}
	}
	t.Log(compared, kinds)
	require.Greater(t, compared, 10000)
	require.Zero(t, kinds["state rows"], "the bits of all fields are known")
	for _, kind := range []string{"welcome header", "state new", "state full", "state set", "state despawn", "messages message"} {
		require.NotZero(t, kinds[kind], kind)
	}
}
