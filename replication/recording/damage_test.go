package recording_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// open returns a player of a file that may be damaged.
func open(file []byte, opts ...recording.Option) (*recording.Player, *ecs.World, error) {
	w := ecs.NewWorld()
	p, err := recording.NewPlayer(&w, newSchema(), bytes.NewReader(file), int64(len(file)), opts...)
	return p, &w, err
}

// requireTrue plays a file, and requires that what it shows is true. It returns the number of ticks.
func requireTrue(t *testing.T, p *recording.Player, w *ecs.World, truth []map[replication.NetID]state) (ticks int) {
	schema := newSchema()
	for !p.Ended() {
		require.NoError(t, p.Step())
		if p.Client().Status() == replication.StatusConnecting {
			continue // nothing can be played
		}
		ticks++
		n := int((p.Position()*rate + time.Second/2) / time.Second)
		require.Equal(t, truth[n], shown(w, p.Client(), schema), "tick %d", n)
	}
	return ticks
}

// TestCutFiles: a file that was cut off anywhere plays up to its last complete row, or the error is a sentence.
func TestCutFiles(t *testing.T) {
	t.Parallel()
	file, truth := record(t, 300)
	random, played, refused := rand.New(rand.NewPCG(3, 4)), 0, 0
	for i := range replicationtest.TicksOf(10_000, 300) {
		n := random.IntN(len(file))
		p, w, err := open(file[:n])
		if err != nil {
			require.Contains(t, err.Error(), "recording: ")
			refused++
			continue
		}
		require.Error(t, p.Damage())
		require.Contains(t, p.Damage().Error(), "recording: ")
		last := int((p.Duration()*rate + time.Second/2) / time.Second)
		if played++; i%50 == 0 {
			requireTrue(t, p, w, truth)
		} else {
			require.NoError(t, p.Seek(p.Duration()))
		}
		if last > 0 {
			require.Equal(t, truth[last], shown(w, p.Client(), newSchema()), "cut at %d of %d", n, len(file))
		}
	}
	require.Greater(t, played, 10*refused)
}

// TestFlippedBits: whatever a file with a wrong bit shows is true.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	file, truth := record(t, 300)
	random, damaged, ticks, n := rand.New(rand.NewPCG(5, 6)), 0, 0, replicationtest.TicksOf(10_000, 300)
	for i := range n {
		bad := bytes.Clone(file)
		bit := random.IntN(8 * len(file))
		bad[bit/8] ^= 1 << (bit % 8)
		p, w, err := open(bad)
		if err != nil {
			require.Contains(t, err.Error(), "recording: ")
			damaged++
			continue
		}
		if i%50 == 0 {
			ticks += requireTrue(t, p, w, truth)
		} else { // where the bit is, about
			at := p.Duration() * time.Duration(bit/8) / time.Duration(len(file))
			require.NoError(t, p.Seek(max(at-time.Second/2, 0)))
			for n := 0; n < rate && (n == 0 || p.Damage() == nil); n++ {
				require.NoError(t, p.Step())
			}
			tick := int((p.Position()*rate + time.Second/2) / time.Second)
			require.Equal(t, truth[tick], shown(w, p.Client(), newSchema()), "bit %d", bit)
		}
		if p.Damage() != nil {
			damaged++
		}
	}
	require.Greater(t, damaged, n*9/10)
	require.Greater(t, ticks, n/50*200, "the segments without the bit are played")
}

// TestAHole: what is behind bytes that are missing is played, in files of servers; in those of clients from the next
// session on.
func TestAHole(t *testing.T) {
	t.Parallel()
	file, truth := record(t, 600)
	for _, end := range []int{len(file), len(file) - 30} { // with and without an index
		bad := slices.Concat(file[:len(file)/2], file[len(file)/2+700:end])
		p, w, err := open(bad)
		require.NoError(t, err)
		require.ErrorContains(t, p.Damage(), " is missing: at offset ")
		require.Greater(t, requireTrue(t, p, w, truth), 450)
		require.ErrorContains(t, p.Damage(), " is missing: at offset ")
		require.Greater(t, p.Duration(), at(580))
	}
	bad := slices.Clone(file[:len(file)-30])
	for i := range 40 { // more holes than a scan goes over
		bad[len(bad)*(i+1)/41] ^= 0xff
	}
	p, w, err := open(bad)
	require.NoError(t, err)
	require.ErrorContains(t, p.Damage(), "recording: ")
	requireTrue(t, p, w, truth)
}

