package netsim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

func TestProfilesAreValidAtAnyRateAndGetWorse(t *testing.T) {
	for _, rate := range []int{1, 10, 20, 30, 60, 128, 1000} {
		before := netsim.Config{}
		for _, name := range []string{"perfect", "lan", "home", "mobile", "awful", "hostile"} {
			profile, err := netsim.ParseProfile(name)
			require.NoError(t, err)
			require.NoError(t, profile.Validate(), name)
			cfg := profile.Config(rate)
			require.NoError(t, cfg.Validate(), "%s at %v Hz", name, rate)
			require.GreaterOrEqual(t, cfg.Loss, before.Loss, name)
			if name != "hostile" { // which is of another kind
				require.GreaterOrEqual(t, cfg.Latency, before.Latency, name)
			}
			before = cfg
		}
	}
	_, err := netsim.ParseProfile("dial-up")
	require.EqualError(t, err, `netsim: no profile is named "dial-up"; there are perfect, lan, home, mobile, awful, hostile`)
}

func TestAProfileIsConverted(t *testing.T) {
	p := netsim.Profile{
		Latency:      50 * time.Millisecond,
		Jitter:       10 * time.Millisecond,
		Loss:         0.1,
		OutageEvery:  10 * time.Second,
		OutageLength: time.Second,
		Duplicate:    0.2,
		Reorder:      0.3,
		ReorderBy:    120 * time.Millisecond,
		Corrupt:      0.4,
		Bandwidth:    32_000,
		QueueLimit:   1000,
	}
	require.Equal(t, netsim.Config{
		Latency:    1,
		Jitter:     0.2,
		Loss:       0.1,
		Burst:      netsim.Burst{Start: 0.005, Length: 20},
		Duplicate:  0.2,
		Reorder:    0.3,
		ReorderBy:  2,
		Corrupt:    0.4,
		Bandwidth:  1600,
		QueueLimit: 1000,
	}, p.Config(20))
	require.Equal(t, netsim.Config{}, netsim.Profile{}.Config(60))

	smallest := netsim.Profile{
		OutageEvery: 1, OutageLength: 1, Reorder: 1, ReorderBy: 1, Bandwidth: 1,
	}.Config(20)
	require.Equal(t, netsim.Config{
		Burst: netsim.Burst{Start: 1, Length: 1}, Reorder: 1, ReorderBy: 1, Bandwidth: 1,
	}, smallest, "nothing becomes 0, which would mean something else")

	const most = 10 * time.Minute
	largest := netsim.Profile{
		Latency: most, Jitter: most, OutageEvery: most, OutageLength: most, Reorder: 1, ReorderBy: most,
		Bandwidth: 1 << 28, QueueLimit: 1 << 28,
	}
	require.NoError(t, largest.Config(1000).Validate())
	require.Panics(t, func() { p.Config(0) })
	require.Panics(t, func() { p.Config(1001) })
}

func TestAProfileNamesTheField(t *testing.T) {
	for want, p := range map[string]netsim.Profile{
		"netsim: Profile.Latency is -1s, but must be between 0 and 10 minutes":         {Latency: -time.Second},
		"netsim: Profile.Jitter is 1h0m0s, but must be between 0 and 10 minutes":       {Jitter: time.Hour},
		"netsim: Profile.ReorderBy is -1ns, but must be between 0 and 10 minutes":      {ReorderBy: -1},
		"netsim: Profile.Loss is 10, but must be between 0 and 1":                      {Loss: 10},
		"netsim: Profile.Corrupt is NaN, but must be between 0 and 1":                  {Corrupt: math.NaN()},
		"netsim: Profile.Bandwidth is -5, but must be between 0 and 2.68435456e+08":    {Bandwidth: -5},
		"netsim: Profile.OutageLength is 0, but must be positive as OutageEvery is 1s": {OutageEvery: time.Second},
		"netsim: Profile.ReorderBy is 0, but must be positive as Reorder is 0.1":       {Reorder: 0.1},
	} {
		require.EqualError(t, p.Validate(), want)
		require.PanicsWithError(t, want, func() { p.Config(60) })
		require.PanicsWithError(t, want, func() { netsim.NewNetwork(1, p) })
	}
}
