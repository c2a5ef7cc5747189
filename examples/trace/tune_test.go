package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTuningEqualsReplayingWithTheTables: what -tune prints is what -tables gives.
func TestTuningEqualsReplayingWithTheTables(t *testing.T) {
	crowd := readTrace(t, "crowd.csv")
	cfg := perfect()
	plain := runText(t, crowd, cfg)
	r, err := tune(cfg, strings.NewReader(crowd), newProgressBar(new(bytes.Buffer)))
	require.NoError(t, err)
	requireOK(t, r)
	require.NotNil(t, r.Tuning)
	require.Equal(t, plain.EntityBytesPerTick, r.EntityBytesPerTick)
	require.Equal(t, plain.Ticks/2, r.Tuning.Ticks)
	require.Contains(t, r.Tuning.Tables, "Position.X=")
	require.Negative(t, r.Tuning.BytesPerTick)
	require.InDelta(t, r.Tuning.BytesPerTick/plain.EntityBytesPerTick, r.Tuning.Share, 1e-9)

	tuned := cfg
	tuned.tables = r.Tuning.Tables
	with := runText(t, crowd, tuned)
	require.InDelta(t, with.EntityBytesPerTick-plain.EntityBytesPerTick, r.Tuning.BytesPerTick, 1e-9)

	// The two halves make up all of it.
	half := cfg
	half.ticks = int(plain.Ticks / 2)
	first := runText(t, crowd, half)
	half.tables = tuned.tables
	firstWith := runText(t, crowd, half)
	skipped := float64(cfg.rtt + 2)
	all, early := float64(plain.Ticks)-skipped, float64(half.ticks)-skipped
	require.InDelta(t, r.Tuning.BytesPerTick*all,
		r.Tuning.OtherBytesPerTick*(all-early)+(firstWith.EntityBytesPerTick-first.EntityBytesPerTick)*early, 1e-6)

	var table strings.Builder
	require.NoError(t, r.writeTable(&table, &cfg))
	require.Contains(t, table.String(), `schema.Tune("`+r.Tuning.Tables+`")`)
}

// TestNothingToTune: a trace without numbers that are extrapolated has no tables.
func TestNothingToTune(t *testing.T) {
	r, err := tune(perfect(), strings.NewReader("tick,entity,Health.HP\nuint32,uint32,uint8\n0,1,5\n40,1,6\n"),
		newProgressBar(new(bytes.Buffer)))
	require.NoError(t, err)
	require.Empty(t, r.Tuning.Tables)
	var table strings.Builder
	require.NoError(t, r.writeTable(&table, &config{}))
	require.Contains(t, table.String(), "no tables")
}

func TestTuneFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-tune -coding compact a.csv":  "compact learns all the time",
		"-tune -advice a.csv":          "choose one",
		"-tune -tables X.Y=0 a.csv":    "leave out -tables",
		"-tune -render a.svg a.csv":    "leave out -advice, -tune",
		"-tune -coding packed a.csv":   "",
		"-tables Position.X=012 a.csv": "",
	} {
		_, err := parseFlags(strings.Fields(args))
		if want == "" {
			require.NoError(t, err, args)
			continue
		}
		require.ErrorContains(t, err, want, args)
	}
	cfg := perfect()
	cfg.tables = "Position.Z=1"
	_, err := run(cfg, strings.NewReader(readTrace(t, "crowd.csv")), nil)
	require.ErrorContains(t, err, `the schema has no field "Position.Z"`)
}
