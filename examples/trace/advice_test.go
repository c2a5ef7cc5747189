package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// adviseText replays a trace with advice.
func adviseText(t *testing.T, text string, cfg config) report {
	t.Helper()
	r, err := advise(cfg, strings.NewReader(text), newProgressBar(new(bytes.Buffer)))
	require.NoError(t, err)
	requireOK(t, r)
	require.NotNil(t, r.Advice)
	return r
}

func readTrace(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}

// untimed returns a report without everything that differs from run to run.
func untimed(r report) report {
	r.EncodeNsPerTick, r.DecodeNsPerTick = 0, 0
	return r
}

// TestAdviceEqualsEditingTheTrace: the advice about a step equals what a user finds by writing that
// step into the third line of the trace.
func TestAdviceEqualsEditingTheTrace(t *testing.T) {
	const columns = `"float32 range=-50:50,step=0.01","float32 range=-50:50,step=0.01","[4]float32 quat,bits=9"`
	crowd := readTrace(t, "crowd.csv")
	require.Contains(t, crowd, columns)
	for _, loss := range []float64{0, 0.2} {
		cfg := perfect()
		cfg.loss = loss
		advised := adviseText(t, crowd, cfg)
		plain := runText(t, crowd, cfg)
		edited := func(x, y, bits string) float64 {
			line := fmt.Sprintf(`"float32 range=-50:50,step=%s","float32 range=-50:50,step=%s","[4]float32 quat,bits=%s"`, x, y, bits)
			return runText(t, strings.Replace(crowd, columns, line, 1), cfg).BytesPerTick - plain.BytesPerTick
		}
		fields := advised.Advice.Fields
		require.Len(t, fields, 5)
		require.Equal(t, "Position.X", fields[0].Name)
		require.Equal(t, "Rotation.Q", fields[2].Name)
		require.Equal(t, 9, advised.Advice.Replays)
		for _, c := range []struct {
			want float64
			got  *scaled
			step string
		}{
			{edited("0.005", "0.01", "9"), fields[0].Half, "step=0.005"},
			{edited("0.02", "0.01", "9"), fields[0].Twice, "step=0.02"},
			{edited("0.01", "0.005", "9"), fields[1].Half, "step=0.005"},
			{edited("0.01", "0.02", "9"), fields[1].Twice, "step=0.02"},
			{edited("0.01", "0.01", "10"), fields[2].Half, "bits=10"},
			{edited("0.01", "0.01", "8"), fields[2].Twice, "bits=8"},
			{edited("0.005", "0.005", "10"), advised.Advice.All.Half, ""},
			{edited("0.02", "0.02", "8"), advised.Advice.All.Twice, ""},
		} {
			require.NotZero(t, c.want)
			require.Equal(t, c.want, c.got.BytesPerTick)
			require.InDelta(t, c.want/plain.BytesPerTick, c.got.Share, 1e-12)
			require.Equal(t, c.step, c.got.Precision)
			require.Empty(t, c.got.Refused)
		}

		// The report is that of the unchanged trace.
		fieldBits := 0.0
		for _, f := range fields {
			require.InDelta(t, f.BitsPerTick, f.BitsPerUpdate*advised.Advice.EntitiesSentPerTick, 1e-9)
			require.InDelta(t, f.BitsPerTick, f.Share*8*plain.BytesPerTick, 1e-9)
			fieldBits += f.BitsPerTick
		}
		for _, f := range plain.Fields {
			if strings.Contains(f.Name, ".") {
				fieldBits -= f.BitsPerTick
			}
		}
		require.InDelta(t, 0, fieldBits, 1e-9, "elements of arrays are added up")
		advised.Advice = nil
		require.Equal(t, untimed(plain), untimed(advised))
	}
}

func TestAdviceIsTheSameEveryTime(t *testing.T) {
	cfg := perfect()
	cfg.loss, cfg.reorder, cfg.peers = 0.1, 0.1, 2
	crowd := readTrace(t, "crowd.csv")
	require.Equal(t, untimed(adviseText(t, crowd, cfg)), untimed(adviseText(t, crowd, cfg)))
}

// edges has steps at the limits of the library, or that can't be halved.
const edges = `tick,entity,A.Finest[0],A.Finest[1],A.Finest[2],A.Finest[3],A.Gap,A.Five,A.Wide,A.Turn,A.One,A.Raw,A.Local
uint32,uint32,"[4]float64 quat,bits=20",,,,"float32 range=0:16777215,step=1","int32 range=0:100,step=5","float64 range=0:1,step=1","float32 angle,bits=1","uint8 range=0:9,step=1",float32,float32 -
0,1,0,0,0,1,5,5,0,0,3,0.1,1
1,1,0,0,1,0,6,10,1,1,3,0.2,2
2,1,0,1,0,0,9,15,0,2,4,0.3,3
`

