package replication

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/filter"
	"github.com/stretchr/testify/require"
)

// refusal calls a function and returns its panic message, or "". A panic that is no sentence of
// this package fails the test.
func refusal(t testing.TB, call func(), what string, args ...any) (sentence string) {
	t.Helper()
	defer func() {
		t.Helper()
		r := recover()
		if r == nil {
			return
		}
		sentence, _ = r.(string)
		require.True(t, strings.HasPrefix(sentence, "replication: "), "%s: no sentence: %v", fmt.Sprintf(what, args...), r)
	}()
	call()
	return ""
}

// misused is a server and a client with one of everything.
type misused struct {
	*fixture
	entity ecs.Entity
	set    *EntitySet
	group  *Group
	grid   *Grid
}

func newMisused(t testing.TB) *misused {
	x := &misused{fixture: connectedWire(t, messageSchema())}
	x.entity = x.spawn(ecs.ComponentID[tHealth](x.world))
	x.set, x.group = x.server.NewEntitySet(), x.server.NewGroup()
	x.grid = x.server.NewGrid(1, "tPosition.X")
	x.set.Add(x.entity)
	x.rounds(3)
	return x
}

// value returns a sensible argument of a type.
func (x *misused) value(t reflect.Type) reflect.Value {
	known := []any{x.server, x.client, x.peer, x.set, x.group, x.entity, "tHealth.HP", 1, uint32(1), 1.5, float32(1.5), true}
	for _, v := range known {
		if reflect.TypeOf(v) == t {
			return reflect.ValueOf(v)
		}
	}
	switch t.Kind() {
	case reflect.Func:
		return reflect.MakeFunc(t, func([]reflect.Value) (results []reflect.Value) {
			for i := range t.NumOut() {
				results = append(results, reflect.Zero(t.Out(i)))
			}
			return results
		})
	case reflect.Interface: // a component
		if t.NumMethod() == 0 {
			return reflect.ValueOf(tHealth{})
		}
	}
	return reflect.Zero(t)
}

// calls calls a method with sensible and with zero arguments, and returns the panic messages.
func (x *misused) calls(t testing.TB, receiver reflect.Value, method reflect.Method, of string) (refusals []string) {
	for _, zero := range []bool{false, true} {
		args := []reflect.Value{receiver}
		for i := 1; i < method.Type.NumIn(); i++ {
			in := method.Type.In(i)
			variadic := method.Type.IsVariadic() && i == method.Type.NumIn()-1
			if variadic {
				in = in.Elem()
			}
			switch {
			case zero:
				args = append(args, reflect.Zero(in))
			case !variadic || !isNilable(in):
				args = append(args, x.value(in))
			}
		}
		refusals = append(refusals, refusal(t, func() { method.Func.Call(args) }, "%s.%s, zero arguments %v", of, method.Name, zero))
	}
	return refusals
}

func isNilable(t reflect.Type) bool { return t.Kind() == reflect.Func || t.Kind() == reflect.Interface }

