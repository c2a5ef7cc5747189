package main

import (
	"encoding/csv"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// state is the codes of entities by number and component.
type state map[uint64]map[string][]uint64

// observer returns the codes of a server's world, as it records them.
type observer struct {
	world     *ecs.World
	server    *replication.Server
	schema    *replication.Schema
	types     map[string]reflect.Type
	resources map[string]reflect.Type
	targets   map[string][]int // which codes refer to entities
	last      state
}

func (o *observer) codes(name string, value any, number uint64) []uint64 {
	if last, ok := o.last[number][name]; ok {
		return o.schema.CodesAfter(value, last, []uint64{})
	}
	return o.schema.Codes(value, []uint64{})
}

func (o *observer) observe() state {
	now := state{}
	filter := ecs.All(ecs.ComponentID[replication.Replicated](o.world))
	query := o.world.Query(&filter)
	for query.Next() {
		id, ok := o.server.NetID(query.Entity())
		if !ok {
			continue
		}
		number, has := uint64(id.Slot)<<16|uint64(id.Generation), map[string][]uint64{}
		for name, typ := range o.types {
			if at := ecs.TypeID(o.world, typ); o.world.Has(query.Entity(), at) {
				has[name] = o.codes(name, reflect.NewAt(typ, o.world.Get(query.Entity(), at)).Interface(), number)
			}
		}
		if len(has) > 0 {
			now[number] = has
		}
	}
	for name, typ := range o.resources {
		if at := ecs.ResourceTypeID(o.world, typ); o.world.Resources().Has(at) {
			if now[resourceEntity] == nil {
				now[resourceEntity] = map[string][]uint64{}
			}
			now[resourceEntity][name] = o.codes(name, o.world.Resources().Get(at), resourceEntity)
		}
	}
	o.last = now
	return o.translated(now)
}

// translated returns a state with numbers in place of references.
func (o *observer) translated(s state) state {
	numbers := map[uint64]uint64{}
	filter := ecs.All(ecs.ComponentID[replication.Replicated](o.world))
	query := o.world.Query(&filter)
	for query.Next() {
		if id, ok := o.server.NetID(query.Entity()); ok {
			numbers[uint64(query.Entity().ID())|uint64(query.Entity().Generation())<<32] = numberOf(id)
		}
	}
	all := state{}
	for number, has := range s {
		all[number] = maps.Clone(has)
		for name, codes := range has {
			codes = slices.Clone(codes)
			for _, i := range o.targets[name] {
				codes[i] = numbers[codes[i]]
			}
			all[number][name] = codes
		}
	}
	return all
}

// requireCodes requires that -codes prints the truth of every tick, of those components that it knows, and each row only
// if it differs from the one before.
func requireCodes(t *testing.T, path string, truth []state) {
	t.Helper()
	code, stdout, stderr := invoke(t, "", "-codes", path)
	require.Equal(t, exitOK, code, stderr)
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	require.NoError(t, err)
	known := map[string]bool{}
	for _, s := range truth {
		for _, has := range s {
			for name := range has {
				known[name] = true
			}
		}
	}
	require.Greater(t, len(known), 7)
	head, rows := rows[0], rows[1:]
	last, now := map[string]string{}, state{}
	for tick, want := range truth {
		for ; len(rows) > 0 && rows[0][0] == strconv.Itoa(tick); rows = rows[1:] {
			row := strings.Join(rows[0][headColumns:], ",")
			if tags := strings.Trim(row, ",") == ""; !tags {
				require.NotEqual(t, last[rows[0][1]], row, "tick %d: a row without a change", tick)
			}
			last[rows[0][1]] = row
			number, err := strconv.ParseUint(rows[0][1], 10, 64)
			require.NoError(t, err)
			delete(now, number)
			for i, cell := range rows[0] {
				dot := strings.LastIndex(head[i], ".")
				if i < headColumns || cell == "" || !known[head[i][:dot]] {
					continue
				}
				if now[number] == nil {
					now[number] = map[string][]uint64{}
				}
				code, err := strconv.ParseUint(cell, 10, 64)
				require.NoError(t, err)
				now[number][head[i][:dot]] = append(now[number][head[i][:dot]], code)
			}
		}
		for number := range want {
			if !reflect.DeepEqual(want[number], now[number]) { // complete worlds are too much to print
				require.Equal(t, want[number], now[number], "tick %d, entity %d", tick, number)
			}
		}
		require.Len(t, now, len(want), "tick %d", tick)
	}
	require.Empty(t, rows)
}

func writeRecording(t *testing.T, data []byte) (path string) {
	path = filepath.Join(t.TempDir(), "match.rec")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}
