package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// replayed runs a headless replay and returns what it prints.
func replayed(t *testing.T, file string) (p played) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"-replay", file, "-json"}, &stdout, &stderr))
	require.Empty(t, stderr.String())
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &p))
	return p
}

// A replay has the server's world, in any tick.
func TestAReplayIsAsItWas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "match.rec")
	c := testConfig(t, append([]string{"-record", file}, rough...)...)
	m := newMatch(&c)
	defer m.close()
	var err error
	m.tape, err = openTape(c.record)
	require.NoError(t, err)
	require.NoError(t, m.open(t.Context(), &screen{}))
	m.tape.begin(m)
	var truth []game.Census // by tick
	for range c.ticks {
		require.NoError(t, m.step(true))
		m.tape.follow(m, &screen{})
		truth = append(truth, m.truth.census())
	}
	kept := m.tape.close(4)
	require.Empty(t, kept.Error)
	require.Zero(t, kept.Dropped)

	r, err := openReplay(file)
	require.NoError(t, err)
	defer r.close()
	world := func() game.Census { return r.reader.Census(r.player.Client().Entities()) }
	for i, want := range truth {
		require.NoError(t, r.player.Step())
		require.Equal(t, want, world(), "tick %d", i)
	}
	for _, i := range []int{200, 7, 119, 120, 239, 0} {
		require.NoError(t, r.player.Seek(time.Duration(i)*time.Second/60))
		require.Equal(t, truth[i], world(), "tick %d", i)
	}

	p := replayed(t, file)
	require.Equal(t, hex(truth[239].Sum), p.Sum)
	require.Equal(t, truth[239].Entities, p.Entities)
	require.Equal(t, 240, p.Ticks)
	require.InDelta(t, 4, p.Seconds, 0.05)
	require.Empty(t, p.Damage)
	require.Equal(t, "20", p.Meta["bots"])
	require.Equal(t, "5", p.Meta["seed"])
	var marks []string
	for _, m := range p.Marks {
		marks = append(marks, m.Text)
	}
	require.ElementsMatch(t, []string{"Ada 1 joins", "Blériot 2 joins", "Bessie 3 joins"}, marks, "once, whatever breaks they take")
	require.Equal(t, kept.Marks, len(p.Marks))
}

// recordedFile runs the arena for four seconds, and returns the file and what is printed.
func recordedFile(t *testing.T, flags ...string) (file, text string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "match.rec")
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), append(append([]string{"-record", file}, rough...), flags...), &stdout, &stderr))
	require.Empty(t, stderr.String())
	return file, stdout.String()
}

func TestARecordingChangesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "match.rec")
	without, with := runOK(t, rough...), runOK(t, append(rough, "-record", file)...)
	require.Positive(t, with.Recording.Bytes)
	with.Recording = nil
	require.Equal(t, without, with)
}

func TestMomentsAreRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0:00.00", 13 * time.Second / 60: "0:00.22", 239 * time.Second / 60: "0:03.98", 59996 * time.Millisecond: "1:00.00",
	} {
		require.Equal(t, want, clock(d))
	}
}

func TestPlayersWhoComeAndGoAreMarked(t *testing.T) {
	c := testConfig(t)
	m := newMatch(&c)
	defer m.close()
	m.tape = &tape{}
	p := m.server.Connect(func([]byte) error { return nil })
	m.admit(p)
	m.joined(p, "Ada")
	m.joined(p, "Ada") // after a break
	m.joined(p, "Bessie")
	p.Disconnect(replication.Reason{})
	nobody := m.server.Connect(func([]byte) error { return nil })
	m.admit(nobody)
	nobody.Disconnect(replication.Reason{})
	require.Equal(t, []string{"Ada joins", "Ada is now Bessie", "Bessie left"}, m.tape.waiting)
}

