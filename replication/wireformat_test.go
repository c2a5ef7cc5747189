//go:build !js && !wasip1

// Not built where there is no go command to run: the blocks of pages are found in docs_test.go.

package replication_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// TestWireFormatShowsRealPackets compares the packets in docs/wire-format.md, the first of which
// the page explains bit by bit. GOLDEN=update rewrites the packets; the explanation has to be
// updated by hand.
func TestWireFormatShowsRealPackets(t *testing.T) {
	page := filepath.Join(docsRoot, "docs", "wire-format.md")
	packets := wireFormatPackets(t)
	if os.Getenv("GOLDEN") == "update" {
		data, err := os.ReadFile(page)
		require.NoError(t, err)
		n := -1
		data = hexBlock.ReplaceAllFunc(data, func([]byte) []byte {
			n++
			return []byte("```hex\n" + packets[n] + "```\n")
		})
		require.NoError(t, os.WriteFile(page, data, 0o644))
	}
	blocks, _ := docBlocks(t, page)
	var shown []string
	for _, b := range blocks {
		if b.language == "hex" {
			shown = append(shown, b.text)
		}
	}
	require.Equal(t, packets, shown)
}

var hexBlock = regexp.MustCompile("(?ms)^```hex\n.*?^```\n")

// wireFormatPackets returns the blocks of packets of docs/wire-format.md, in its order.
func wireFormatPackets(t *testing.T) []string {
	compact := replication.WithCoding(replication.Compact)
	move := func(p *vectorPosition) { p.X += 2.5 }
	spin := func(p *vectorSpin) { p.Q[0], p.Q[1], p.Q[2], p.Q[3] = p.Q[0]+1, p.Q[1]-2, p.Q[2]+3, 16 }
	other := ecs.NewWorld()
	self := other.NewEntity() // the first entity is the same in all worlds
	n := 0
	setLeader := func(p *vectorLeader) {
		p.Of = ecs.Entity{}
		if n++; n > 3 && n < 6 {
			p.Of = self
		}
	}
	names := []string{"", "", "Ann", "Anna", "Hanna", "Hänna", "Hänna"}
	play := func(p *vectorPlayer) {
		p.tick++
		p.Name = names[p.tick]
		p.Kills += uint32(p.tick) % 3
		p.Keys ^= 1 << (p.tick % 5)
		p.Hour = (p.Hour + 9) % 24
	}
	ticks := 0
	herd := func(i int, p *vectorPosition) {
		if i == 0 {
			ticks++
		}
		if ticks%(i+1) == 0 {
			p.X, p.Y = p.X+2.5, p.Y+float32(ticks*ticks%7)
		}
	}
	return []string{
		docPackets(t, "Position", 6, move),
		docPackets(t, "Spin", 9, spin),
		docPackets(t, "Leader", 6, setLeader),
		docPackets(t, "Player", 6, play),
		docBody(t),
		docLetters(t),
		docMessages(t), docStamps(t),
		herdPackets(t, "Position", 4, 12, herd, compact),
		docPackets(t, "Spin", 9, spin, compact),
		docPackets(t, "Player", 6, play, compact),
	}
}

type vectorSpot struct {
	X uint8 `repl:"linear"`
}

type vectorHealth struct {
	HP uint8 `repl:"range=0:100"`
}

// docBody returns the state packets of a game with one entity of two components, from tick 3 on.
func docBody(t *testing.T) string {
	schema := replication.NewSchema()
	replication.Register[vectorSpot](schema, replication.Name("Spot"))
	replication.Register[vectorHealth](schema, replication.Name("Health"))
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	x := newDocWire(t, &world, &mirror, schema, nil)
	x.shows = func(from string, packet []byte) bool {
		return from == "server" && packet[4]&7 == 3 && x.server.Tick() > 2
	}
	spot, health := ecs.ComponentID[vectorSpot](&world), ecs.ComponentID[vectorHealth](&world)
	entity := world.NewEntity(spot, health, replication.ReplicatedID(&world))
	(*vectorHealth)(world.Get(entity, health)).HP = 100
	for _, at := range []uint8{10, 20, 30, 41, 50, 60, 71} {
		(*vectorSpot)(world.Get(entity, spot)).X = at
		if at == 60 {
			(*vectorHealth)(world.Get(entity, health)).HP = 90
		}
		x.tick(nil)
	}
	return x.packets.String()
}

type vectorHit struct {
	Damage uint8 `repl:"range=0:100"`
}

type vectorMove struct {
	Turn int8 `repl:"range=-1:1"`
}

type vectorLetter struct {
	Text string `repl:"max=100"`
}

// docLetters returns the packets of messages of a game in which both ends send a letter in the
// third tick, the server's in two fragments.
func docLetters(t *testing.T) string {
	schema := replication.NewSchema()
	replication.RegisterMessage[vectorLetter](schema, replication.Name("Letter"))
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	x := newDocWire(t, &world, &mirror, schema, []replication.ServerOption{replication.WithMTU(64)})
	x.shows = isMessagePacket
	var got []string
	replication.OnServerMessage(x.client, func(m vectorLetter) { got = append(got, m.Text) })
	replication.OnClientMessage(x.server, func(_ *replication.Peer, m vectorLetter) { got = append(got, m.Text) })
	long := strings.Repeat("a", 60)
	for tick := range 4 {
		if tick == 2 {
			require.NoError(t, replication.SendToClient(x.peer, vectorLetter{long}))
			require.NoError(t, replication.SendToServer(x.client, vectorLetter{"hi"}))
		}
		x.tick(nil)
	}
	require.Equal(t, []string{long, "hi"}, got)
	return x.packets.String()
}

