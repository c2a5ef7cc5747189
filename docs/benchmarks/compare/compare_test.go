package main

import (
	"encoding/xml"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// lives is a small game: an entity that moves and rests, another that comes in its place, components that
// come and go, and codes of all widths.
const lives = `tick,entity,Position.0,Position.1,Health.0,Name.0
3,9,5,7,100,18446744073709551615
3,4,0,0,,
4,9,6,9,100,18446744073709551615
6,9,7,11,,
7,4,,,,
7,5,,,1,0
9,5,,,2,0
9,4,1,2,3,4
12,9,8,13,,
`

// TestReadPlaysRows: an entity keeps its state until its next row, and slots are used again.
func TestReadPlaysRows(t *testing.T) {
	r, err := read(strings.NewReader(lives))
	require.NoError(t, err)
	require.Equal(t, []span{{0, 2}, {2, 3}, {3, 4}}, r.components)
	require.Equal(t, []uint8{4, 4, 7, 64}, r.widths)
	require.Len(t, r.ticks, 10)
	require.Equal(t, r.ticks[1].at(0), r.ticks[2].at(0))
	require.Equal(t, []uint64{7, 11, 0, 0}, r.ticks[3].at(0).codes)
	require.Equal(t, []bool{false, true, true}, r.ticks[4].at(1).has)
	require.NotEqual(t, r.ticks[3].at(1).life, r.ticks[4].at(1).life)
	for _, text := range []string{"", "tick,entity,A.0\nx,1,2\n", "tick,entity,A.0\n1,1,x\n", "tick,entity,A.0\n1,1\n"} {
		_, err := read(strings.NewReader(text))
		require.Error(t, err, text)
	}
}

// TestAllMethodsDecode: a receiver that has only what it decoded, and only from a round trip before, has
// the sender's state in every tick. Here measure does the comparing, see its comment.
func TestAllMethodsDecode(t *testing.T) {
	small, err := read(strings.NewReader(lives))
	require.NoError(t, err)
	for _, r := range []*recording{small, random(1), random(2)} {
		for _, rtt := range []int{1, 2, 6} {
			for i := range methods {
				_, err := r.measure(&methods[i], rtt)
				require.NoError(t, err)
			}
			for i := range layouts {
				_, err := r.measureLayout(&layouts[i], zstd.SpeedFastest, rtt)
				require.NoError(t, err)
			}
		}
	}
}

// random returns a lively recording.
func random(seed uint64) *recording {
	rng := rand.New(rand.NewPCG(seed, 0))
	r := &recording{components: []span{{0, 3}, {3, 4}}, widths: []uint8{12, 12, 64, 1}}
	now := make(state, 30)
	lives := 0
	for range 60 {
		now = append(state(nil), now...)
		for slot := range now {
			e := now[slot]
			switch n := rng.IntN(40); {
			case n == 0:
				now[slot] = nil
			case n == 1 || e == nil && n < 4:
				lives++
				now[slot] = &row{lives, []bool{true, rng.IntN(2) == 0}, []uint64{rng.Uint64N(4096), 0, rng.Uint64(), 0}}
			case e != nil && n < 20:
				c := *e
				c.codes = append([]uint64(nil), e.codes...)
				c.codes[rng.IntN(2)] = rng.Uint64N(4096)
				if c.has[1] {
					c.codes[3] = rng.Uint64N(2)
				}
				now[slot] = &c
			}
		}
		r.ticks = append(r.ticks, now)
	}
	return r
}

// TestMeasureFindsErrors: a method that loses something is an error, and no figure.
func TestMeasureFindsErrors(t *testing.T) {
	r := random(3)
	lossy := methods[3]
	lossy.decode = func(r *recording, base state, data []byte) (state, error) {
		s, err := decodeMasks(r, base, data)
		if len(s) > 0 {
			s[0] = nil
		}
		return s, err
	}
	_, err := r.measure(&lossy, 2)
	require.ErrorContains(t, err, "another state")
}

// TestDamagedDataIsRefused or decodes to something else, but nothing panics.
func TestDamagedDataIsRefused(t *testing.T) {
	r, rng := random(4), rand.New(rand.NewPCG(5, 0))
	base, now := r.ticks[10], r.ticks[14]
	for i := range methods {
		data := methods[i].encode(r, base, now)
		for range 2000 {
			damaged := append([]byte(nil), data[:rng.IntN(len(data)+1)]...)
			for range rng.IntN(3) {
				if len(damaged) > 0 {
					damaged[rng.IntN(len(damaged))] ^= 1 << rng.IntN(8)
				}
			}
			_, _ = methods[i].decode(r, base, damaged)
		}
	}
}

// TestCompareTestdata runs the command on small recordings, and puts the table into a page.
func TestCompareTestdata(t *testing.T) {
	if testing.Short() {
		t.Skip("builds examples/trace")
	}
	dir := t.TempDir()
	page := filepath.Join(dir, "benchmarks.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n<!-- made by docs/benchmarks/compare: begin -->\nold\n"+
		"<!-- made by docs/benchmarks/compare: end -->\nafter\n"), 0o644))
	const data = "../../../examples/trace/testdata/"
	require.NoError(t, compare([]string{data + "crowd.csv:3", data + "lives.csv:2"}, 40, zstd.SpeedBestCompression, dir))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "crowd, round trip 3 | lives, round trip 2 |")
	require.NotContains(t, string(text), "old")
	require.True(t, strings.HasPrefix(string(text), "before\n") && strings.HasSuffix(string(text), "after\n"))
	for _, name := range []string{"Compact", "Packed", "zstd, best", "msgpack", "protobuf", "mask, fixed width", "raw, all entities"} {
		require.Contains(t, string(text), "| "+name+" |")
	}
	svg, err := os.ReadFile(filepath.Join(dir, "bytes-per-tick.svg"))
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
	require.Contains(t, string(svg), "prefers-color-scheme: dark")

	require.Error(t, compare(nil, 0, 0, ""))
	for _, file := range []string{data + "crowd.csv", data + "crowd.csv:0", data + "crowd.csv:x", "missing:3"} {
		require.Error(t, compare([]string{file}, 0, 0, ""), file)
	}
}
