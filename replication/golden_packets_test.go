//go:build !js && !wasip1

// Not built where there are no files.

package replication_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
)

// TestGoldenPackets compares the packets of a small game over a bad network with the files in
// docs/vectors, which also test decoders in other languages. GOLDEN=update rewrites the files,
// which is right only after a change of the wire format; then "python3 docs/decoder/check.py
// annotate" writes the bits of some packets beside them.
func TestGoldenPackets(t *testing.T) {
	for _, v := range goldenVariants {
		t.Run(v.file, func(t *testing.T) {
			file := filepath.Join(docsRoot, "docs", "vectors", v.file+".txt")
			got := playGolden(t, v)
			if os.Getenv("GOLDEN") == "update" {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, withoutAnnotations(string(data)), got)
		})
	}
}

// A goldenVariant is a game to play.
type goldenVariant struct {
	file       string
	coding     replication.Coding
	step       func(g *goldenGame, n int)
	ticks      int
	shown      int         // slots in the end
	leastApart int         // changes in a tick with which what was lost is sent in packets apart
	intervals  map[int]int // send intervals from some ticks on
}

var goldenVariants = []goldenVariant{
	{"packed", replication.Packed, (*goldenGame).step, goldenEnd, 39, config.LeastApart, nil},
	{"compact", replication.Compact, (*goldenGame).step, goldenEnd, 39, config.LeastApart, nil},
	{"apart", replication.Packed, (*goldenGame).dance, 50, 25, 4, nil},
	{"ranges", replication.Packed, (*goldenGame).march, 20, 101, 4, nil},
	{"intervals", replication.Packed, (*goldenGame).dance, 80, 25, config.LeastApart, map[int]int{0: 2, 24: 3, 48: 1, 60: 5}},
}