// A docWire is a server and a client without a network, and a list of the packets that the page
// shows.
type docWire struct {
	t        *testing.T
	server   *replication.Server
	peer     *replication.Peer
	client   *replication.Client
	down, up [][]byte
	shows    func(from string, packet []byte) bool // nil: all
	packets  strings.Builder
}

func newDocWire(t *testing.T, world, mirror *ecs.World, schema *replication.Schema, ofServer []replication.ServerOption, ofPeer ...replication.PeerOption) *docWire {
	x := &docWire{t: t}
	keep := func(from string, list *[][]byte) func(packet []byte) error {
		return func(packet []byte) error {
			if x.shows == nil || x.shows(from, packet) {
				fmt.Fprintf(&x.packets, "%s %x\n", from, packet)
			}
			*list = append(*list, bytes.Clone(packet))
			return nil
		}
	}
	x.server = replication.NewServer(world, schema, append(ofServer, replication.WithSeed(1))...)
	x.peer = x.server.Connect(keep("server", &x.down), ofPeer...)
	x.client = replication.NewClientWith(mirror, schema, keep("client", &x.up), replication.WithSeed(2))
	return x
}

// isMessagePacket reports whether a packet is of messages or inputs.
func isMessagePacket(_ string, packet []byte) bool { return packet[4]&7 == 5 || packet[4]&7 == 6 }

// tick plays a tick. play runs on the client after it received the packets.
func (x *docWire) tick(play func()) {
	x.server.Replicate()
	for ; len(x.down) > 0; x.down = x.down[1:] {
		require.NoError(x.t, x.client.Receive(x.down[0]))
	}
	if play != nil {
		play()
	}
	require.NoError(x.t, x.client.Apply())
	for ; len(x.up) > 0; x.up = x.up[1:] {
		require.NoError(x.t, x.peer.Receive(x.up[0]))
	}
}

// docMessages returns the packets of messages and inputs of a game in which an entity spawns in the
// fourth tick.
func docMessages(t *testing.T) string {
	schema := replication.NewSchema()
	replication.Register[vectorPosition](schema, replication.Name("Position"))
	replication.RegisterMessage[vectorHit](schema, replication.Name("Hit"))
	replication.RegisterInput[vectorMove](schema, replication.Name("Move"))
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	x := newDocWire(t, &world, &mirror, schema, nil)
	x.shows = isMessagePacket
	got := 0
	replication.OnServerMessage(x.client, func(vectorHit) { got++ })
	replication.OnClientMessage(x.server, func(*replication.Peer, vectorHit) { got++ })
	for tick := range 5 {
		if tick == 3 {
			world.NewEntity(ecs.ComponentID[vectorPosition](&world), replication.ReplicatedID(&world))
			require.NoError(t, replication.SendToClient(x.peer, vectorHit{Damage: 25}))
			require.NoError(t, replication.SendToServer(x.client, vectorHit{Damage: 3}))
		}
		x.tick(func() {
			if tick >= 2 {
				require.NoError(t, replication.SetInput(x.client, x.server.Tick()+2, vectorMove{Turn: int8(tick % 2)}))
			}
		})
	}
	require.Equal(t, 2, got)
	return x.packets.String()
}

// docStamps returns the packets of inputs with stamps of a game: those of ticks 2 to 4, and one with a reference.
func docStamps(t *testing.T) string {
	schema := replication.NewSchema()
	replication.RegisterInput[vectorMove](schema, replication.Name("Move"))
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	x := newDocWire(t, &world, &mirror, schema, nil)
	const ticks = 48
	tick := 0
	x.shows = func(_ string, packet []byte) bool { return packet[4]&7 == 6 && (tick < 5 || tick == ticks-1) }
	for ; tick < ticks; tick++ {
		x.tick(func() {
			if tick < 2 {
				return
			}
			shown := wire.Stamp{Tick: x.server.Tick() - 3, Part: uint8(20 + 3*tick%16), Precision: 6, Valid: true}
			seam.OfClient(x.client).Messages.Shown = shown
			require.NoError(t, replication.SetInput(x.client, x.server.Tick()+2, vectorMove{Turn: int8(tick % 2)}))
		})
	}
	return x.packets.String()
}

type vectorPosition struct {
	X, Y float32 `repl:"range=-1000:1000,step=0.01"`
}

type vectorSpin struct {
	Q [4]float32 `repl:"quat,bits=9"`
}

type vectorLeader struct {
	Of ecs.Entity
}

type vectorPlayer struct {
	Name  string `repl:"max=12"`
	Kills uint32 `repl:"counter"`
	Keys  uint8  `repl:"flags=5"`
	Hour  uint8  `repl:"range=0:23,wrap"`
	tick  int
}

// docPackets returns the packets of a game with one entity of one component, over a perfect
// network.
func docPackets[T any](t *testing.T, name string, ticks int, change func(*T), opts ...replication.PeerOption) string {
	return herdPackets(t, name, 1, ticks, func(_ int, c *T) { change(c) }, opts...)
}

// herdPackets is docPackets for several entities.
func herdPackets[T any](t *testing.T, name string, entities, ticks int, change func(int, *T), opts ...replication.PeerOption) string {
	schema := replication.NewSchema()
	replication.Register[T](schema, replication.Name(name))
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	x := newDocWire(t, &world, &mirror, schema, nil, opts...)
	id := ecs.ComponentID[T](&world)
	var herd []ecs.Entity
	for range entities {
		herd = append(herd, world.NewEntity(id, replication.ReplicatedID(&world)))
	}
	for range ticks {
		for i, entity := range herd {
			change(i, (*T)(world.Get(entity, id)))
		}
		x.tick(nil)
	}
	return x.packets.String()
}
