package predict

import (
	"fmt"
	"reflect"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/mlange-42/arche/ecs"
)

// A Predictor simulates ahead of the server what a client's player controls. [Attach] makes one. It belongs to the
// goroutine of its client.
type Predictor struct {
	client  *replication.Client
	inside  *seam.Client
	sim     *simulation
	drawing drawing
	watch   receive.Watch
	session int // of the watch, when it was last looked at
	resets  int // of the world
	settled replication.Tick
}

// Attach makes a client predict what its player controls, with the model that the server has, for as long as the client
// lives: what has [Mine], and what that has spawned. read returns what the player does. [replication.Client.Frame]
// calls it for each new tick, in place of the function of [replication.OnInput], and simulates the tick at once. After
// Frame, the components that are a [State] of the model have the values to be drawn, which are smoothed.
//
// Panics if the model is of another schema than the client's, if read is nil, or if the client has a Predictor already,
// or another client of the same world.
func Attach[I any](client *replication.Client, m *Model[I], read func() I) *Predictor {
	if m == nil || read == nil {
		panic("predict: Attach needs a model, from NewModel, and a function that returns what the player does")
	}
	m.mustExist("Attach")
	inside := seam.OfClient(client)
	m.suits("Attach", inside.Schema)
	if inside.Apply.View.Withheld.On {
		panic("predict: Attach: this client has a Predictor already: attach one per client and keep it")
	}
	taken := archeutil.ResourceOf[taken](inside.Apply.View.World)
	if taken.on {
		panic("predict: Attach: another client predicts in this world: Close it, or give each a world of its own")
	}
	taken.on = true
	p := &Predictor{client: client, inside: inside}
	in := newInputs(m, inside.Schema.Input)
	controls := newState[I]()
	controls.tolerance = 0
	p.sim = newSimulation(p, &m.model, controls, in)
	p.drawing.sim = p.sim
	replication.OnInput(client, func(tick replication.Tick) I {
		input := read()
		in.give(tick, input)
		return input
	})
	p.watch.Keep = depth
	inside.Recv.Watches.Add(&p.watch)
	*inside.Attached = append(*inside.Attached, p.frame)
	*inside.Ending = append(*inside.Ending, func() { taken.on = false; p.sim.drop(!inside.Apply.View.Intact()) })
	return p
}

// taken is a resource of worlds in which a client predicts.
type taken struct{ on bool }

// suits panics if the model is not for a schema.
func (m *model) suits(name string, s *schema.Schema) {
	if numberOf(s, reflect.TypeFor[Born]()) < 0 {
		panic("predict: " + name + ": the schema is not the one that the model was made with: give NewModel the same")
	}
	if s.Input == nil || s.Input.Typ != m.input {
		panic(fmt.Sprintf("predict: %s: %v is not the schema's input: register it with RegisterInput", name, m.input))
	}
	for _, st := range m.states {
		n := numberOf(s, st.typ)
		if n < 0 {
			panic(fmt.Sprintf("predict: State[%v] is not in the schema: register it", st.typ))
		}
		switch comp := &s.Components[n]; {
		case comp.Resource:
			panic(fmt.Sprintf("predict: State[%s] is a resource: only components can be predicted", comp.Name))
		case comp.Once || comp.Every > 1:
			panic(fmt.Sprintf("predict: State[%s] is registered with Once or Every: what the client knows is out of "+
				"date and can't be compared", comp.Name))
		case comp.Targeted():
			panic(fmt.Sprintf("predict: State[%s] is a relation: use a field of type ecs.Entity", comp.Name))
		case pointsAnywhere(comp.Typ):
			panic(fmt.Sprintf("predict: State[%s] has memory outside of the component, which copies share: "+
				"predict a component without slices, maps and pointers", comp.Name))
		}
	}
}

// pointsAnywhere reports whether copies of a type share memory.
func pointsAnywhere(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return pointsAnywhere(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if pointsAnywhere(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Chan, reflect.Func, reflect.Interface,
		reflect.UnsafePointer:
		return true
	}
	return false
}

// frame brings the simulation up to date. [replication.Client.Frame] calls it.
func (p *Predictor) frame(dt time.Duration) {
	s := p.sim
	if p.watch.Sessions != p.session || p.inside.Apply.Resets != p.resets {
		s.drop(p.inside.Apply.Resets != p.resets)
		p.drawing.drop()
		p.session, p.resets = p.watch.Sessions, p.inside.Apply.Resets
	}
	if p.client.Status() != replication.StatusConnected || !p.inside.Messages.InputDelay.Known {
		return // what is drawn stays
	}
	p.inside.Messages.GiveInputs()
	calls := p.inside.Apply.Calls
	defer calls.Leave(calls.Ask()) // for the functions of the user
	settled := p.inside.Recv.Settled.Tick
	arrived := len(p.watch.Slots) > 0 || settled != p.settled
	p.settled = settled
	p.watch.Empty(&p.inside.Recv.Replicas)
	s.run.Seconds = 1 / float64(p.client.TickRate())
	at := p.client.PredictionTime()
	s.proceed(p.client.InputTick(), at, arrived, &p.drawing)
	p.drawing.draw(at, dt)
	for _, fn := range p.inside.Apply.Drawn {
		fn()
	}
	s.effects.flush(s, at)
}

// Stats returns the counters. Its list is valid until the next call.
func (p *Predictor) Stats() Stats {
	p.mustExist()
	return readStats(p.sim)
}

func (p *Predictor) simulated() ecs.ID { return p.sim.ids.predicted }

func (p *Predictor) spawn(n name, ids []ecs.ID) ecs.Entity { return p.sim.spawn(n, ids) }

func (p *Predictor) despawn(e ecs.Entity) { p.sim.despawn(e) }

func (p *Predictor) predictor() *Predictor { return p }

func (p *Predictor) identity(e ecs.Entity) uint64 {
	return identityOf(p.sim.world, p.sim.ids.born, e, p.client.NetID)
}

func (p *Predictor) mustExist() {
	if p == nil || p.client == nil {
		panic("predict: there is no Predictor: Attach makes one")
	}
}
