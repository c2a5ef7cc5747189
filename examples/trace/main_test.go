package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// invoke runs the program.
func invoke(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command(args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestJSONIsOneObjectWithExactlyTheseKeys(t *testing.T) {
	code, stdout, stderr := invoke(t, "", "-in", "testdata/crowd.csv", "-json", "-loss", "0.1", "-peers", "2")
	require.Equal(t, exitOK, code)
	require.Empty(t, stderr)

	d := json.NewDecoder(strings.NewReader(stdout))
	var got map[string]any
	require.NoError(t, d.Decode(&got))
	require.Equal(t, io.EOF, d.Decode(new(any)), "one object only")

	for key, want := range map[string]any{"ticks": 60.0, "entities_max": 20.0, "converged": true, "mismatches": 0.0, "clamped": 0.0} {
		require.Equal(t, want, got[key], key)
		delete(got, key)
	}
	for _, key := range []string{"packets", "bytes_per_tick", "entity_bytes_per_tick", "kbit_per_second", "raw_bytes_per_tick", "encode_ns_per_tick", "decode_ns_per_tick"} {
		require.IsType(t, 0.0, got[key], key)
		require.Positive(t, got[key], key)
		delete(got, key)
	}
	require.IsType(t, 0.0, got["missing_baselines"])
	delete(got, "missing_baselines")
	fields, ok := got["fields"].([]any)
	require.True(t, ok)
	require.Len(t, fields, 10)
	for _, f := range fields {
		require.Len(t, f, 2)
		require.Contains(t, f, "name")
		require.Contains(t, f, "bits_per_tick")
	}
	delete(got, "fields")
	require.Empty(t, got, "unexpected keys")
}

func TestTableIsAligned(t *testing.T) {
	code, stdout, stderr := invoke(t, "", "-in", "testdata/crowd.csv")
	require.Equal(t, exitOK, code)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "testdata/crowd.csv: 60 ticks, up to 20 entities\n")
	require.Contains(t, stdout, "packed, round trip 6 ticks, 0 % lost, 0 % doubled, 0 % held back, MTU 1200, seed 1, 1 peer\n")
	require.Contains(t, stdout, "worlds equal in the end: yes; mismatches: 0; values clamped: 0; missing baselines: 0\n")
	rows := 0
	for line := range strings.Lines(stdout) {
		line = strings.TrimRight(line, "\n")
		require.Equal(t, strings.TrimRight(line, " "), line)
		require.LessOrEqual(t, len(line), 100)
		if dot := strings.LastIndex(line[:min(len(line), 41)], "."); len(line) > 41 && dot > 28 && line[41] == ' ' {
			require.Equal(t, 39, dot, line)
			rows++
		}
	}
	require.Equal(t, 5+10+1, rows, stdout)
}

func TestCompressedTracesAndStandardInput(t *testing.T) {
	text, err := os.ReadFile("testdata/lives.csv")
	require.NoError(t, err)
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	_, err = w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "lives.csv.zst")
	require.NoError(t, os.WriteFile(path, packed.Bytes(), 0o600))

	figures := func(stdin string, args ...string) report {
		code, stdout, stderr := invoke(t, stdin, append([]string{"-json"}, args...)...)
		require.Equal(t, exitOK, code, stderr)
		var r report
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		r.EncodeNsPerTick, r.DecodeNsPerTick = 0, 0
		return r
	}
	plain := figures("", "-in", "testdata/lives.csv")
	require.Equal(t, plain, figures("", "-in", path))
	require.Equal(t, plain, figures("", path), "a sole argument is the trace, too")
	require.Equal(t, plain, figures(string(text), "-in", "-"))
	require.Equal(t, plain, figures(packed.String(), "-in", "-"))
}

func TestHelpTeachesByAnExampleThatWorks(t *testing.T) {
	code, stdout, stderr := invoke(t, "", "-h")
	require.Equal(t, exitOK, code)
	require.Empty(t, stderr)
	for _, name := range []string{"-in", "-coding", "-rtt", "-loss", "-dup", "-reorder", "-seed", "-peers", "-mtu", "-json", "-render", "-entity", "-fps", "-from", "-span"} {
		require.Contains(t, stdout, "\n  "+name, "the flag is not explained")
	}
	_, example, ok := strings.Cut(stdout, "    # rate")
	require.True(t, ok)
	example, _, ok = strings.Cut(example, "\n\n")
	require.True(t, ok)
	trace := "# rate" + strings.ReplaceAll(example, "\n    ", "\n") + "\n"
	r := runText(t, trace, perfect())
	requireOK(t, r)
	require.EqualValues(t, 10, r.Ticks)
	require.Equal(t, 2, r.EntitiesMax)
}

