//go:build !js && !wasip1

// Not built where there are no files.

package replication_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

type (
	restPosition struct {
		X, Y float32 `repl:"range=-1000:1000,step=0.01"`
	}
	restMessage struct{ N uint8 }
	restMove    struct {
		X, Y int8    `repl:"range=-1:1"`
		Aim  float32 `repl:"angle,bits=10"`
	}
)

// TestGuideStatesTheCostOfAnIdleWorld measures bytes per second of packets, each way, when nothing
// changes in the world. The guide shows the same table.
func TestGuideStatesTheCostOfAnIdleWorld(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	rates := []int{60, 30, 20}
	var table strings.Builder
	table.WriteString("| bytes per second to the client / from it |")
	for _, rate := range rates {
		fmt.Fprintf(&table, " %d Hz |", rate)
	}
	table.WriteString("\n|---|" + strings.Repeat("---:|", len(rates)) + "\n")
	for _, row := range []struct {
		name            string
		messages, input bool
		give            func(tick uint32) (restMove, bool)
	}{
		{name: "components only"},
		{name: "with message types, none sent", messages: true},
		{name: "with an input type, none given", input: true, give: func(uint32) (restMove, bool) { return restMove{}, false }},
		{name: "the same input in every tick", input: true, give: func(uint32) (restMove, bool) { return restMove{X: 1}, true }},
		{name: "another input in every tick", input: true, give: func(tick uint32) (restMove, bool) {
			return restMove{X: int8(tick%3) - 1, Aim: float32(tick)}, true
		}},
	} {
		fmt.Fprintf(&table, "| %s |", row.name)
		for _, rate := range rates {
			down, up := atRest(t, rate, 1, row.messages, row.input, row.give)
			slowDown, slowUp := atRest(t, rate, 3, row.messages, row.input, row.give)
			require.InDelta(t, down, slowDown, 1, "a send interval changes it")
			require.InDelta(t, up, slowUp, 2, "a send interval changes it")
			fmt.Fprintf(&table, " %d / %d |", down, up)
		}
		table.WriteString("\n")
	}
	require.True(t, pageContains(t, "connections.md", table.String()), "the table should be:\n%s", table.String())
}

// pageContains reports whether a page contains this text.
func pageContains(t *testing.T, page, text string) bool {
	data, err := os.ReadFile(filepath.Join(docsRoot, "docs", page))
	require.NoError(t, err)
	return strings.Contains(string(data), text)
}

// atRest returns bytes per second to the client and from it, with 50 ms of latency each way.
func atRest(t *testing.T, rate, interval int, messages, input bool, give func(tick uint32) (restMove, bool)) (down, up int) {
	schema := replication.NewSchema()
	replication.Register[restPosition](schema)
	if messages {
		replication.RegisterMessage[restMessage](schema)
	}
	if input {
		replication.RegisterInput[restMove](schema)
	}
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	link := netsim.NewLink(1, netsim.Config{Latency: netsim.Ticks(50*time.Millisecond, float64(rate))})
	server := replication.NewServer(&world, schema, replication.WithSeed(1), replication.WithTickRate(rate))
	peer := server.Connect(func(packet []byte) error { down += len(packet); return link.Down.Send(packet) })
	peer.SetSendInterval(interval)
	client := replication.NewClientWith(&mirror, schema, func(packet []byte) error { up += len(packet); return link.Up.Send(packet) },
		replication.WithSeed(1))
	position := ecs.ComponentID[restPosition](&world)
	for range 100 {
		world.NewEntity(position, replication.ReplicatedID(&world))
	}
	const warm, seconds = 600, 60
	for tick := range warm + seconds*rate {
		if tick == warm {
			require.True(t, client.Complete())
			down, up = 0, 0
		}
		if input && peer.Connected() {
			_, _ = replication.Input[restMove](peer, server.Tick()+1)
		}
		server.Replicate()
		link.Step()
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
		if give != nil && client.Connected() {
			if move, ok := give(uint32(client.InputTick())); ok {
				_ = replication.SetInput(client, client.InputTick(), move)
			}
		}
		require.NoError(t, client.Apply())
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
	}
	return (down + seconds/2) / seconds, (up + seconds/2) / seconds
}

// TestGuideStatesTheComponentLimit: Arche limits the components of a world, whoever registers them,
// to fewer than its own constant states.
func TestGuideStatesTheComponentLimit(t *testing.T) {
	const most = 240
	require.True(t, pageContains(t, "registering-components.md", fmt.Sprintf("more than %d component types in a world", most)))
	if ecs.MaskTotalBits < most {
		return // a build with the tag tiny has even fewer
	}
	require.NotPanics(t, func() { playWideWorld(t, most-1) })
	require.Panics(t, func() { playWideWorld(t, most) }, "Arche allows more now: update the guide")
}

// TestGuideChecksForAResourceBeforeGettingIt: Arche panics if there is no such resource.
func TestGuideChecksForAResourceBeforeGettingIt(t *testing.T) {
	world := ecs.NewWorld()
	require.False(t, world.Resources().Has(ecs.ResourceID[restMove](&world)))
	require.Panics(t, func() { ecs.GetResource[restMove](&world) }, "it is nil by now: the guide need not ask")
}

// TestListsNameEveryPage: the README and the front page of the guide link all pages.
func TestListsNameEveryPage(t *testing.T) {
	front, err := os.ReadFile(filepath.Join(docsRoot, "README.md"))
	require.NoError(t, err)
	_, list, found := strings.Cut(string(front), "\n## Documentation\n")
	require.True(t, found)
	pages, err := filepath.Glob(filepath.Join(docsRoot, "docs", "*.md"))
	require.NoError(t, err)
	for _, page := range pages {
		name := filepath.Base(page)
		require.True(t, strings.Contains(list, "(docs/"+name+")"), "README.md does not list %s", name)
		require.True(t, name == "README.md" || pageContains(t, "README.md", "("+name+")"), "docs/README.md does not list %s", name)
	}
}

// playWideWorld replicates an entity with the last of n components. The server's world has the
// marker in addition.
func playWideWorld(t *testing.T, n int) {
	schema := replication.NewSchema()
	var types []reflect.Type
	for i := range n {
		types = append(types, reflect.ArrayOf(i%16+1, reflect.ArrayOf(i/16+1, reflect.TypeFor[uint8]())))
		replication.RegisterType(schema, types[i], replication.Name(fmt.Sprint("C", i)))
	}
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	var down, up [][]byte
	server := replication.NewServer(&world, schema)
	peer := server.Connect(func(packet []byte) error { down = append(down, slices.Clone(packet)); return nil })
	client := replication.NewClientWith(&mirror, schema, func(packet []byte) error { up = append(up, slices.Clone(packet)); return nil })
	world.NewEntity(ecs.TypeID(&world, types[n-1]), replication.ReplicatedID(&world))
	for range 20 {
		server.Replicate()
		for ; len(down) > 0; down = down[1:] {
			_ = client.Receive(down[0])
		}
		require.NoError(t, client.Apply())
		for ; len(up) > 0; up = up[1:] {
			_ = peer.Receive(up[0])
		}
	}
	require.EqualValues(t, 1, client.Stats().Spawns)
}
