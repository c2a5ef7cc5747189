package replication

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// shadow is a copy of a client's world that is built by hooks alone.
type shadow struct {
	entities map[ecs.Entity]map[string]string // the components of each, by name
	read     []func(w *ecs.World, e ecs.Entity, into map[string]string)
	bad      string
}

// newShadow returns a shadow of the components of a client that shadowComponent selects.
func newShadow(c *Client, components ...func(s *shadow, c *Client)) *shadow {
	s := &shadow{entities: map[ecs.Entity]map[string]string{}}
	c.OnSpawn(func(e ecs.Entity) {
		if s.entities[e] != nil {
			s.bad = fmt.Sprintf("%v spawned twice", e)
		}
		s.entities[e] = map[string]string{}
	})
	c.OnDespawn(func(e ecs.Entity) {
		if len(s.entities[e]) > 0 || s.entities[e] == nil {
			s.bad = fmt.Sprintf("%v despawned with %v", e, s.entities[e])
		}
		delete(s.entities, e)
	})
	for _, component := range components {
		component(s, c)
	}
	return s
}

func shadowComponent[T any](s *shadow, c *Client) {
	name := reflect.TypeFor[T]().Name()
	text := func(v *T) string { return fmt.Sprintf("%+v", *v) }
	OnAdd(c, func(e ecs.Entity, v *T) {
		if _, ok := s.entities[e][name]; ok || s.entities[e] == nil {
			s.bad = fmt.Sprintf("%v got %s twice, or before it came", e, name)
			return
		}
		s.entities[e][name] = text(v)
	})
	OnChange(c, func(e ecs.Entity, before, now *T) {
		if was, ok := s.entities[e][name]; !ok || was != text(before) || was == text(now) {
			s.bad = fmt.Sprintf("%v: %s changed from %v to %v, but was %s", e, name, *before, *now, was)
			return
		}
		s.entities[e][name] = text(now)
	})
	OnRemove(c, func(e ecs.Entity, v *T) {
		if was, ok := s.entities[e][name]; !ok || was != text(v) {
			s.bad = fmt.Sprintf("%v lost %s %v, but had %s", e, name, *v, was)
			return
		}
		delete(s.entities[e], name)
	})
	s.read = append(s.read, func(w *ecs.World, e ecs.Entity, into map[string]string) {
		if id := ecs.ComponentID[T](w); w.Has(e, id) {
			into[name] = text((*T)(w.Get(e, id)))
		}
	})
}

// requireEqual compares the shadow with what an end shows after a tick.
func (s *shadow) requireEqual(t *testing.T, e *end, tick int) {
	t.Helper()
	require.Empty(t, s.bad, "tick %d", tick)
	n := 0
	for id, entity := range e.client.Entities() {
		n++
		want := map[string]string{}
		for _, read := range s.read {
			read(e.world, entity, want)
		}
		require.Equal(t, want, s.entities[entity], "tick %d, %v", tick, id)
	}
	require.Len(t, s.entities, n, "tick %d", tick)
}