func TestStepsThatCannotBeAreRefusedWithTheReason(t *testing.T) {
	a := adviseText(t, edges, perfect()).Advice
	type refusals struct{ half, twice string }
	want := map[string]refusals{
		"A.Finest": {"20", ""},
		"A.Gap":    {"finer than a float32 can hold", ""},
		"A.Five":   {"a step of 5 has no integer half", ""},
		"A.Wide":   {"", "must be above 0 and at most 1"},
		"A.Turn":   {"", "bits"},
	}
	replays := 1 + 2
	for _, f := range a.Fields {
		w, ok := want[f.Name]
		if !ok {
			require.Nil(t, f.scaledPair, f.Name)
			continue
		}
		for reason, s := range map[string]*scaled{w.half: f.Half, w.twice: f.Twice} {
			if reason == "" {
				require.Empty(t, s.Refused, f.Name)
				replays++
				continue
			}
			require.Contains(t, s.Refused, reason, f.Name)
			require.NotContains(t, s.Refused, f.Name)
			require.Zero(t, s.BytesPerTick)
		}
	}
	require.Equal(t, replays, a.Replays)
	require.Len(t, a.Fields, len(want)+2, "one exact, one raw; the local one is not sent")

	var b strings.Builder
	a.writeTable(&b)
	require.Contains(t, b.String(), "no   A.Five, half the step: a step of 5 has no integer half\n")
	require.Contains(t, b.String(), "raw  every bit of a float is sent")
}

func TestNothingToScale(t *testing.T) {
	a := adviseText(t, "tick,entity,A.N\nuint32,uint32,int32\n0,1,5\n1,1,6\n", perfect()).Advice
	require.Equal(t, 1, a.Replays)
	require.Nil(t, a.All)
	require.Equal(t, "exact", a.Fields[0].Precision)

	a = adviseText(t, "tick,entity,A.X,A.Y\nuint32,uint32,\"int32 range=0:9,step=5\",\"int32 range=0:9,step=3\"\n0,1,5,3\n1,1,0,3\n", perfect()).Advice
	require.Equal(t, "no field can have it", a.All.Half.Refused)
	require.Empty(t, a.All.Twice.Refused)
	var b strings.Builder
	a.writeTable(&b)
	require.Contains(t, b.String(), "\nno   all of them, half the step: no field can have it\n")
}

func TestAdviceTableIsAligned(t *testing.T) {
	code, stdout, stderr := invoke(t, "", "-advice", "testdata/crowd.csv")
	require.Equal(t, exitOK, code)
	require.Empty(t, stderr)
	_, table, ok := strings.Cut(stdout, "\nthe cost of precision: ")
	require.True(t, ok)
	require.Contains(t, table, "Beacon.Code  exact")
	require.NotContains(t, table, "~", "the recording is finer than its steps")
	width := 0
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		require.LessOrEqual(t, len(line), 100)
		require.Equal(t, strings.TrimRight(line, " "), line)
		if strings.HasPrefix(line, "field ") || strings.HasPrefix(line, "Position") || strings.HasPrefix(line, "all of them") {
			if width == 0 {
				width = len(line)
			}
			require.Len(t, line, width, line)
		}
	}
	require.NotZero(t, width)
}

