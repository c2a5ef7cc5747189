package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

type Position struct {
	X, Y float32 `repl:"range=-1000:1000,step=0.01"`
}

type Turret struct {
	Aim    [4]float32 `repl:"quat,bits=9"`
	Target ecs.Entity
}

type Health struct {
	Points uint8 `repl:"range=0:100"`
}

type Name struct {
	Text string `repl:"max=12"`
}

type Purse struct{ Gold uint16 }

type Match struct {
	Round uint8
	Clock float64 `repl:"range=0:3600,step=0.1"`
}

type Hit struct {
	Who    ecs.Entity
	Damage uint8
}

func explainedSchema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[Position](s)
	replication.Register[Turret](s)
	replication.Register[Health](s)
	replication.Register[Name](s)
	replication.Register[Purse](s, replication.OwnerOnly())
	replication.RegisterResource[Match](s)
	replication.RegisterMessage[Hit](s)
	return s
}

// playMatch records a short match, and what a client received of it over a bad network.
func playMatch(t *testing.T, ticks int, server, client *bytes.Buffer) {
	schema, w := explainedSchema(), ecs.NewWorld()
	srv := replication.NewServer(&w, schema, replication.WithSeed(1), replication.WithTickRate(60))
	match := &Match{Round: 1}
	ecs.AddResource(&w, match)
	position, turret := ecs.ComponentID[Position](&w), ecs.ComponentID[Turret](&w)
	health, name, purse := ecs.ComponentID[Health](&w), ecs.ComponentID[Name](&w), ecs.ComponentID[Purse](&w)
	tank := w.NewEntity(position, turret, health, name, purse, ecs.ComponentID[replication.Replicated](&w))
	rock := w.NewEntity(position, ecs.ComponentID[replication.Replicated](&w))
	(*Name)(w.Get(tank, name)).Text = "Ada"
	*(*Turret)(w.Get(tank, turret)) = Turret{[4]float32{0, 0, 0, 1}, rock}
	(*Health)(w.Get(tank, health)).Points = 100
	(*Position)(w.Get(rock, position)).X = 40

	link := netsim.NewLink(1, netsim.Config{Latency: 2, Loss: 0.2})
	peer := srv.Connect(link.Down.Send)
	srv.SetOwner(tank, peer)
	mirror := ecs.NewWorld()
	c := replication.NewClient(&mirror, explainedSchema(), replication.WithSeed(1))
	c.SetSend(link.Up.Send)
	sr := recording.NewRecorder(srv, server, recording.WithMeta("level", "harbour"))
	cr := recording.NewClientRecorder(c, client)
	for n := range ticks {
		p := (*Position)(w.Get(tank, position))
		p.X += 0.25
		p.Y += float32(n%4) / 100
		match.Clock += 1. / 60
		switch {
		case n%20 == 12:
			(*Health)(w.Get(tank, health)).Points -= 7
			(*Purse)(w.Get(tank, purse)).Gold += 250
			require.NoError(t, replication.SendToAll(srv, Hit{tank, 7}))
			sr.Mark("the shot was not seen")
		case n == 14:
			(*Turret)(w.Get(tank, turret)).Aim = [4]float32{0, 0.6, 0, 0.8}
			w.Remove(tank, name)
		case n == 16:
			w.RemoveEntity(rock)
		}
		srv.Replicate()
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		link.Down.Receive(func(packet []byte) { _ = c.Receive(packet) })
		require.NoError(t, c.Frame(time.Second/60))
	}
	require.NoError(t, sr.Close())
	require.NoError(t, cr.Close())
}

// inMatch plays a match, in a folder of its own that has the recordings server.rec and client.rec.
func inMatch(t *testing.T, ticks int) {
	var server, client bytes.Buffer
	playMatch(t, ticks, &server, &client)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("server.rec", server.Bytes(), 0o644))
	require.NoError(t, os.WriteFile("client.rec", client.Bytes(), 0o644))
}

func runExplain(args ...string) (code int, stdout, stderr string) {
	var out, complaint bytes.Buffer
	code = command(append([]string{"-explain"}, args...), nil, &out, &complaint)
	return code, out.String(), complaint.String()
}

// TestExplainGolden compares what is printed with texts that people have read. GOLDEN=update rewrites them.
func TestExplainGolden(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	require.NoError(t, err)
	inMatch(t, 70)
	for file, args := range map[string][]string{
		"explain-overview.txt": {"server.rec", "-from", "0:00.983"},
		"explain-server.txt":   {"server.rec", "-ticks", "18"},
		"explain-client.txt":   {"client.rec", "-from", "250ms", "-ticks", "8"},
		"explain-entity.txt":   {"server.rec", "-from", "0:00.2", "-span", "0:00.45", "-entity", "1.1"},
		"explain-rest.txt":     {"server.rec", "-from", "0:00.183", "-span", "0.08", "-entity", "2.1"},
	} {
		code, got, complaint := runExplain(args...)
		require.Equal(t, exitOK, code, complaint)
		path := filepath.Join(testdata, file)
		if os.Getenv("GOLDEN") == "update" {
			require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), got, file)
	}
}