// TestNoMethodPanicsWithoutASentence calls every exported method of every exported type with nil
// and zero receivers, and with good ones before and after everything was closed, with good and with
// zero arguments.
func TestNoMethodPanicsWithoutASentence(t *testing.T) {
	types := []any{
		&Server{}, &Client{}, &Peer{}, &EntitySet{}, &Group{}, &Grid{}, &Schema{}, &Replica{}, &Replicated{}, &Divergence{},
		&DisconnectError{}, &SchemaError{}, &FieldStats{}, &Reason{}, &Interest{}, &NetID{}, &CodecField{}, &ClientStats{},
		&PeerStats{}, &ServerStats{}, new(Coding), new(Remote), new(ReasonCode), new(Status), &Time{},
	}
	made := map[string]bool{"Server": true, "Client": true, "Peer": true, "EntitySet": true, "Group": true} // made by functions only
	public := map[string]bool{}
	for _, file := range parsePackage(t, token.NewFileSet()) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				public[nameOf(f)] = true
			}
		}
	}
	listed := map[string]bool{}
	for _, zero := range types {
		of := reflect.TypeOf(zero)
		name := of.Elem().Name()
		listed[name] = true
		for i := range of.NumMethod() {
			method := of.Method(i)
			if !public[name+"."+method.Name] {
				continue // of the tests
			}
			x := newMisused(t)
			if _, byValue := of.Elem().MethodByName(method.Name); !byValue {
				for _, r := range x.calls(t, reflect.Zero(of), method, "(nil *"+name+")") {
					if made[name] || name == "Schema" {
						require.Contains(t, r, "replication: there is no ", "%s.%s", name, method.Name)
					}
				}
			}
			for _, r := range x.calls(t, reflect.New(of.Elem()), method, "zero "+name) {
				if made[name] {
					require.Contains(t, r, "replication: there is no ", "%s.%s", name, method.Name)
				}
			}
			receiver := func(x *misused) reflect.Value {
				if v := x.value(of); !v.IsNil() {
					return v
				}
				return reflect.ValueOf(zero)
			}
			x.calls(t, receiver(x), method, "good "+name)
			for _, end := range []func(x *misused){
				func(x *misused) { x.peer.Disconnect(Reason{}) },
				func(x *misused) { x.client.Disconnect(Reason{}) },
				func(x *misused) { x.server.Close(); x.client.Close() },
			} {
				x = newMisused(t)
				end(x)
				x.calls(t, receiver(x), method, "closed "+name)
			}
		}
	}
	for _, file := range parsePackage(t, token.NewFileSet()) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.IsExported() {
				of, _, _ := strings.Cut(nameOf(f), ".")
				require.True(t, listed[of] || !ast.IsExported(of), "%s has methods: list it", of)
			}
		}
	}
}

