package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// perfect is a run over a perfect link.
func perfect() config {
	return config{in: "t.csv", coding: "packed", rtt: 6, seed: 1, peers: 1, mtu: 1200}
}

// runFile replays a file of testdata.
func runFile(t *testing.T, name string, cfg config) report {
	t.Helper()
	cfg.in = filepath.Join("testdata", name)
	file, err := os.Open(cfg.in)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	r, err := run(cfg, file, nil)
	require.NoError(t, err)
	return r
}

// runText replays a trace.
func runText(t *testing.T, text string, cfg config) report {
	t.Helper()
	r, err := run(cfg, strings.NewReader(text), nil)
	require.NoError(t, err)
	return r
}

// start connects everything and stops before the first tick of the trace.
func start(t *testing.T, text string, cfg config) *replay {
	t.Helper()
	p, _, err := newReplay(cfg, strings.NewReader(text))
	require.NoError(t, err)
	return p
}

func requireOK(t *testing.T, r report, msg ...any) {
	t.Helper()
	require.Empty(t, r.described, msg...)
	require.Zero(t, r.Mismatches, msg...)
	require.True(t, r.Converged, msg...)
	require.Equal(t, exitOK, r.exitCode())
}

func TestEveryTraceSurvivesEveryLink(t *testing.T) {
	for _, file := range []struct {
		name     string
		ticks    int64
		entities int
	}{
		{"types.csv", 10, 2},
		{"lives.csv", 38, 4},
		{"crowd.csv", 60, 20},
	} {
		for name, change := range map[string]func(*config){
			"perfect":   func(*config) {},
			"next tick": func(c *config) { c.rtt = 1 },
			"far":       func(c *config) { c.rtt = 45 },
			"too far":   func(c *config) { c.rtt = 200 },
			"lossy":     func(c *config) { c.loss = 0.4 },
			"doubling":  func(c *config) { c.dup = 1 },
			"shuffling": func(c *config) { c.reorder = 0.5 },
			"hostile":   func(c *config) { c.loss, c.dup, c.reorder, c.peers = 0.3, 0.3, 0.3, 3 },
			"tiny":      func(c *config) { c.mtu, c.loss = minMTU, 0.2 },
			"dead":      func(c *config) { c.loss = 1 },
		} {
			for seed := range uint64(5) {
				cfg := perfect()
				cfg.seed = seed
				change(&cfg)
				r := runFile(t, file.name, cfg)
				requireOK(t, r, "%s, %s, seed %d", file.name, name, seed)
				require.Equal(t, file.ticks, r.Ticks)
				require.Equal(t, file.entities, r.EntitiesMax)
			}
		}
	}
}

// moving is a trace of one entity that changes at every tick.
func moving(ticks int) string {
	var b strings.Builder
	b.WriteString("tick,entity,P.X\nuint32,uint32,\"int32 range=0:100000\"\n")
	for i := range ticks {
		fmt.Fprintf(&b, "%d,0,%d\n", i, i*i%99991)
	}
	return b.String()
}

// TestRoundTripIsExact: a packet sent at tick t has been acknowledged when tick t+rtt is encoded,
// and not a tick earlier. With a packet at every tick, the number of acknowledged ones shows it.
func TestRoundTripIsExact(t *testing.T) {
	for _, rtt := range []int{1, 2, 3, 4, 5, 6, 7, 30, 63} {
		cfg := perfect()
		cfg.rtt = rtt
		p := start(t, moving(100), cfg)
		require.Zero(t, p.mirrors[0].peer.Stats().Packets)
		p.progress = func(now int64, _ int) {
			stats := p.mirrors[0].peer.Stats()
			require.EqualValues(t, now+1, stats.Packets, "rtt %d", rtt)
			require.EqualValues(t, max(0, now+1-int64(rtt)), stats.Acked, "rtt %d, tick %d", rtt, now)
		}
		_, err := p.play()
		require.NoError(t, err)
	}
}

func TestFirstTickOfTheTraceIsTheFirstWithEntities(t *testing.T) {
	p := start(t, moving(1), perfect())
	require.Zero(t, p.server.Stats().Spawns)
	before := p.server.Tick()
	_, err := p.play()
	require.NoError(t, err)
	require.EqualValues(t, 1, p.server.Stats().Spawns)
	require.Equal(t, before+1, p.server.Tick())
}