// TestExplainChooses: the flags choose the part that is printed, and times that were printed find the packets again.
func TestExplainChooses(t *testing.T) {
	inMatch(t, 300)
	times := regexp.MustCompile(`(?m)^0:0(\d\.\d{3})(?:  tick| ) +(\d+)  state`)
	printed := func(args ...string) (found [][]string) {
		code, out, complaint := runExplain(args...)
		require.Equal(t, exitOK, code, complaint)
		require.Less(t, len(out), 1<<20)
		return times.FindAllStringSubmatch(out, -1)
	}
	all := printed("server.rec", "-span", "1h")
	require.Greater(t, len(all), 295)
	require.Len(t, printed("server.rec"), 60, "a second by default")
	for _, file := range []string{"server.rec", "client.rec"} {
		all := printed(file, "-span", "1h")
		for i, line := range all {
			if i%37 == 5 {
				for _, from := range []string{line[1], line[1] + "s", "0:0" + line[1]} {
					require.Equal(t, line[1:], printed(file, "-from", from, "-ticks", "3")[0][1:], file)
				}
			}
		}
	}
	require.Len(t, printed("server.rec", "-from", "1.5s", "-ticks", "7"), 7)
	require.Len(t, printed("server.rec", "-from", "4.9s", "-span", "1h"), 6)
	require.Empty(t, printed("client.rec", "-span", "1ms"), "it had not joined")
	require.Len(t, printed("server.rec", "-ticks", "1000"), len(all))
	require.Len(t, printed("server.rec", "-span", "1h", "-entity", "1"), len(all))
	require.Len(t, printed("server.rec", "-span", "1h", "-entity", "2"), 2, "it came and went")
	require.Len(t, printed("server.rec", "-span", "1h", "-entity", "2.1"), 2)
	require.Empty(t, printed("server.rec", "-span", "1h", "-entity", "2.2"))
	require.Empty(t, printed("server.rec", "-span", "1h", "-entity", "0.1"), "resources are no entity")
}

// TestExplainIsAnOverview of one line for each packet, unless a flag asks for all of them.
func TestExplainIsAnOverview(t *testing.T) {
	inMatch(t, 300)
	code, out, complaint := runExplain("server.rec", "-from", "0:01.500")
	require.Equal(t, exitOK, code, complaint)
	listed, sums, found := strings.Cut(out, " in all:\n")
	require.True(t, found)
	require.Less(t, strings.Count(listed, "\n"), 80)
	require.Contains(t, listed, "-from 0:01.500 -ticks 1 prints all of a packet")
	require.Contains(t, listed, "0:02.000          welcome")
	require.Contains(t, listed, "  the recording starts anew\n")
	require.Contains(t, sums, "Position.Y")
	for _, args := range [][]string{{"-ticks", "60"}, {"-entity", "1"}} {
		_, out, _ := runExplain(append([]string{"server.rec", "-from", "0:01.500"}, args...)...)
		require.Greater(t, strings.Count(out, "\n"), 300, args)
		require.Contains(t, out, "as predicted")
	}
}

// TestExplainEntitiesAtRest: of an entity in no packet, the values are printed as they were at the end of the time.
func TestExplainEntitiesAtRest(t *testing.T) {
	inMatch(t, 300)
	explained := func(args ...string) string {
		code, out, complaint := runExplain(append([]string{"server.rec"}, args...)...)
		require.Equal(t, exitOK, code, complaint)
		_, out, _ = strings.Cut(out, "\n\n")
		return out
	}
	rest := "entity %s is in none of 6 packets from 0:00.183 to 0:00.250; unchanged at least since tick 0, " +
		"its values are:\n  Position  X 40, Y 0\n"
	for _, entity := range []string{"2", "2.1"} {
		// It is removed with the packet that follows.
		require.Equal(t, fmt.Sprintf(rest, entity), explained("-from", "0:00.183", "-span", "0.08", "-entity", entity))
		require.Equal(t, "there is no entity "+entity+" from 0:01.000 to 0:01.083\n",
			explained("-from", "1", "-span", "0.1", "-entity", entity))
	}
	require.Equal(t, "entity 0 is in none of 2 packets from 0:01.560 to 0:01.583; the values of resources:\n"+
		"  Match  Round 1, Clock 1.6\n", explained("-from", "1.56", "-span", "25ms", "-entity", "0"))
	for _, entity := range []string{"9999", "1.2"} {
		require.Equal(t, "there is no entity "+entity+" from 0:01.000 to 0:01.000\n",
			explained("-from", "1", "-ticks", "1", "-entity", entity))
	}
	require.Equal(t, "no packets from 0:00.001 to 0:00.003\n", explained("-from", "0.001", "-span", "2ms", "-entity", "1"))
}

