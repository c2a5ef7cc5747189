package netsim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

func TestValidateNamesTheField(t *testing.T) {
	for want, cfg := range map[string]netsim.Config{
		"netsim: Config.Latency is -1, but must be between 0 and 1e+06":                       {Latency: -1},
		"netsim: Config.Latency is NaN, but must be between 0 and 1e+06":                      {Latency: math.NaN()},
		"netsim: Config.Jitter is +Inf, but must be between 0 and 1e+06":                      {Jitter: math.Inf(1)},
		"netsim: Config.Loss is 10, but must be between 0 and 1":                              {Loss: 10},
		"netsim: Config.Burst.Start is 2, but must be between 0 and 1":                        {Burst: netsim.Burst{Start: 2}},
		"netsim: Config.Burst.Length is 0, but must be at least 1 tick as Burst.Start is 0.5": {Burst: netsim.Burst{Start: 0.5}},
		"netsim: Config.Duplicate is -0.1, but must be between 0 and 1":                       {Duplicate: -0.1},
		"netsim: Config.Reorder is 1.5, but must be between 0 and 1":                          {Reorder: 1.5},
		"netsim: Config.ReorderBy is 0, but must be at least 1 tick as Reorder is 0.1":        {Reorder: 0.1},
		"netsim: Config.Corrupt is 1.01, but must be between 0 and 1":                         {Corrupt: 1.01},
		"netsim: Config.Bandwidth is -5, but must be between 0 and 2.68435456e+08":            {Bandwidth: -5},
		"netsim: Config.QueueLimit is -1, but must be between 0 and 2.68435456e+08":           {QueueLimit: -1},
		"netsim: Config.MTU is 1e+09, but must be between 0 and 2.68435456e+08":               {MTU: 1e9},
	} {
		require.EqualError(t, cfg.Validate(), want)
		require.PanicsWithError(t, want, func() { netsim.NewPipe(1, cfg) })
		require.PanicsWithError(t, want, func() { netsim.NewPipe(1, netsim.Config{}).SetConfig(cfg) })
		require.PanicsWithError(t, want, func() { netsim.NewLink(1, cfg) })
	}
}

func TestTicks(t *testing.T) {
	require.InDelta(t, 3, netsim.Ticks(50*time.Millisecond, 60), 1e-12)
	require.InDelta(t, 0.02, netsim.Ticks(time.Millisecond, 20), 1e-12)
	require.Zero(t, netsim.Ticks(0, 60))
	require.Panics(t, func() { netsim.Ticks(-1, 60) })
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		require.Panics(t, func() { netsim.Ticks(1, rate) }, "rate %v", rate)
		require.Panics(t, func() { netsim.BytesPerTick(1, rate) }, "rate %v", rate)
		require.Panics(t, func() { netsim.BytesPerTick(rate, 1) }, "bits %v", rate)
	}
}

func TestBytesPerTick(t *testing.T) {
	require.Equal(t, 1600, netsim.BytesPerTick(256_000, 20))
	require.Equal(t, 1, netsim.BytesPerTick(1, 60), "never 0, which is unlimited")
	require.Equal(t, 1<<28, netsim.BytesPerTick(1e300, 1), "never more than a Config takes")
}
