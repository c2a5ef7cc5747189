package inspect

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/predict"
)

type thrust struct {
	X float32 `repl:"range=-1:1,step=0.5"`
}

// ship is a schema with a model of ships.
func ship() (*replication.Schema, *predict.Model[thrust]) {
	s := replication.NewSchema()
	replication.Register[Position](s)
	replication.RegisterInput[thrust](s)
	m := predict.NewModel[thrust](s, func(t *predict.Tick) {
		place, in := ecs.ComponentID[Position](t.World), ecs.ComponentID[thrust](t.World)
		for q := t.Query(place, in); q.Next(); {
			(*Position)(q.Get(place)).X += (*thrust)(q.Get(in)).X
		}
	})
	predict.State[Position](m)
	return s, m
}

// TestPredictionsAreSampled: rollbacks are counted where the server moves what a client predicts, and named by what
// differed.
func TestPredictionsAreSampled(t *testing.T) {
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	schema, model := ship()
	server := replication.NewServer(&world, schema)
	host := predict.Serve(server, model)
	e := world.NewEntity(ecs.ComponentID[Position](&world), ecs.ComponentID[replication.Replicated](&world))
	schema, model = ship()
	client := replication.NewClient(&mirror, schema)
	link := netsim.NewLink(1, netsim.Config{Latency: 3})
	peer := server.Connect(link.Down.Send)
	client.SetSend(link.Up.Send)
	p := predict.Attach(client, model, func() thrust { return thrust{1} })
	g := &game{clock: time.Unix(1e9, 0)}
	s := g.timed(Client(client, WithPrediction(p)))
	host.Own(e, peer)
	for n := range 600 {
		g.clock = g.clock.Add(tick)
		link.Step()
		link.Up.Receive(func(b []byte) { _ = peer.Receive(b) })
		host.Step()
		if at := (*Position)(world.Get(e, ecs.ComponentID[Position](&world))); n%100 == 99 || at.X > 400 {
			at.X = -400
		}
		server.Replicate()
		link.Down.Receive(func(b []byte) { _ = client.Receive(b) })
		require.NoError(t, client.Frame(tick))
	}
	var a struct {
		Samples    map[string][]*float64
		Prediction struct{ Rollbacks, Again int }
		Causes     []struct {
			Name  string
			Count int
		}
	}
	require.NoError(t, json.Unmarshal(s.AppendJSON(nil, 0, -1), &a))
	sum := func(key string) (sum int) {
		for _, v := range a.Samples[key] {
			sum += int(*v)
		}
		return sum
	}
	require.GreaterOrEqual(t, sum("rollbacks"), 5)
	require.Equal(t, a.Prediction.Rollbacks, sum("rollbacks"))
	require.Equal(t, a.Prediction.Again, sum("again"))
	require.Positive(t, sum("corrections"))
	require.InDelta(t, 9, *a.Samples["depth"][len(a.Samples["depth"])-1], 4)
	causes := map[string]int{}
	for _, c := range a.Causes {
		causes[c.Name] = c.Count
	}
	require.GreaterOrEqual(t, causes["Position"], 5)
	require.Contains(t, s.metrics(), "replication_client_rollbacks_total ")
	require.Panics(t, func() { WithPrediction(nil) })
}