// withoutAnnotations removes the annotations that the decoder in docs/decoder wrote into a golden
// file.
func withoutAnnotations(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "  | ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// A goldenSession plays the game and records what arrives.
type goldenSession struct {
	t      *testing.T
	out    strings.Builder
	game   *goldenGame
	schema *replication.Schema
	server *replication.Server
	peer   *replication.Peer
	mirror ecs.World
	client *replication.Client

	sequence uint32 // of the next state packet
	down, up []goldenPacket
	truth    map[string][]goldenLine // the states at the server, by NetID and tick
	recorded map[goldenKey][]uint64  // codes of the latest of them
	ids      map[uint64]string       // the slots of live entities by their handle
	shown    map[uint32]string       // by slot
}

// A goldenPacket is in flight.
type goldenPacket struct {
	data           []byte
	tick, sequence uint32
	arrives        int
}

const (
	goldenNonce    = 2
	goldenWindow   = 32
	goldenTick     = 1<<32 - 20 // so that ticks wrap
	goldenSequence = 1<<16 - 9
)

func playGolden(t *testing.T, v goldenVariant) string {
	world := ecs.NewWorld()
	s := &goldenSession{
		t: t, schema: goldenSchema(), mirror: ecs.NewWorld(), game: &goldenGame{world: &world},
		truth: map[string][]goldenLine{}, ids: map[uint64]string{}, shown: map[uint32]string{},
	}
	s.server = replication.NewServer(&world, s.schema, replication.WithSeed(1), replication.WithMTU(200),
		replication.WithWindow(goldenWindow), replicationtest.FirstTick(goldenTick), replicationtest.FirstSequence(goldenSequence),
		config.ServerFunc(func(o *config.ServerOptions) { o.LeastApart = v.leastApart }))
	s.peer = s.server.Connect(s.sendDown, replication.WithCoding(v.coding))
	s.client = replication.NewClientWith(&s.mirror, s.schema, s.sendUp, replication.WithSeed(goldenNonce))
	s.writeHead(strings.ToLower(v.coding.String()))
	for n := range v.ticks {
		v.step(s.game, n)
		if interval := v.intervals[n]; interval > 0 {
			s.peer.SetSendInterval(interval)
		}
		seam.OfServer(s.server).Snap.Steady.Found = delta.Shift(n / 3 % 4) // of most packets; the game is too small to find one
		s.server.Replicate()
		s.record()
		s.arrive(n)
		require.NoError(t, s.client.Apply())
		s.answer(n)
	}
	require.True(t, s.client.Complete())
	require.Equal(t, v.coding, s.client.Coding())
	require.Len(t, s.shown, v.shown, "what is there in the end")
	return s.out.String()
}

func (s *goldenSession) writeHead(coding string) {
	fmt.Fprintf(&s.out, `# A session in the coding %s, as a client gets it. docs/decoder reads this file, and docs/decoder/README.md describes
# its format. Tests rewrite it; do not edit it.
coding %s
schema
`, coding, coding)
	for line := range strings.Lines(s.schema.Text()) {
		s.out.WriteString("  " + line)
	}
	fmt.Fprintf(&s.out, "fingerprint %#x\nnonce %d\n", s.schema.Fingerprint(), goldenNonce)
}

// writeWelcome writes the welcome and its fields.
func (s *goldenSession) writeWelcome(packet []byte) {
	at := packet[4:]
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	checked := binary.LittleEndian.AppendUint64(nil, s.schema.Fingerprint())
	checked = append(append(checked, at[12:20]...), 0) // packets to the client
	fmt.Fprintf(&s.out, "welcome %x\n  window %d\n  session %#x\n  tick %d\n  sequence %d\n  instance %#x\n  tickrate %d\n  key %#x\n",
		packet, goldenWindow, u64(at[12:]), u32(at[20:]), u32(at[24:]), u64(at[28:]), binary.LittleEndian.Uint16(at[36:]), crc32.Checksum(checked, crc32.MakeTable(crc32.Castagnoli)))
	s.sequence = u32(at[24:])
}

// sendDown is the network to the client: from the fourth tick on it loses every sixth packet,
// delays some and duplicates some.
func (s *goldenSession) sendDown(packet []byte) error {
	packet = bytes.Clone(packet)
	switch kind := packet[4] & 7; kind {
	case 1:
		s.writeWelcome(packet)
		return s.client.Receive(packet)
	case 3, 6:
	default:
		require.Failf(s.t, "unexpected", "packet of kind %d", kind)
	}
	n := int(s.server.Tick() - goldenTick)
	p := goldenPacket{packet, uint32(s.server.Tick()), s.sequence, n}
	s.sequence++
	if n > 3 {
		switch fate := s.game.next(12); {
		case fate < 2:
			s.writePacket(p, "lost")
			return nil
		case fate < 5:
			p.arrives += 1 + int(s.game.next(3))
		case fate == 5:
			s.down = append(s.down, p)
			p.arrives += 2
		}
	}
	s.down = append(s.down, p)
	return nil
}

// sendUp is the network to the server.
func (s *goldenSession) sendUp(packet []byte) error {
	n := int(s.server.Tick() - goldenTick)
	if n > 3 && s.game.next(5) == 0 {
		return nil
	}
	s.up = append(s.up, goldenPacket{data: bytes.Clone(packet), arrives: n + int(s.game.next(3))})
	return nil
}

// answer gives the server the packets that arrive in tick n.
func (s *goldenSession) answer(n int) {
	var later []goldenPacket
	for _, p := range s.up {
		if p.arrives <= n || n <= 3 {
			_ = s.peer.Receive(p.data) // old acks are errors
		} else {
			later = append(later, p)
		}
	}
	s.up = later
}

// arrive gives the client the packets that arrive in tick n, and records what it shows afterwards.
func (s *goldenSession) arrive(n int) {
	var later []goldenPacket
	packets := s.down
	s.down = nil
	for _, p := range packets {
		if p.arrives > n {
			later = append(later, p)
			continue
		}
		if err := s.client.Receive(p.data); err != nil {
			s.writePacket(p, "refused") // it arrived before
			continue
		}
		require.NoError(s.t, s.client.Apply())
		s.writePacket(p, "taken")
		s.writeChanges()
	}
	s.down = append(later, s.down...)
}

func (s *goldenSession) writePacket(p goldenPacket, fate string) {
	fmt.Fprintf(&s.out, "packet sequence %d tick %d %s\n  %x\n", p.sequence, p.tick, fate, p.data)
}

// writeChanges writes the slots that differ from those after the previous packet.
func (s *goldenSession) writeChanges() {
	now := s.showing()
	for _, slot := range slices.Sorted(maps.Keys(now)) {
		if now[slot] != s.shown[slot] {
			s.out.WriteString(now[slot])
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(s.shown)) {
		if now[slot] == "" {
			fmt.Fprintf(&s.out, "  slot %d empty\n", slot)
		}
	}
	s.shown = now
}

// showing returns what the client's world shows. References are those of the server at that tick,
// because their targets need not exist on the client.
func (s *goldenSession) showing() map[uint32]string {
	now := map[uint32]string{}
	if text := s.resources(&s.mirror); text != "" {
		now[0] = "  slot 0\n" + text
	}
	for id, e := range s.client.Entities() {
		tick, _ := s.client.StateTick(e)
		head := fmt.Sprintf("  slot %d generation %d tick %d\n", id.Slot, id.Generation, tick)
		truth, ok := s.truth[head]
		require.True(s.t, ok, "the server never had %s", head)
		lines := s.components(&s.mirror, e, s.codes)
		require.Len(s.t, lines, len(truth), head)
		var text strings.Builder
		for i, line := range lines {
			require.Equal(s.t, goldenReference.ReplaceAllString(truth[i].codes, "@"), goldenReference.ReplaceAllString(line.codes, "@"), head)
			fmt.Fprintf(&text, "    %s = %s\n", strings.ReplaceAll(truth[i].codes, "@", ""), line.values)
		}
		now[id.Slot] = head + text.String()
	}
	return now
}

var goldenReference = regexp.MustCompile(`@\S+`)

// record records the states of all entities of the server.
func (s *goldenSession) record() {
	filter := ecs.All(replication.ReplicatedID(s.game.world))
	var all []ecs.Entity
	for q := s.game.world.Query(&filter); q.Next(); {
		all = append(all, q.Entity())
	}
	for _, e := range all {
		id, ok := s.server.NetID(e)
		require.True(s.t, ok)
		s.ids[s.reference(e)] = fmt.Sprintf("@%d/%d", id.Slot, id.Generation)
	}
	before := s.recorded
	s.recorded = map[goldenKey][]uint64{}
	codes := func(k goldenKey, v any) []uint64 {
		if old := before[k]; old != nil {
			s.recorded[k] = s.schema.CodesAfter(v, old, nil)
		} else {
			s.recorded[k] = s.schema.Codes(v, nil)
		}
		return s.recorded[k]
	}
	for _, e := range all {
		id, _ := s.server.NetID(e)
		head := fmt.Sprintf("  slot %d generation %d tick %d\n", id.Slot, id.Generation, s.server.Tick())
		s.truth[head] = s.components(s.game.world, e, codes)
	}
	clear(s.ids) // those that are gone may not stay
}