func TestAReplayInText(t *testing.T) {
	file, text := recordedFile(t)
	requireFits(t, text)
	require.Contains(t, text, "Recorded 4.0 s in ")
	require.Contains(t, text, "-replay")

	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"-replay", file, "-headless"}, &stdout, &stderr))
	requireFits(t, stdout.String())
	all := strings.Join(strings.Fields(stdout.String()), " ")
	require.Contains(t, all, "0:03.98, 240 ticks, ")
	require.Contains(t, all, "bots: 20")
	require.Contains(t, all, " Ada 1 joins")

	stdout.Reset()
	require.Equal(t, exitOK, run(t.Context(), []string{"-replay", file, "-http="}, &stdout, &stderr))
	requireFits(t, stdout.String())
	require.Contains(t, stdout.String(), "   0:01.0", "a line per second")
	require.Contains(t, stdout.String(), "Played ")
	require.Contains(t, stdout.String(), "0:03.98 of 0:03.98")
	require.Empty(t, stderr.String())
}

func TestAReplayEndsEarlyInOrder(t *testing.T) {
	file, _ := recordedFile(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(ctx, []string{"-replay", file, "-http="}, &stdout, &stderr))
	require.Contains(t, stdout.String(), "Played ")
	require.NotContains(t, stdout.String(), "0:03.98 of")
	require.Empty(t, stderr.String())
}

func TestAReplayOnATerminal(t *testing.T) {
	file, _ := recordedFile(t)
	r, err := openReplay(file)
	require.NoError(t, err)
	defer r.close()
	require.NoError(t, r.player.Seek(3*time.Second))
	p := r.picture("\x1b[2Jloss")
	p.damage = "it is cut off"
	for columns := 0; columns < 200; columns += 19 {
		for rows := 0; rows < 50; rows += 5 {
			lines := p.draw(columns, rows, style{unicode: true})
			require.Len(t, lines, rows)
			for _, line := range lines {
				require.LessOrEqual(t, width(line), columns)
				require.NotContains(t, line, "\x1b")
			}
		}
	}
	text := strings.Join(p.draw(80, 24, style{}), "\n")
	require.Contains(t, text, "0:03.00 of 0:03.98")
	require.Contains(t, text, "last mark: ?[2Jloss")
	require.Contains(t, text, "\n it is cut off")
	require.NotContains(t, p.plainRow(), "\x1b")
}

func TestWhatCannotBePlayedOrRecorded(t *testing.T) {
	directory := t.TempDir()
	file, _ := recordedFile(t)
	complete, err := os.ReadFile(file)
	require.NoError(t, err)
	write := func(name string, content []byte) string {
		path := filepath.Join(directory, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	var other bytes.Buffer
	w := ecs.NewWorld()
	recorder := recording.NewRecorder(replication.NewServer(&w, replication.NewSchema()), &other)
	require.NoError(t, recorder.Close())
	for path, want := range map[string]string{
		write("text", []byte("something else")): "text can't be played: the file is no recording",
		write("empty", nil):                     "empty can't be played: the file has 0 bytes: nothing was recorded",
		write("other", other.Bytes()):           "other can't be played: the file was recorded with another schema",
		directory:                               "it is no regular file",
		filepath.Join(directory, "none"):        "there is nothing to play",
	} {
		for _, flags := range [][]string{{"-open=false"}, {"-http="}, {"-headless"}} { // before a page opens
			var stdout, stderr bytes.Buffer
			require.Equal(t, exitFailed, run(t.Context(), append(flags, "-replay", path), &stdout, &stderr))
			require.Contains(t, strings.Join(strings.Fields(stderr.String()), " "), want)
			requireFits(t, stderr.String())
		}
	}

	cut := replayed(t, write("cut", complete[:len(complete)/2]))
	require.NotEmpty(t, cut.Damage)
	require.Positive(t, cut.Entities)
	require.Less(t, cut.Seconds, 3.)

	var stdout, stderr bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"-headless", "-record", filepath.Join(directory, "no", "file")}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "nothing can be recorded")
	if _, err := os.Stat("/dev/full"); err == nil {
		stdout.Reset()
		require.Equal(t, exitFailed, run(t.Context(), append([]string{"-record", "/dev/full"}, rough...), &stdout, &stderr))
		require.Contains(t, stdout.String(), "The recording /dev/full is not complete")
		require.Contains(t, stdout.String(), "All worlds became equal", "the match does not suffer")
	}
}