// TestNoFunctionPanicsWithoutASentence does the same for functions, which are listed because most
// are generic.
func TestNoFunctionPanicsWithoutASentence(t *testing.T) {
	type call struct {
		name    string
		refused string // part of the expected sentence; "": the call is allowed
		do      func(x *misused)
	}
	const noClient, noServer, noPeer, noSchema = "there is no client", "there is no server", "there is no peer", "there is no schema"
	nilOnClient := func(do func(c *Client)) func(x *misused) {
		return func(*misused) { do(nil) }
	}
	calls := []call{
		{"NewSchema", "", func(*misused) { NewSchema() }},
		{"NewServer", "needs a world", func(*misused) { NewServer(nil, NewSchema()) }},
		{"NewServer", "needs a world", func(*misused) { NewServer(&ecs.World{}, NewSchema()) }},
		{"NewServer", "needs a schema", func(x *misused) { NewServer(x.world, nil) }},
		{"NewServer", "NewServer: option 2 is nil", func(x *misused) { NewServer(x.world, NewSchema(), WithSeed(1), nil) }},
		{"NewServer", "", func(x *misused) { NewServer(x.world, &Schema{}) }},
		{"NewClient", "needs a world", func(*misused) { NewClient(nil, NewSchema()) }},
		{"NewClient", "needs a world", func(*misused) { NewClient(nil, nil) }},
		{"NewClient", "needs a world", func(*misused) { NewClient(&ecs.World{}, NewSchema()) }},
		{"NewClient", "needs a schema: make one with NewSchema", func(x *misused) { NewClient(x.mirror, nil) }},
		{"Client.SetSend", "needs a function that sends a packet to the server", func(x *misused) { NewClient(x.mirror, NewSchema()).SetSend(nil) }},
		{"NewClient", "NewClient: option 1 is nil", func(x *misused) { NewClient(x.mirror, NewSchema(), nil) }},
		{"NewClient", "", func(x *misused) { NewClient(x.mirror, &Schema{}) }},

		{"Register", noSchema, func(*misused) { Register[tHealth](nil) }},
		{"Register", "Register: option 1 is nil", func(*misused) { Register[tHealth](NewSchema(), nil) }},
		{"RegisterType", noSchema, func(*misused) { RegisterType(nil, reflect.TypeFor[tHealth]()) }},
		{"RegisterType", "not nil", func(*misused) { RegisterType(NewSchema(), nil) }},
		{"RegisterResource", noSchema, func(*misused) { RegisterResource[tHealth](nil) }},
		{"RegisterResource", "option 1 is nil", func(*misused) { RegisterResource[tHealth](NewSchema(), nil) }},
		{"RegisterResourceType", noSchema, func(*misused) { RegisterResourceType(nil, reflect.TypeFor[tHealth]()) }},
		{"RegisterResourceType", "not nil", func(*misused) { RegisterResourceType(NewSchema(), nil) }},
		{"RegisterMessage", noSchema, func(*misused) { RegisterMessage[mHit](nil) }},
		{"RegisterMessage", "RegisterMessage: option 2 is nil", func(*misused) { RegisterMessage[mHit](NewSchema(), Name("a"), nil) }},
		{"RegisterMessage", "RegisterMessage: option 1 is nil", func(*misused) { RegisterMessage[mHit](NewSchema(), TypeOption(nil)) }},
		{"RegisterInput", noSchema, func(*misused) { RegisterInput[mMove](nil) }},
		{"RegisterMessageType", noSchema, func(*misused) { RegisterMessageType(nil, reflect.TypeFor[mHit]()) }},
		{"RegisterMessageType", "not nil", func(*misused) { RegisterMessageType(NewSchema(), nil) }},
		{"RegisterInputType", noSchema, func(*misused) { RegisterInputType(nil, reflect.TypeFor[mMove]()) }},
		{"RegisterInputType", "not nil", func(*misused) { RegisterInputType(NewSchema(), nil) }},
		{"RegisterInput", "RegisterInput: option 1 is nil", func(*misused) { RegisterInput[mMove](NewSchema(), nil) }},
		{"Field", `unknown key "steps"`, func(*misused) { Register[tHealth](NewSchema(), Field("HP", "range=0:100,steps=1")) }},
		{"Field", "", func(*misused) { Field("HP", "") }},
		{"As", "needs two functions", func(*misused) { As[tHealth, tFrozen](nil, func(*tFrozen, *tHealth) {}) }},
		{"As", "needs two functions", func(*misused) { As[tHealth, tFrozen](func(*tHealth, *tFrozen) {}, nil) }},
		{"With", "needs a codec", func(*misused) { With[tHealth](nil) }},
		{"With", "needs a codec", func(*misused) { With[tHealth]((*misuseCodec)(nil)) }},
		{"OnlyFor", "needs a function", func(*misused) { OnlyFor(nil) }},
		{"Name", "", func(*misused) { Name("") }},
		{"Name", "use 1 to 256", func(*misused) { Register[tHealth](NewSchema(), Name("")) }},

		{"Expect", noClient, nilOnClient(func(c *Client) { Expect[tHealth](c, ecs.Entity{}, 0) })},
		{"Expect", noClient, func(*misused) { Expect[tHealth](&Client{}, ecs.Entity{}, 0) }},
		{"Expect", "the entity is dead", func(x *misused) { Expect[tHealth](x.client, ecs.Entity{}, 0) }},
		{"OnAdd", noClient, nilOnClient(func(c *Client) { OnAdd(c, func(ecs.Entity, *tHealth) {}) })},
		{"OnAdd", "OnAdd needs a function", func(x *misused) { OnAdd[tHealth](x.client, nil) }},
		{"OnChange", noClient, nilOnClient(func(c *Client) { OnChange(c, func(_ ecs.Entity, _, _ *tHealth) {}) })},
		{"OnChange", "OnChange needs a function", func(x *misused) { OnChange[tHealth](x.client, nil) }},
		{"OnRemove", noClient, nilOnClient(func(c *Client) { OnRemove(c, func(ecs.Entity, *tHealth) {}) })},
		{"OnRemove", "OnRemove needs a function", func(x *misused) { OnRemove[tHealth](x.client, nil) }},
		{"OnClientMessage", noServer, func(*misused) { OnClientMessage[mHit](nil, nil) }},
		{"OnClientMessage", noServer, func(*misused) { OnClientMessage(&Server{}, func(*Peer, mHit) {}) }},
		{"OnClientMessage", "", func(x *misused) { OnClientMessage[mHit](x.server, nil) }},
		{"OnSpawn", noClient, nilOnClient(func(c *Client) { OnSpawn(c, func(ecs.Entity) {}) })},
		{"OnSpawn", "needs a function", func(x *misused) { OnSpawn(x.client, nil) }},
		{"OnDespawn", noClient, nilOnClient(func(c *Client) { OnDespawn(c, func(ecs.Entity) {}) })},
		{"OnDespawn", "needs a function", func(x *misused) { OnDespawn(x.client, nil) }},
		{"OnServerMessage", noClient, nilOnClient(func(c *Client) { OnServerMessage[mHit](c, nil) })},
		{"OnServerMessage", noClient, func(*misused) { OnServerMessage(&Client{}, func(mHit) {}) }},
		{"OnServerMessage", "", func(x *misused) { OnServerMessage[mHit](x.client, nil) }},
		{"SendToClient", noPeer, func(*misused) { _ = SendToClient(nil, mHit{}) }},
		{"SendToClient", noPeer, func(*misused) { _ = SendToClient(&Peer{}, mHit{}) }},
		{"SendToAll", noServer, func(*misused) { _ = SendToAll(nil, mHit{}) }},
		{"SendToAll", noServer, func(*misused) { _ = SendToAll(&Server{}, mHit{}) }},
		{"SendToViewers", noServer, func(*misused) { _ = SendToViewers(nil, ecs.Entity{}, mHit{}) }},
		{"SendToViewers", "", func(x *misused) { _ = SendToViewers(x.server, ecs.Entity{}, mHit{}) }},
		{"SendToServer", noClient, nilOnClient(func(c *Client) { _ = SendToServer(c, mHit{}) })},
		{"SendToServer", noClient, func(*misused) { _ = SendToServer(&Client{}, mHit{}) }},
		{"OnInput", noClient, nilOnClient(func(c *Client) { OnInput(c, func(Tick) mMove { return mMove{} }) })},
		{"OnInput", noClient, func(*misused) { OnInput[mMove](&Client{}, nil) }},
		{"OnInput", "", func(x *misused) { OnInput[mMove](x.client, nil) }},
		{"SetInput", noClient, nilOnClient(func(c *Client) { _ = SetInput(c, 1, mMove{}) })},
		{"SetInput", noClient, func(*misused) { _ = SetInput(&Client{}, 1, mMove{}) }},
		{"Input", noPeer, func(*misused) { Input[mMove](nil, 1) }},
		{"Input", noPeer, func(*misused) { Input[mMove](&Peer{}, 1) }},

		{"WithSpawnComponents", "no component", func(x *misused) {
			w := ecs.NewWorld()
			NewClient(&w, NewSchema(), WithSpawnComponents(ecs.ComponentID[tBulk](x.world), ReplicatedID(x.world)))
		}},
		{"WithSpawnComponents", "", func(*misused) { WithSpawnComponents() }},
		{"HermiteType", "Hermite(0): use the way", func(*misused) { HermiteType(reflect.TypeFor[tHealth](), 0) }},
		{"Hermite", "Hermite(0): use the way", func(*misused) { Hermite[tHealth](0) }},
		{"WithTuning", "a Window of 7: use 8 to 120", func(*misused) { WithTuning(Tuning{Window: 7}) }},
		{"WithTuning", "a BaselineInterval of 3: use 1, 2, 4 or 8", func(*misused) { WithTuning(Tuning{BaselineInterval: 3}) }},
		{"WithTuning", "a SlotRest of -1ns: use 0, or 1ms to 10s", func(*misused) { WithTuning(Tuning{SlotRest: -1}) }},
		{"WithSlotRest", "use 0, or 1ms to 10s", func(*misused) { WithSlotRest(-1) }},
		{"WithSlotRest", "a SlotRest of 60ns: use 0, or 1ms to 10s", func(*misused) { WithSlotRest(60) }},
		{"WithSlotRest", "use 0, or 1ms to 10s", func(*misused) { WithSlotRest(10*time.Second + 1) }},
		{"WithMarker", "", func(x *misused) { NewServer(x.world, NewSchema(), WithMarker[Replicated]()) }},
	}
	for _, option := range []any{ // options that take numbers, or nothing
		Every, Priority, Once, Newest, Snap, OwnerOnly, ExceptOwner, Unreliable, Immediate, WithCoding, WithoutCompact, WithMTU, WithWindow,
		WithSeed, WithoutChecksum, WithTickRate, WithBaselineInterval, WithWorkers, WithTimeout, WithSlotRest,
		WithStateHash, WithMaxEntities, WithJoinData,
	} {
		v := reflect.ValueOf(option)
		name := runtime.FuncForPC(v.Pointer()).Name()
		name = name[strings.LastIndexByte(name, '.')+1:]
		var args []reflect.Value
		for i := range v.Type().NumIn() {
			args = append(args, reflect.Zero(v.Type().In(i)))
		}
		refusal(t, func() { v.Call(args) }, "%s of zero", name)
		calls = append(calls, call{name: name, do: nil})
	}
	tested := map[string]bool{}
	for _, c := range calls {
		tested[c.name] = true
		if c.do == nil {
			continue
		}
		x := newMisused(t)
		sentence := refusal(t, func() { c.do(x) }, "%s", c.name)
		require.Equal(t, c.refused == "", sentence == "", "%s: %s", c.name, sentence)
		require.Contains(t, sentence, c.refused, c.name)
	}
	for _, file := range parsePackage(t, token.NewFileSet()) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
				require.True(t, tested[f.Name.Name], "%s is not in the list", f.Name.Name)
			}
		}
	}
}

