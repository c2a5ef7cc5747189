package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Misuse of resources, with its panic messages.

func TestResourcesThatAreNoPointers(t *testing.T) {
	for name, x := range map[string]struct {
		resource any
		want     string
	}{
		"value":   {rsWeather{}, "replication: the world's resource replication.rsWeather is a value of type replication.rsWeather: add a pointer to one, as Arche asks for"},
		"nil":     {(*rsWeather)(nil), "replication: the world's resource replication.rsWeather is a nil pointer: add a pointer to one, as Arche asks for"},
		"another": {new(tHealth), "replication: the world's resource replication.rsWeather is a value of type *replication.tHealth: add a pointer to one, as Arche asks for"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, at := range []string{"server", "client"} {
				y := connectedWire(t, resourceSchema())
				if at == "server" {
					y.world.Resources().Add(ecs.ResourceID[rsWeather](y.world), x.resource)
					require.PanicsWithValue(t, x.want, func() { y.server.Replicate() })
					y.world.Resources().Remove(ecs.ResourceID[rsWeather](y.world))
				} else {
					y.mirror.Resources().Add(ecs.ResourceID[rsWeather](y.mirror), x.resource)
					y.rounds(2) // not read in these ticks
					setResource(y.world, rsWeather{Rain: 1})
					y.deliver(y.replicate()...)
					require.PanicsWithValue(t, x.want, func() { _ = y.client.Apply() })
					continue
				}
				setResource(y.world, rsWeather{Rain: 1})
				y.rounds(3)
				require.EqualValues(t, 1, resourceOf[rsWeather](y.mirror).Rain, "it goes on")
			}
		})
	}
}

type rsHuge [4096]uint64

func TestResourcesThatAreTooLarge(t *testing.T) {
	s := NewSchema()
	RegisterResource[rsHuge](s)
	w := ecs.NewWorld()
	require.NotPanics(t, func() { NewServer(&w, s) }, "32 KiB fit")
	s = NewSchema()
	RegisterResource[rsHuge](s)
	RegisterResource[schemaTeam](s)
	require.PanicsWithValue(t, "replication: the resources of the schema take more than 32 KiB: replicate some as components of an entity that is there for them",
		func() { NewServer(&w, s) })
}

func TestGridsRefuseResources(t *testing.T) {
	w := ecs.NewWorld()
	s := NewServer(&w, resourceSchema())
	require.PanicsWithValue(t, `replication: a grid over "rsWeather.Wind[0]": that is a field of a resource, and no entity has it`,
		func() { s.NewGrid(10, "rsWeather.Wind[0]") })
}

func TestResourcesHaveNoConditions(t *testing.T) {
	require.PanicsWithValue(t, "replication: Match: a resource has no condition, since every peer is sent it: use a component of an entity", func() {
		RegisterResource[struct{ Round uint8 }](NewSchema(), Name("Match"), OwnerOnly())
	})
}
