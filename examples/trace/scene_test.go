package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// TestFlagsTakeWhatIsPrinted: times and entities may be written as the program prints them.
func TestFlagsTakeWhatIsPrinted(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0:12.300": 12300 * time.Millisecond,
		"12.3":     12300 * time.Millisecond,
		"12.3s":    12300 * time.Millisecond,
		"0":        0,
		"3:12":     192 * time.Second,
		"75:00.5":  75*time.Minute + 500*time.Millisecond,
		"3m12s":    192 * time.Second,
		"-1":       -time.Second,
	} {
		got, err := parseTime(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", ":", "1:", ":1", "1:60", "1:-1", "-1:30", "1:2:3", "NaN", "1:NaN", "1e300", "Inf", "x", "99999999999:0"} {
		_, err := parseTime(text)
		require.ErrorContains(t, err, "3:12.016", text)
	}
	for text, want := range map[string]entityName{
		"17":      {number: 17},
		"1114113": {number: 1114113},
		"17.1":    {number: 17, generation: 1, exact: true},
	} {
		got, err := parseEntity(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, text := range []string{"", ".", "17.", ".1", "1.1.1", "-1", "17.65536", "4294967296.1", "1e3"} {
		_, err := parseEntity(text)
		require.ErrorContains(t, err, "SLOT.GENERATION", text)
	}
	require.True(t, entityName{number: 17}.is(replication.NetID{Slot: 17, Generation: 3}))
	require.False(t, entityName{number: 17, generation: 1, exact: true}.is(replication.NetID{Slot: 17, Generation: 3}))
}

// TestRenderTakesEntitiesByTheirNetworkIDs: in recordings, and draws the same as with the number.
func TestRenderTakesEntitiesByTheirNetworkIDs(t *testing.T) {
	inMatch(t, 300)
	for _, entity := range []string{"1.1", "65537"} {
		code, stdout, stderr := invoke(t, "", "-render", filepath.Join(t.TempDir(), "x.svg"), "-entity", entity, "server.rec")
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, "entity 1.1: 60 ticks")
	}
	code, _, stderr := invoke(t, "", "-render", "x.svg", "-entity", "1.3", "server.rec")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "entity 1.3 of server.rec is not to be seen")
	code, _, stderr = invoke(t, "tick,entity,P.X,P.Y\nuint32,uint32,float32,float32\n0,1,1,1\n", "-render", "x.svg", "-entity", "1.1", "-in", "-")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "have numbers without generations")
}

// TestHelpNamesOneDefault of each flag.
func TestHelpNamesOneDefault(t *testing.T) {
	code, stdout, _ := invoke(t, "", "-h")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "(default: 2s for -render, 1s for -explain)")
	require.NotContains(t, stdout, "(default 2s)")
}

// TestValuesOfAllKindsArePrinted: of every entity and the resources of a recording.
func TestValuesOfAllKindsArePrinted(t *testing.T) {
	file, _ := allKindsRecording(t, 90, false)
	info, err := recording.ReadInfo(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	text, err := schemaOf(info.Schema)
	require.NoError(t, err)
	w := recordedWorld{world: ecs.NewWorld(), types: text.types}
	p, err := recording.NewPlayer(&w.world, text.schema, bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	w.register()
	require.NoError(t, p.Seek(time.Second))
	printed := strings.Join(w.lines(p.Client(), ecs.Entity{}), "\n")
	for _, e := range p.Client().Entities() {
		printed += "\n" + strings.Join(w.lines(p.Client(), e), "\n")
	}
	for _, want := range []string{
		"recScore  Blue 7, Red 0\n", "\nrecSpeed  V.X -0.49, V.Y 0.87, V.Z 0.02\n", "Guns.Heat [30 20], ", `Name "éé", `,
		`Texts ["29" "22"], `, "\nrecLevel  29\n", "\ngame.Grid  [4 12 0]\n", "entity ",
	} {
		require.Contains(t, printed, want)
	}
}
