package recording_test

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// TestARecorderOfAClosedServerWritesNothing, and leaves no goroutine.
func TestARecorderOfAClosedServerWritesNothing(t *testing.T) {
	p := newPlay(1, newSchema())
	p.server.Close()
	var b bytes.Buffer
	before := runtime.NumGoroutine()
	for range 10 {
		require.Panics(t, func() { recording.NewRecorder(p.server, &b) })
	}
	time.Sleep(10 * time.Millisecond)
	require.Less(t, runtime.NumGoroutine(), before+5) // other tests may run
	require.Zero(t, b.Len())
}