// TestOtherFiles are refused with a sentence that names the reason.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	file, _ := record(t, 60)
	future := bytes.Clone(file)
	future[8]++
	_, _, err := open([]byte("x"))
	require.ErrorContains(t, err, "is no recording")
	for reason, file := range map[string][]byte{
		"nothing was recorded": {}, "is no recording": []byte("PNG and other things"), "format is version 2": future,
		"header can't be read": file[:30],
	} {
		_, _, err := open(file)
		require.ErrorContains(t, err, reason)
	}
	w, other := ecs.NewWorld(), replication.NewSchema()
	replication.Register[purse](other)
	_, err = recording.NewPlayer(&w, other, bytes.NewReader(file), int64(len(file)))
	var differs *replication.SchemaError
	require.ErrorAs(t, err, &differs)
	require.EqualError(t, err, `recording: the file was recorded with another schema: line 2: the recording has "component `+
		`position", this program "component purse"; register what it was recorded with, which ReadInfo returns`)
	require.Contains(t, differs.Server, "position")
	_, err = recording.NewPlayer(&w, newSchema(), bytes.NewReader(file), int64(len(file))+9)
	require.NoError(t, err)
	p, _, err := open(file)
	require.NoError(t, err)
	w = ecs.NewWorld()
	for _, more := range []int64{1, 9, 1 << 40} { // than the file has
		q, err := recording.NewPlayer(&w, newSchema(), bytes.NewReader(file), int64(len(file))+more)
		require.NoError(t, err)
		require.Equal(t, p.Duration(), q.Duration())
		require.ErrorContains(t, q.Damage(), "recording: ")
	}
}

// TestWithoutIndex: a recorder that was not closed leaves everything but the index.
func TestWithoutIndex(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	p := newPlay(replicationtest.Seed(t), schema)
	w := &slow{}
	r := recording.NewRecorder(p.server, w)
	var truth []map[replication.NetID]state
	for range 500 {
		p.step(t)
		truth = append(truth, p.truth(schema))
	}
	require.True(t, r.Mark("the end"))
	require.Eventually(t, func() bool { return w.len() == int(r.Stats().Bytes) }, 10*time.Second, time.Millisecond)
	player, world, err := open(w.bytes())
	require.NoError(t, err)
	require.ErrorContains(t, player.Damage(), "no index")
	require.Equal(t, []recording.Mark{{At: at(499), Text: "the end"}}, player.Marks())
	require.Equal(t, 500, requireTrue(t, player, world, truth))
	require.NoError(t, r.Close())
}

// slow is a writer that can be stopped.
type slow struct {
	mu   sync.Mutex
	file bytes.Buffer
	stop sync.Mutex
	fail error
}

func (s *slow) Write(b []byte) (int, error) {
	s.stop.Lock()
	defer s.stop.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return 0, s.fail
	}
	return s.file.Write(b)
}

func (s *slow) len() int { s.mu.Lock(); defer s.mu.Unlock(); return s.file.Len() }

func (s *slow) bytes() []byte { s.mu.Lock(); defer s.mu.Unlock(); return bytes.Clone(s.file.Bytes()) }

// TestASlowWriterIsNotWaitedFor: what does not fit into the queue is dropped and counted, and a new segment follows.
func TestASlowWriterIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	p := newPlay(replicationtest.Seed(t), schema)
	w := &slow{}
	r := recording.NewRecorder(p.server, w, recording.WithQueue(64<<10))
	var truth []map[replication.NetID]state
	play := func(ticks int) {
		for range ticks {
			p.step(t)
			truth = append(truth, p.truth(schema))
		}
	}
	play(300)
	w.stop.Lock()
	play(6000)
	dropped := r.Stats().Dropped
	require.Greater(t, dropped, uint64(100))
	w.stop.Unlock()
	require.Eventually(t, func() bool { return w.len() == int(r.Stats().Bytes) }, 10*time.Second, time.Millisecond)
	play(300)
	require.LessOrEqual(t, r.Stats().Dropped, dropped+1)
	require.NoError(t, r.Close())

	player, world, err := open(w.bytes())
	require.NoError(t, err)
	require.NoError(t, player.Damage())
	require.Equal(t, at(len(truth)-1), player.Duration())
	require.NoError(t, player.Seek(player.Duration()-at(200)))
	require.Equal(t, truth[len(truth)-201], shown(world, player.Client(), schema))
	require.NoError(t, player.Seek(0))
	for range len(truth) { // the gap is left out
		require.NoError(t, player.Step())
	}
	require.Equal(t, truth[len(truth)-1], shown(world, player.Client(), schema))
}