func TestAdviceInJSON(t *testing.T) {
	code, stdout, stderr := invoke(t, "", "-advice", "-json", "-ticks", "20", "testdata/crowd.csv")
	require.Equal(t, exitOK, code, stderr)
	var got struct {
		Ticks  int64                      `json:"ticks"`
		Advice map[string]json.RawMessage `json:"advice"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.EqualValues(t, 20, got.Ticks)
	require.Len(t, got.Advice, 4)
	require.JSONEq(t, "9", string(got.Advice["replays"]))
	require.Contains(t, got.Advice, "entities_sent_per_tick")
	var fields []map[string]any
	require.NoError(t, json.Unmarshal(got.Advice["fields"], &fields))
	for i, keys := range []int{8, 8, 8, 6, 6} {
		require.Len(t, fields[i], keys)
		for _, key := range []string{"name", "precision", "bits_per_tick", "bits_per_update", "share", "recorded_finer"} {
			require.Contains(t, fields[i], key)
		}
	}
	require.Equal(t, "step=0.005", fields[0]["half"].(map[string]any)["precision"])
	require.Positive(t, fields[0]["half"].(map[string]any)["bytes_per_tick"])
	require.Negative(t, fields[0]["twice"].(map[string]any)["bytes_per_tick"])
}

func TestTicksEndTheTraceEarly(t *testing.T) {
	crowd := readTrace(t, "crowd.csv")
	early, _, ok := strings.Cut(crowd, "\n25,")
	require.True(t, ok)
	cfg := perfect()
	want := adviseText(t, early+"\n", cfg)
	cfg.ticks = 25
	require.Equal(t, untimed(want), untimed(adviseText(t, crowd, cfg)))
	require.Equal(t, untimed(runText(t, early+"\n", perfect())), untimed(runText(t, crowd, cfg)))
	for _, ticks := range []int{0, 60, 61, maxTicks} {
		cfg.ticks = ticks
		require.Equal(t, untimed(runText(t, crowd, perfect())), untimed(runText(t, crowd, cfg)))
	}
	code, _, stderr := invoke(t, "", "-ticks", "-1", "testdata/crowd.csv")
	require.Equal(t, exitUsage, code)
	require.Equal(t, "trace: -ticks is -1, but must be 0 to 2147483647 ticks\n", stderr)
}

func TestAdviceOnABadTraceIsOneSentence(t *testing.T) {
	for want, text := range map[string]string{
		"line 1: the file ends before its column names": "",
		`line 4, column P.X: "abc" is not a float32`:    "tick,entity,P.X\nuint32,uint32,\"float32 range=0:1,step=0.1\"\n0,0,1\n1,0,abc\n",
		"line 2, column P.X: P.X: step needs a range":   "tick,entity,P.X\nuint32,uint32,\"float32 step=0.1\"\n0,0,1\n",
	} {
		code, stdout, stderr := invoke(t, text, "-advice", "-in", "-")
		require.Equal(t, exitUsage, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	_, err := advise(perfect(), iotest.ErrReader(errors.New("out of order")), newProgressBar(new(bytes.Buffer)))
	require.EqualError(t, err, "t.csv: cannot be read: out of order")
}

func TestAdviceReportsItsProgress(t *testing.T) {
	var b bytes.Buffer
	bar := newProgressBar(&b)
	bar.every = time.Nanosecond
	cfg := perfect()
	_, err := advise(cfg, strings.NewReader(readTrace(t, "crowd.csv")), bar)
	require.NoError(t, err)
	for _, want := range []string{
		"1/9 as it is: tick ",
		"2/9 Position.X, half the step: tick ",
		"7/9 Rotation.Q, twice the step: tick ",
		"9/9 all, twice the step: tick ",
	} {
		require.Contains(t, b.String(), want)
	}
}

func TestWhatIsWrongInAnyReplayCounts(t *testing.T) {
	r := report{Converged: true}
	r.blame("P.X, half the step", &report{Converged: true})
	require.Equal(t, exitOK, r.exitCode())
	r.blame("P.X, twice the step", &report{Converged: true, Mismatches: 2, described: []string{"tick 3: wrong"}})
	require.Equal(t, exitWrong, r.exitCode())
	require.Equal(t, []string{"P.X, twice the step: tick 3: wrong"}, r.described)
	r = report{Converged: true}
	r.blame("all, half the step", &report{})
	require.Equal(t, exitWrong, r.exitCode())
}

func TestHelpExplainsAdvice(t *testing.T) {
	_, stdout, _ := invoke(t, "", "-h")
	require.Contains(t, stdout, "\n  -advice")
	require.Contains(t, stdout, "\n  -ticks")
}

// TestAdviceNamesWhatIsTooSlowForItsStep, with the step that helps.
func TestAdviceNamesWhatIsTooSlowForItsStep(t *testing.T) {
	const header = "# rate 60\ntick,entity,P.X,P.Y,T.A,L.N\n" +
		`uint32,uint32,"float32 range=-50:50,step=%s","float32 range=-50:50,step=0.01","float32 angle,bits=%s","uint8 linear"` + "\n"
	text := func(step, bits string, x, y, angle float64) string {
		var b strings.Builder
		fmt.Fprintf(&b, header, step, bits)
		for tick := range 300 {
			n := float64(tick)
			fmt.Fprintf(&b, "%d,1,%g,%g,%g,%d\n", tick, x*n, y*n, angle*n, tick/4)
		}
		return b.String()
	}
	advice := func(text string) (x, a fieldAdvice, table string) {
		r := adviseText(t, text, perfect()).Advice
		var b strings.Builder
		r.writeTable(&b)
		require.Zero(t, r.Fields[3].SlowShare, "an integer has nothing between its steps")
		return r.Fields[0], r.Fields[2], b.String()
	}
	x, a, table := advice(text("0.01", "10", 0.004, 0, 0.002))
	require.Greater(t, x.SlowShare, 0.9)
	require.Equal(t, "step=0.001", x.Even)
	require.Greater(t, a.SlowShare, 0.9)
	require.Equal(t, "bits=14", a.Even, "0.002 is 0.33 steps of 2 pi / 1024")
	require.Contains(t, table, "slow P.X: less than a step a tick in 100 % of its motion, so it stands still and jumps;\n"+
		"     step=0.001 shows that evenly\n")

	x, a, table = advice(text("0.001", "14", 0.004, 0, 0.002))
	require.Zero(t, x.SlowShare)
	require.Zero(t, a.SlowShare)
	require.NotContains(t, table, "slow ")

	x, _, _ = advice(text("0.01", "10", 0.003, 0.1, 0.05))
	require.Zero(t, x.SlowShare, "the other coordinate moves")
}