// TestMeansLeaveOutTheFirstRoundTrip: idle entities cost nothing once they are acknowledged, so
// their initial cost must not be in the means.
func TestMeansLeaveOutTheFirstRoundTrip(t *testing.T) {
	const still = "# rate 10\ntick,entity,P.X\nuint32,uint32,\"int32 range=0:1000\"\n0,0,5\n0,1,3\n0,2,7\n2,1,\n40,0,5\n"
	r := runText(t, still, perfect())
	requireOK(t, r)
	require.EqualValues(t, 41, r.Ticks)
	require.Equal(t, 3, r.EntitiesMax, "of all ticks, also those not measured")
	require.Zero(t, r.BytesPerTick)
	require.Zero(t, r.Packets)
	require.InDelta(t, 2*10.0/8, r.RawBytesPerTick, 1e-9)

	short := runText(t, strings.Replace(still, "40,", "3,", 1), perfect())
	requireOK(t, short)
	require.Positive(t, short.BytesPerTick, "too short, so measured completely")
	require.EqualValues(t, 2, short.Packets)
}

func TestFiguresAgreeWithEachOther(t *testing.T) {
	cfg := perfect()
	cfg.peers = 3
	r := runFile(t, "crowd.csv", cfg)
	requireOK(t, r)
	require.InDelta(t, r.BytesPerTick*8*20/1000, r.KbitPerSecond, 1e-9, "the file has rate 20")
	require.Greater(t, r.BytesPerTick, r.EntityBytesPerTick)
	require.Greater(t, r.RawBytesPerTick, r.EntityBytesPerTick)
	require.Positive(t, r.EncodeNsPerTick)
	require.Positive(t, r.DecodeNsPerTick)
	require.LessOrEqual(t, r.Packets, r.Ticks-7)
	sum := 0.0
	for _, f := range r.Fields {
		sum += f.BitsPerTick
	}
	require.Positive(t, sum)
	require.LessOrEqual(t, sum, r.EntityBytesPerTick*8)

	one := runFile(t, "crowd.csv", perfect())
	require.InDelta(t, one.BytesPerTick, r.BytesPerTick, 1e-9, "a mean over peers does not depend on their number")
	require.InDelta(t, one.Fields[0].BitsPerTick, r.Fields[0].BitsPerTick, 1e-9)
}

func TestFieldsAreNamedLikeColumns(t *testing.T) {
	r := runFile(t, "crowd.csv", perfect())
	var names []string
	for _, f := range r.Fields {
		names = append(names, f.Name)
	}
	require.Subset(t, names, []string{"Position.X", "Position.Y", "Rotation.Q", "Health.HP", "Beacon.Code[0]", "Beacon.Code[1]"})
}

func TestSameSeedSameRun(t *testing.T) {
	cfg := perfect()
	cfg.loss, cfg.dup, cfg.reorder, cfg.peers = 0.2, 0.1, 0.1, 2
	once, again := runFile(t, "crowd.csv", cfg), runFile(t, "crowd.csv", cfg)
	once.EncodeNsPerTick, again.EncodeNsPerTick = 0, 0
	once.DecodeNsPerTick, again.DecodeNsPerTick = 0, 0
	require.Equal(t, once, again)
	cfg.seed++
	require.NotEqual(t, once.BytesPerTick, runFile(t, "crowd.csv", cfg).BytesPerTick)
}

func TestOutOfRangeValuesAreClampedAndCounted(t *testing.T) {
	r := runText(t, "tick,entity,P.X\nuint32,uint32,\"float32 range=0:10,step=0.1\"\n0,0,5\n1,0,11\n2,0,-1\n3,0,10\n", perfect())
	requireOK(t, r)
	require.EqualValues(t, 2, r.Clamped)
}

func TestMalformedRowsStopTheReplay(t *testing.T) {
	_, err := run(perfect(), strings.NewReader(moving(50)+"50,0,many\n"), nil)
	require.EqualError(t, err, `t.csv: line 53, column P.X: "many" is not an int32`)
}

