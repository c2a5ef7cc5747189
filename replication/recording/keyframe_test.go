package recording_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// TestAWorldLargerThanTheQueue is not recorded, which is an error. The file can be played.
func TestAWorldLargerThanTheQueue(t *testing.T) {
	t.Parallel()
	schema, w := newSchema(), ecs.NewWorld()
	server := replication.NewServer(&w, schema)
	id := ecs.ComponentID[position](&w)
	for range 30000 {
		e := w.NewEntity(id, ecs.ComponentID[replication.Replicated](&w))
		*(*position)(w.Get(e, id)) = position{rand.Float32() * 900, rand.Float32() * 900}
	}
	var b bytes.Buffer
	r := recording.NewRecorder(server, &b, recording.WithQueue(64<<10))
	for range 20 {
		server.Replicate()
	}
	require.ErrorContains(t, r.Err(), "more than the queue of 65536")
	require.ErrorContains(t, r.Close(), "WithQueue")
	require.Equal(t, recording.RecorderStats{Bytes: uint64(b.Len()), Dropped: 1}, r.Stats())
	p, _, err := open(b.Bytes())
	require.NoError(t, err)
	require.NoError(t, p.Damage())
	require.Zero(t, p.Duration())
	require.NoError(t, p.Step())
	require.True(t, p.Ended())
}