type misuseCodec struct{ fields []CodecField }

func (c *misuseCodec) Fields() []CodecField      { return c.fields }
func (c *misuseCodec) Encode(*tHealth, []uint64) {}
func (c *misuseCodec) Decode([]uint64, *tHealth) {}

// TestSentencesAboutNil: each of these used to be a nil dereference, or no error at all.
func TestSentencesAboutNil(t *testing.T) {
	x := newMisused(t)
	for _, c := range []struct {
		want string
		do   func()
	}{
		{"replication: entity set 2 is nil: leave it out, or make one with NewEntitySet", func() {
			x.peer.SetInterest(Interest{Sets: []*EntitySet{x.set, nil}})
		}},
		{"replication: an entity set of another server: make one with this server's NewEntitySet", func() {
			x.peer.SetInterest(Interest{Sets: []*EntitySet{{}}})
		}},
		{"replication: a grid of another server: make one with this server's NewGrid", func() { x.peer.SetInterest(Interest{Grid: &Grid{}}) }},
		{"replication: a margin of 3: use 0 or more, in the units of the fields of the Interest's grid", func() {
			x.peer.SetInterest(Interest{Margin: 3})
		}},
		{"replication: the filter of the Interest is a nil *ecs.Mask: leave Filter out to show all", func() {
			x.peer.SetInterest(Interest{Filter: (*ecs.Mask)(nil)})
		}},
		{"replication: the filter of the Interest is a nil *filter.AND: leave Filter out to show all", func() {
			x.peer.SetInterest(Interest{Filter: (*filter.AND)(nil)})
		}},
		{"replication: there is no peer: Server.Connect returns one", func() { (*Peer)(nil).Disconnect(Reason{}) }},
		{"replication: there is no peer: Server.Connect returns one", func() { (&Peer{}).Disconnect(Reason{}) }},
		{"replication: there is no client: NewClient makes one", func() { (*Client)(nil).Disconnect(Reason{}) }},
		{"replication: Connect: option 1 is nil: leave it out", func() { x.server.Connect(func([]byte) error { return nil }, nil) }},
		{"replication: SetOwner to a peer of another server: use one that this server's Connect returned", func() {
			x.server.SetOwner(x.entity, &Peer{})
		}},
	} {
		require.PanicsWithValue(t, c.want, c.do)
	}
	require.NotPanics(t, func() { x.peer.SetInterest(Interest{Filter: ecs.All()}) })
	for range 3 {
		require.NotPanics(t, x.round, "what was refused was not taken")
	}
	require.Equal(t, "nothing differs", x.client.Verify().String())
}