// TestMirrorsThatAreWrongAreFound: a tool that finds nothing wrong must be able to.
func TestMirrorsThatAreWrongAreFound(t *testing.T) {
	const trace = "tick,entity,A.X,B.X\nuint32,uint32,int32,int32\n0,0,1,2\n0,1,3,\n0,2,4,4\n20,0,1,3\n"
	entity := func(p *replay, number uint64) ecs.Entity {
		id, ok := p.server.NetID(p.stage.actors[number])
		require.True(t, ok)
		e, ok := p.mirrors[0].client.Entity(id)
		require.True(t, ok)
		return e
	}
	for name, c := range map[string]struct {
		harm func(p *replay)
		want string // in the first description
	}{
		"value": {
			func(p *replay) { *(*int32)(p.mirrors[0].world.Get(entity(p, 1), p.mirrors[0].ids[0])) = 7 },
			"entity 1 at tick 0: struct { X int32 \"component:\\\"A\\\"\" } has codes",
		},
		"component missing": {
			func(p *replay) { p.mirrors[0].world.Remove(entity(p, 2), p.mirrors[0].ids[1]) },
			"but should be true",
		},
		"component added": {
			func(p *replay) { p.mirrors[0].world.Add(entity(p, 1), p.mirrors[0].ids[1]) },
			"but should be false",
		},
		"entity missing": {
			func(p *replay) { p.mirrors[0].world.RemoveEntity(entity(p, 1)) },
			"",
		},
		"entity added": {
			func(p *replay) { p.mirrors[0].world.NewEntity() },
			"the world has 4 entities, but the client mirrors 3",
		},
		"another entity's value": {
			func(p *replay) {
				for _, l := range p.oracle.lives {
					l.versions[0].codes[0][0]++
				}
			},
			"has codes",
		},
		"an entity that died": {
			func(p *replay) { p.oracle.lives[1].died = 0 },
			"when it did not live",
		},
		"an unknown entity": {
			func(p *replay) { clear(p.oracle.byNetID) },
			"the server never had it",
		},
		"back in time": {
			func(p *replay) { p.oracle.lives[1].shown[0].at = 1 },
			"but it showed tick 1 before",
		},
		"a stranger": {
			func(p *replay) { p.oracle.lives[9] = p.oracle.lives[1] },
			"",
		},
		"newer state": {
			func(p *replay) {
				l := p.oracle.lives[1]
				l.versions = append(l.versions, version{since: 20, codes: [][]uint64{{9}, nil}})
			},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, trace, perfect())
			ticks, err := p.play()
			require.NoError(t, err)
			require.Zero(t, p.faults.count)
			c.harm(p)
			converged, err := p.heal(ticks)
			require.NoError(t, err)
			require.False(t, converged)
			r := p.report(ticks, converged)
			require.Equal(t, exitWrong, r.exitCode())
			if c.want == "" {
				require.Zero(t, r.Mismatches, r.described)
				return
			}
			require.Positive(t, r.Mismatches)
			require.Contains(t, r.described[0], c.want)
		})
	}
}

// TestSilentChangeIsFoundWithinTheCheckInterval: a mirror that becomes wrong without the client's
// knowledge is found by the next thorough check, even if it is right again by the end.
func TestSilentChangeIsFoundWithinTheCheckInterval(t *testing.T) {
	const trace = "tick,entity,A.X\nuint32,uint32,int32\n0,0,1\n0,1,5\n300,1,6\n"
	p := start(t, trace, perfect())
	p.progress = func(now int64, _ int) {
		if now == 100 {
			m := p.mirrors[0]
			for _, e := range m.client.Entities() {
				*(*int32)(m.world.Get(e, m.ids[0]))++
			}
		}
		require.Equal(t, now >= 2*checkEvery, p.faults.count > 0, "tick %d", now)
	}
	_, err := p.play()
	require.NoError(t, err)
}

func TestOracleForgetsUnshownVersions(t *testing.T) {
	var b strings.Builder
	b.WriteString("tick,entity,P.X,P.Y\nuint32,uint32,uint16,bool\n")
	const ticks = 3 * afterlife
	for i := range ticks {
		fmt.Fprintf(&b, "%d,0,%d,true\n%d,1,%d,true\n", i, i%1000, i, i%7)
		if i%2 == 1 {
			fmt.Fprintf(&b, "%d,1,,\n", i)
		}
	}
	cfg := perfect()
	cfg.peers = 2
	p := start(t, b.String(), cfg)
	most := 0
	p.progress = func(int64, int) {
		most = max(most, len(p.oracle.byNetID))
		require.LessOrEqual(t, len(p.oracle.lives[0].versions), keptVersions+10)
	}
	n, err := p.play()
	require.NoError(t, err)
	require.Zero(t, p.faults.count, p.faults.first)
	require.EqualValues(t, ticks/2+1, p.server.Stats().Spawns)
	require.LessOrEqual(t, most, (afterlife+2*checkEvery)/2+10)
	converged, err := p.heal(n)
	require.NoError(t, err)
	require.True(t, converged)
}

// TestCompactTakesLess: both codings show the truth, and Compact takes less.
func TestCompactTakesLess(t *testing.T) {
	for _, loss := range []string{"0", "0.2"} {
		var bytes []float64
		for _, coding := range codings {
			code, stdout, stderr := invoke(t, "", "-in", "testdata/crowd.csv", "-json", "-loss", loss, "-dup", loss, "-reorder", loss, "-coding", coding)
			require.Equal(t, exitOK, code, stderr)
			var r report
			require.NoError(t, json.Unmarshal([]byte(stdout), &r))
			require.True(t, r.Converged)
			bytes = append(bytes, r.EntityBytesPerTick)
		}
		require.Less(t, bytes[1], bytes[0])
	}
}