// TestExplainComplains in a sentence.
func TestExplainComplains(t *testing.T) {
	inMatch(t, 300)
	require.NoError(t, os.WriteFile("other.rec", []byte("no recording"), 0o644))
	for want, args := range map[string][]string{
		"leave out -in\n":                        {"server.rec", "-in", "x.csv"},
		"leave out -json\n":                      {"server.rec", "-json"},
		"leave out -loss, -rtt\n":                {"server.rec", "-rtt", "3", "-loss", "0.5"},
		"the recording ends at 0:04.983":         {"server.rec", "-from", "1:00"},
		"a time is 3:12.016":                     {"server.rec", "-from", "1:60"},
		"SLOT.GENERATION":                        {"server.rec", "-entity", "1.1.1"},
		"choose one":                             {"server.rec", "-ticks", "1", "-span", "1s"},
		"-from is -1s, but must not be negative": {"server.rec", "-from", "-1s"},
		"-span is 0s, but must be more than 0":   {"server.rec", "-span", "0s"},
		"-ticks is -1":                           {"server.rec", "-ticks", "-1"},
		"no such file":                           {"none.rec"},
		"is no recording":                        {"other.rec"},
	} {
		code, out, complaint := runExplain(args...)
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, out)
		require.Contains(t, complaint, want)
	}
}

// TestExplainDamagedFiles prints what is intact, and then a sentence.
func TestExplainDamagedFiles(t *testing.T) {
	inMatch(t, 300)
	file, err := os.ReadFile("server.rec")
	require.NoError(t, err)
	_, intact, _ := runExplain("server.rec", "-span", "1h")
	for n := len(file); n >= 0; n -= 1 + len(file)/40 {
		require.NoError(t, os.WriteFile("server.rec", file[:n], 0o644))
		code, out, complaint := runExplain("server.rec", "-span", "1h")
		if n < len(file) {
			require.Equal(t, exitUsage, code)
			require.Regexp(t, "^trace: recording: .*\n$", complaint)
		}
		require.LessOrEqual(t, len(out), len(intact))
	}
	damaged := bytes.Clone(file)
	damaged[len(file)/2] ^= 1
	require.NoError(t, os.WriteFile("server.rec", damaged, 0o644))
	code, out, complaint := runExplain("server.rec", "-span", "1h")
	require.Equal(t, exitUsage, code)
	require.Contains(t, complaint, "trace: recording: ")
	require.Contains(t, out, "0:00.000       0  state ")
	require.Contains(t, out, "     299  state ", "what follows the damage")
}

// TestTheGuideShowsWhatIsPrinted: what docs/recordings.md shows is of the golden texts.
func TestTheGuideShowsWhatIsPrinted(t *testing.T) {
	guide, err := os.ReadFile("../../docs/recordings.md")
	require.NoError(t, err)
	for file, begin := range map[string]string{"server": "0:00", "overview": "time"} {
		printed, err := os.ReadFile("testdata/explain-" + file + ".txt")
		require.NoError(t, err)
		sample := regexp.MustCompile("(?s)```\n(" + begin + ".*?)```").FindSubmatch(guide)
		require.NotNil(t, sample, file)
		require.Contains(t, string(printed), "\n"+string(sample[1]))
	}
}

// TestExplainRefusedPackets: the client's error is printed, and the head up to which a packet was read.
func TestExplainRefusedPackets(t *testing.T) {
	var b bytes.Buffer
	x := explainer{w: bufio.NewWriter(&b), cfg: config{ticks: 1}, to: time.Second, sum: newPacketSum("")}
	x.packet(&recording.Packet{
		Kind: "state", Tick: 70, Sequence: 7, Bytes: 8, Err: replication.ErrMissingBaseline,
		Parts: []recording.PacketPart{
			{What: "header", Slot: -1, Bits: 48},
			{What: "end", Slot: 3, Against: []replication.Tick{60}, Detail: "the entry of slot 3 was read up to its baselines", Bits: 16},
		},
	})
	require.NoError(t, x.w.Flush())
	require.Equal(t, `
0:00.000  tick 70  state packet 7 in Packed  8 bytes = 64 bits
  NOT TAKEN: `+replication.ErrMissingBaseline.Error()+`
  header            48
  end               16  against tick 60, 10 old, the entry of slot 3 was read up to its baselines
  sum               64  packet 64, heads 0, masks 0, fields 0
`, b.String())
}
