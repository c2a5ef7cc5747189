package recording_test

import (
	"bytes"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// TestInfoNeedsNoSchema: it has what the player has, and the schema's text; where there is no player, the error is the
// same.
func TestInfoNeedsNoSchema(t *testing.T) {
	t.Parallel()
	file, _ := record(t, 200, recording.WithMeta("level", "one"))
	for n := len(file); n >= 0; n -= 1 + n/20 {
		info, err := recording.ReadInfo(bytes.NewReader(file[:n]), int64(n))
		p, _, failed := open(file[:n])
		require.Equal(t, failed, err)
		if err == nil {
			require.Equal(t, recording.Info{
				Schema: newSchema().Text(), TickRate: rate, Duration: p.Duration(), Meta: map[string]string{"level": "one"},
			}, info)
		}
	}

	var b bytes.Buffer
	w := ecs.NewWorld()
	r := recording.NewClientRecorder(replication.NewClient(&w, newSchema()), &b)
	require.NoError(t, r.Close())
	info, err := recording.ReadInfo(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	require.Equal(t, recording.Info{Schema: newSchema().Text(), Meta: map[string]string{}}, info)
	require.Panics(t, func() { _, _ = recording.ReadInfo(nil, 1) })
}
