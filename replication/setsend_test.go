package replication_test

import (
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

func TestATransportIsAttachedToAClient(t *testing.T) {
	world := ecs.NewWorld()
	client := replication.NewClient(&world, replication.NewSchema())
	require.NoError(t, client.Frame(time.Second/60))
	require.ErrorContains(t, client.Err(), "no send function yet")
	sent := 0
	client.SetSend(func([]byte) error { sent++; return nil })
	for range 60 {
		require.NoError(t, client.Frame(time.Second/60))
	}
	require.Positive(t, sent)
	require.NoError(t, client.Err())
}