func TestWrongUseIsOneSentenceAndExitCode2(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.csv")
	require.NoError(t, os.WriteFile(bad, []byte("tick,entity,P.X\nuint32,uint32,float32\n0,0,1\n1,0,abc\n"), 0o600))
	const in = "testdata/lives.csv"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no trace: name one with -in FILE; -h shows an example", nil},
		{`"x.csv" is too much; there is one trace, named by -in or after all flags`, []string{"-in", in, "x.csv"}},
		{`"3" is too much; there is one trace, named by -in or after all flags`, []string{in, "-rtt", "3"}},
		{"flag provided but not defined: -speed; -h explains the flags", []string{"-speed", "9"}},
		{`invalid value "six" for flag -rtt: parse error; -h explains the flags`, []string{"-in", in, "-rtt", "six"}},
		{`-coding "zip" is unknown; there is packed, compact`, []string{"-in", in, "-coding", "zip"}},
		{"-rtt is 0, but must be 1 to 1000 ticks", []string{"-in", in, "-rtt", "0"}},
		{"-rtt is 1001, but must be 1 to 1000 ticks", []string{"-in", in, "-rtt", "1001"}},
		{"-loss is 5, but must be a share from 0 to 1; 0.05 is 5 %", []string{"-in", in, "-loss", "5"}},
		{"-dup is -0.1, but must be a share from 0 to 1; 0.05 is 5 %", []string{"-in", in, "-dup", "-0.1"}},
		{"-reorder is NaN, but must be a share from 0 to 1; 0.05 is 5 %", []string{"-in", in, "-reorder", "NaN"}},
		{"-peers is 0, but must be 1 to 256 clients", []string{"-in", in, "-peers", "0"}},
		{"-mtu is 63, but must be 64 to 65507 bytes", []string{"-in", in, "-mtu", "63"}},
		{"-mtu is 65508, but must be 64 to 65507 bytes", []string{"-in", in, "-mtu", "65508"}},
		{"open nowhere.csv: no such file or directory", []string{"-in", "nowhere.csv"}},
		{bad + `: line 4, column P.X: "abc" is not a float32`, []string{"-in", bad, "-json"}},
	} {
		code, stdout, stderr := invoke(t, "", c.args...)
		require.Equal(t, exitUsage, code, c.want)
		require.Empty(t, stdout, c.want)
		require.Equal(t, "trace: "+c.want+"\n", stderr)
	}
	code, _, stderr := invoke(t, "", "-in", "-")
	require.Equal(t, exitUsage, code)
	require.Equal(t, "trace: standard input: line 1: the file ends before its column names\n", stderr)
}

// fullDisk takes so many bytes.
type fullDisk int

func (d *fullDisk) Write(p []byte) (int, error) {
	if n := min(len(p), int(*d)); n < len(p) {
		*d -= fullDisk(n)
		return n, errors.New("no space left on device")
	}
	*d -= fullDisk(len(p))
	return len(p), nil
}

func TestHelpOnAFullDiskIsAnError(t *testing.T) {
	_, help, _ := invoke(t, "", "-h")
	for _, room := range []int{0, 10, len(help) / 2, len(help) - 1, len(help)} {
		disk := fullDisk(room)
		code := command([]string{"-h"}, strings.NewReader(""), &disk, io.Discard)
		require.Equal(t, room == len(help), code == exitOK, "%d of %d bytes", room, len(help))
	}
}

func TestManyComponents(t *testing.T) {
	for n, want := range map[int]int{maxComponents: exitOK, maxComponents + 1: exitUsage} {
		names, types, row := "tick,entity", "uint32,uint32", "0,0"
		for i := range n {
			names, types, row = names+fmt.Sprintf(",C%d.N", i), types+",uint8", row+",1"
		}
		code, _, stderr := invoke(t, names+"\n"+types+"\n"+row+"\n", "-in", "-")
		require.Equal(t, want, code, stderr)
	}
}

// The limits of -mtu are the library's, which panics beyond them.
func TestExtremeFlagsWork(t *testing.T) {
	for _, args := range [][]string{
		{"-mtu", "64"},
		{"-mtu", "65507"},
		{"-rtt", "1"},
		{"-rtt", "1000"},
		{"-peers", "256"},
		{"-loss", "1"},
		{"-dup", "1"},
		{"-reorder", "1"},
		{"-seed", "18446744073709551615"},
	} {
		code, _, stderr := invoke(t, "", append(args, "-in", "testdata/lives.csv")...)
		require.Equal(t, exitOK, code, "%v: %s", args, stderr)
	}
}

func TestProgressIsALineNowAndThen(t *testing.T) {
	var b bytes.Buffer
	bar := newProgressBar(&b)
	require.False(t, bar.terminal)
	bar.tick(0, 5)
	require.Empty(t, b.String(), "not before 5 seconds")
	bar.last = bar.last.Add(-6 * time.Second)
	bar.tick(99, 5)
	bar.tick(100, 5)
	bar.done()
	require.Equal(t, "tick 100, 5 entities, 0 s\n", b.String())

	b.Reset()
	bar.terminal = true
	bar.last = bar.last.Add(-6 * time.Second)
	bar.tick(99, 5)
	bar.done()
	require.Equal(t, "\rtick 100, 5 entities, 0 s", strings.TrimRight(b.String()[:60], " "))
	require.True(t, strings.HasSuffix(b.String(), " \r"))
	require.NotContains(t, b.String(), "\n")
}