// TestAWriterThatFails ends the recording; its error is not swallowed.
func TestAWriterThatFails(t *testing.T) {
	t.Parallel()
	p := newPlay(1, newSchema())
	w := &slow{fail: errors.New("the disk is full")}
	r := recording.NewRecorder(p.server, w)
	for range 100 {
		p.step(t)
		runtime.Gosched()
	}
	require.Eventually(t, func() bool { return r.Err() != nil }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, r.Err(), w.fail)
	p.step(t)
	require.ErrorIs(t, r.Close(), w.fail)
	p.step(t)
	require.False(t, r.Mark("late"))
}

// TestAGameThatAsksForTheError learns of it before the recorder does, which then has no peers that are sent more and
// more.
func TestAGameThatAsksForTheError(t *testing.T) {
	t.Parallel()
	p := newPlay(1, newSchema())
	w := &slow{fail: errors.New("the disk is full")}
	r := recording.NewRecorder(p.server, w)
	require.Eventually(t, func() bool { return r.Err() != nil }, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, recording.Peers(r))
	p.step(t)
	require.Zero(t, recording.Peers(r))
	require.ErrorIs(t, r.Close(), w.fail)
}

// TestAServerThatEnds before its recorder leaves a complete file.
func TestAServerThatEnds(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	p := newPlay(1, schema)
	var b bytes.Buffer
	r := recording.NewRecorder(p.server, &b)
	var truth []map[replication.NetID]state
	for range 200 {
		p.step(t)
		truth = append(truth, p.truth(schema))
	}
	p.server.Close()
	require.Panics(t, p.server.Replicate)
	require.NoError(t, r.Close())
	player, world, err := open(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, 200, requireTrue(t, player, world, truth))
	require.NoError(t, player.Damage())
}

// TestMemoryIsBounded: a file can't make the player read more at once than WithMemory, whatever lengths it has.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	file, _ := record(t, 4000, recording.WithSegment(time.Hour))
	require.Greater(t, len(file), 64<<10)
	p, _, err := open(file, recording.WithMemory(64<<10))
	require.NoError(t, err)
	require.NoError(t, p.Seek(time.Second))
	require.ErrorContains(t, p.Damage(), "WithMemory")
	long := append(bytes.Clone(file[:9]), 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)
	_, err = recording.NewPlayer(new(ecs.World), newSchema(), endless{long}, 1<<60)
	require.ErrorContains(t, err, "WithMemory")
}

// endless is a file of zeros behind some bytes.
type endless struct{ start []byte }

func (e endless) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	if at < int64(len(e.start)) {
		copy(b, e.start[at:])
	}
	return len(b), nil
}

var _ io.ReaderAt = endless{}

// FuzzPlayer: no file panics, loops or takes much memory.
func FuzzPlayer(f *testing.F) {
	p := newPlay(1, newSchema())
	var b bytes.Buffer
	r := recording.NewRecorder(p.server, &b, recording.WithSegment(100*time.Millisecond), recording.WithMeta("level", "one"))
	for i := range 20 {
		p.world.NewEntity(p.ids...)
		p.server.Replicate()
		if i == 10 {
			r.Mark("ten")
		}
	}
	if err := r.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()-100])
	f.Fuzz(func(_ *testing.T, file []byte) {
		p, _, err := open(recording.Repair(file), recording.WithMemory(1<<20))
		if err != nil {
			return
		}
		_ = p.Seek(p.Duration() / 2)
		for range 10 {
			_ = p.Step()
		}
		_ = p.Seek(0)
		p.SetSpeed(16)
		for range 20 {
			_ = p.Frame(time.Second / 10)
		}
		_ = p.Back()
	})
}
