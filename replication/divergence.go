package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/apply"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Divergence is a field of a replica that differs from what the server has.
type Divergence struct {
	NetID  NetID      // zero for a resource
	Entity ecs.Entity // of the client's world
	Tick   Tick       // of the server's state that the replica shows

	Component string
	Field     string // its path inside the component, "" if the component is itself a number

	// Got is what the world holds, Want what it should hold. Both are of the field's type, or [ecs.Entity] for
	// references and targets of relations.
	Got, Want any
}

// Name returns the component and field, "Position.X".
func (d *Divergence) Name() string {
	if d == nil {
		return ""
	}
	if d.Field == "" || d.Field[0] == '[' {
		return d.Component + d.Field
	}
	return d.Component + "." + d.Field
}

// String describes the divergence in a sentence. It is "nothing differs" if d is nil.
func (d *Divergence) String() string {
	if d == nil {
		return "nothing differs"
	}
	what, want := d.Name(), d.Want
	if d.Component == "" {
		what = "the generation"
	}
	if want == nil {
		want = "something else"
	}
	of := "the resources"
	if d.NetID != (NetID{}) {
		of = fmt.Sprintf("the entity in slot %d, generation %d,", d.NetID.Slot, d.NetID.Generation)
	}
	return fmt.Sprintf("%s of %s is %v, and at the server's tick %d it was %v", what, of, d.Got, d.Tick, want)
}

// publicDivergence returns the public form of a divergence.
func publicDivergence(d *apply.Divergence) *Divergence {
	if d == nil {
		return nil
	}
	public := func(v any) any {
		if id, ok := v.(wire.NetID); ok {
			return NetID(id)
		}
		return v
	}
	return &Divergence{NetID(d.NetID), d.Entity, d.Tick, d.Component, d.Field, public(d.Got), public(d.Want)}
}
