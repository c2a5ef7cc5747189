package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Generated games of kinds that the recordings of docs/benchmarks.md lack. docs/packed.md has their figures. With
// KINDS=DIRECTORY, TestKindsOfGames also writes them there, for other tools to read.

// A generator writes a trace.
type generator struct{ strings.Builder }

// row begins a row.
func (g *generator) row(tick, entity int) { fmt.Fprintf(g, "%d,%d", tick, entity) }

// cells adds the cells of an array or of several fields.
func (g *generator) cells(values ...float64) {
	for _, v := range values {
		fmt.Fprintf(g, ",%.5f", v)
	}
}

// quat adds the cells of the rotation by a vector's length around the vector.
func (g *generator) quat(x, y, z float64) {
	angle := math.Sqrt(x*x+y*y+z*z) + 1e-12
	s := math.Sin(angle/2) / angle
	g.cells(x*s, y*s, z*s, math.Cos(angle/2))
}

const position = `,"float32 range=-100:100,step=0.01","float32 range=-100:100,step=0.01","float32 range=-100:100,step=0.01"`

// patrols returns 16 guards on closed paths. The state of each is exactly that of a period ago, 30 to 45 ticks.
func patrols() string {
	var g generator
	g.WriteString("# rate 20\ntick,entity,Position.X,Position.Y,Position.Z,Rotation.Q[0],Rotation.Q[1],Rotation.Q[2],Rotation.Q[3],Gait.Phase\n")
	g.WriteString("uint32,uint32" + position + `,"[4]float32 quat,bits=9",,,,"float32 angle,bits=8"` + "\n")
	for tick := range 600 {
		for guard := range 16 {
			period, at := 30+guard, 2+float64(guard)/4
			turn := 2 * math.Pi * float64((tick+7*guard)%period) / float64(period)
			g.row(tick, guard)
			g.cells(20*at+at*math.Cos(turn), math.Abs(math.Sin(4*turn))/5, at*math.Sin(turn)+math.Sin(3*turn))
			g.quat(0.1*math.Sin(4*turn), turn+0.4*math.Sin(2*turn), 0.05*math.Cos(3*turn))
			g.cells(8 * turn)
			g.WriteString("\n")
		}
	}
	return g.String()
}

// bodies returns 6 articulated bodies. Each has 16 joints in one component, which springs pull to postures that
// change now and then: some joints swing, others hardly move.
func bodies() string {
	const joints = 16
	var g generator
	g.WriteString("# rate 30\ntick,entity,Position.X,Position.Y,Position.Z")
	for joint := range joints {
		for i := range 4 {
			fmt.Fprintf(&g, ",Body.Joint%d[%d]", joint, i)
		}
	}
	g.WriteString("\nuint32,uint32" + position + strings.Repeat(`,"[4]float32 quat,bits=9",,,`, joints) + "\n")
	rng := rand.New(rand.NewPCG(1, 16))
	type body struct {
		at, speed            [3]float64
		angle, spin, posture [3 * joints]float64
	}
	var all [6]body
	for tick := range 240 {
		for i := range all {
			b := &all[i]
			for k := range b.angle {
				if rng.IntN(20) == 0 {
					b.posture[k] = rng.NormFloat64() * [...]float64{0.02, 0.1, 0.3, 0.6}[k/3%4]
				}
				b.spin[k] += (b.posture[k]-b.angle[k])*0.08 - b.spin[k]*0.3
				b.angle[k] += b.spin[k]
			}
			for k := range b.at {
				b.speed[k] += 0.01*rng.NormFloat64() - b.at[k]/1000
				b.at[k] += b.speed[k]
			}
			g.row(tick, i)
			g.cells(b.at[:]...)
			for k := 0; k < len(b.angle); k += 3 {
				g.quat(b.angle[k], b.angle[k+1], b.angle[k+2])
			}
			g.WriteString("\n")
		}
	}
	return g.String()
}

// TestKindsOfGames: all clients show the truth, and it takes the bytes that docs/packed.md has, or few more.
func TestKindsOfGames(t *testing.T) {
	for _, kind := range []struct {
		name            string
		text            string
		packed, compact float64 // entity data in bytes per tick, at the most
	}{
		{"patrols", patrols(), 115, 86},
		{"bodies", bodies(), 158, 136},
	} {
		if dir := os.Getenv("KINDS"); dir != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, kind.name+".trace.csv"), []byte(kind.text), 0o600))
		}
		for coding, most := range map[string]float64{"packed": kind.packed, "compact": kind.compact} {
			cfg := perfect()
			cfg.rtt, cfg.coding = 3, coding
			r := runText(t, kind.text, cfg)
			requireOK(t, r)
			t.Logf("%s, %s: %.1f of %.1f", kind.name, coding, r.EntityBytesPerTick, r.RawBytesPerTick)
			require.LessOrEqual(t, r.EntityBytesPerTick, most, "%s, %s", kind.name, coding)

			cfg.loss, cfg.dup, cfg.reorder, cfg.peers, cfg.ticks = 0.1, 0.05, 0.1, 2, 150
			requireOK(t, runText(t, kind.text, cfg))
		}
	}
}

// TestJointsCostWhatTheyMove: a joint that hardly moves takes as few bits behind one that swings as in front of it.
func TestJointsCostWhatTheyMove(t *testing.T) {
	for _, coding := range codings {
		cfg := perfect()
		cfg.rtt, cfg.coding = 3, coding
		r := runText(t, bodies(), cfg)
		requireOK(t, r)
		bits := map[string]float64{}
		for _, f := range r.Fields {
			bits[f.Name] = f.BitsPerTick
		}
		for joint := 4; joint < 16; joint++ { // of four joints in turn, each moves more than the one before
			name := fmt.Sprintf("Body.Joint%d", joint)
			require.Less(t, bits[name], 1.1*bits[fmt.Sprintf("Body.Joint%d", joint%4)], name)
		}
	}
}
