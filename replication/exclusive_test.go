package replication

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// elsewhere makes a call on a goroutine of its own, and returns its panic when it has ended.
func elsewhere(call func()) (panicked any) {
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		call()
	}()
	return <-done
}

// meanwhile makes a call on a goroutine of its own, runs do while that call is in a user function
// that calls pause, and waits for its end.
func meanwhile(t *testing.T, call func(pause func()), do func()) {
	t.Helper()
	in, on := make(chan struct{}), make(chan struct{})
	ended, paused := make(chan any), false
	go func() {
		defer func() { ended <- recover() }()
		call(func() {
			if !paused {
				paused = true
				in <- struct{}{}
				<-on
			}
		})
	}()
	select {
	case <-in:
		do()
		close(on)
		require.Nil(t, <-ended)
	case r := <-ended:
		require.Fail(t, "it did not pause", "%v", r)
	}
}

// requireTwoNamed checks the panic message about two calls.
func requireTwoNamed(t *testing.T, second, first string, call func()) {
	t.Helper()
	require.Equal(t, "replication: "+second+" while "+first+" is going on: a server with its peers, or a client, is for one goroutine at a time; "+
		"make all calls on one, or hold a mutex around each", elsewhere(call), second)
}

// callsOf returns calls that change a server, by name.
func callsOf(x *misused) map[string]func() {
	return map[string]func(){
		"Server.Replicate": x.server.Replicate, "Server.Close": x.server.Close,
		"Server.Connect":      func() { x.server.Connect(func([]byte) error { return nil }) },
		"Server.OnRefuse":     func() { x.server.OnRefuse(func(*Peer, error) {}) },
		"Server.OnJoin":       func() { x.server.OnJoin(func(*Peer, []byte) error { return nil }) },
		"Server.OnDrain":      func() { x.server.OnDrain(func(*Peer) {}) },
		"Server.OnConnect":    func() { x.server.OnConnect(func(*Peer) {}) },
		"Server.OnDisconnect": func() { x.server.OnDisconnect(func(*Peer) {}) },
		"Server.NewGrid":      func() { x.server.NewGrid(1, "tPosition.X") },
		"Server.NewEntitySet": func() { x.server.NewEntitySet() },
		"Server.NewGroup":     func() { x.server.NewGroup() },
		"Server.SetOwner":     func() { x.server.SetOwner(x.entity, x.peer) },
		"Server.SetPriority":  func() { x.server.SetPriority(x.entity, 2) },
		"Peer.Receive":        func() { _ = x.peer.Receive(nil) },
		"Peer.Disconnect":     func() { x.peer.Disconnect(Reason{}) },
		"Peer.SetInterest":    func() { x.peer.SetInterest(Interest{}) },
		"Peer.LookFrom":       func() { x.peer.LookFrom(1, 2) },
		"Peer.SetBudget":      func() { x.peer.SetBudget(1) }, "Peer.SetBudgetRange": func() { x.peer.SetBudgetRange(1, 2) },
		"Peer.SetRemote": func() { x.peer.SetRemote(Remote{}) },
		"Peer.SetData":   func() { x.peer.SetData(nil) }, "Peer.SetPriorityFunc": func() { x.peer.SetPriorityFunc(nil) }, "Peer.SetSendInterval": func() { x.peer.SetSendInterval(2) }, "Grid.SortSpawns": func() { x.grid.SortSpawns() },
		"EntitySet.Add": func() { x.set.Add(x.entity) }, "EntitySet.Remove": func() { x.set.Remove(x.entity) },
		"Group.Add": func() { x.group.Add(x.entity) }, "Group.Remove": func() { x.group.Remove(x.entity) },
		"SendToClient": func() { _ = SendToClient(x.peer, mHit{}) }, "SendToAll": func() { _ = SendToAll(x.server, mHit{}) },
		"SendToViewers":   func() { _ = SendToViewers(x.server, x.entity, mHit{}) },
		"Input":           func() { Input[mMove](x.peer, 1) },
		"OnClientMessage": func() { OnClientMessage[mHit](x.server, nil) },
	}
}

// callsOfClient returns calls that change a client, by name.
func callsOfClient(x *misused) map[string]func() {
	return map[string]func(){
		"Client.Frame":   func() { _ = x.client.Frame(0) },
		"OnInput":        func() { OnInput[mMove](x.client, nil) },
		"Client.Receive": func() { _ = x.client.Receive(nil) },
		"Client.Close":   x.client.Close, "Client.Detach": x.client.Detach, "Client.OnDrain": func() { x.client.OnDrain(func() {}) },
		"Client.Disconnect": func() { x.client.Disconnect(Reason{}) },
		"Client.SetSend":    func() { x.client.SetSend(func([]byte) error { return nil }) },
		"Client.Reconnect":  x.client.Reconnect, "Client.SetJoinData": func() { x.client.SetJoinData(nil) },
		"Client.Verify": func() { x.client.Verify() },
		"OnSpawn":       func() { x.client.OnSpawn(func(ecs.Entity) {}) }, "OnDespawn": func() { x.client.OnDespawn(func(ecs.Entity) {}) },
		"OnAdd": func() { OnAdd(x.client, func(ecs.Entity, *tHealth) {}) }, "OnRemove": func() { OnRemove(x.client, func(ecs.Entity, *tHealth) {}) },
		"OnChange":        func() { OnChange(x.client, func(_ ecs.Entity, _, _ *tHealth) {}) },
		"OnServerMessage": func() { OnServerMessage(x.client, func(mHit) {}) },
		"Expect":          func() { Expect[tHealth](x.client, x.entity, ofTicks(1)) },
		"SendToServer":    func() { _ = SendToServer(x.client, mHit{}) }, "SetInput": func() { _ = SetInput(x.client, 1, mMove{}) },
	}
}

// TestTwoGoroutinesInOneServerAreFound: one waits in a send function.
func TestTwoGoroutinesInOneServerAreFound(t *testing.T) {
	x := newMisused(t)
	send := x.peer.out.Send
	calls := callsOf(x)
	first := func(name string, call func()) {
		t.Helper()
		meanwhile(t, func(pause func()) {
			x.peer.out.Send = x.server.calls.Lend(func(p []byte) error { pause(); return send(p) })
			call()
		}, func() {
			for second, call := range calls {
				requireTwoNamed(t, second, name, call)
			}
		})
		x.peer.out.Send = send
	}
	(*tHealth)(x.world.Get(x.entity, ecs.ComponentID[tHealth](x.world))).HP++
	first("Server.Replicate", x.server.Replicate)
	first("Peer.Receive", func() {
		x.client.Reconnect()
		x.answer(x.apply()...)
	})
	x.rounds(5)
	x.requireEqual("nothing came of it")
	require.True(t, x.peer.Connected() && x.client.Connected())
	first("Peer.Disconnect", func() { x.peer.Disconnect(Reason{}) })
	x.connect()
	x.client.Reconnect()
	x.rounds(5)
	send = x.peer.out.Send
	first("Peer.Disconnect", func() { x.peer.Disconnect(Reason{}) })
	x.connect()
	x.client.Reconnect()
	x.rounds(5)
	send = x.peer.out.Send
	first("Server.Close", x.server.Close)
}

// TestTwoGoroutinesInOneClientAreFound: the same for a client.
func TestTwoGoroutinesInOneClientAreFound(t *testing.T) {
	x := newMisused(t)
	send := x.client.session.Send
	first := func(name string, call func()) {
		t.Helper()
		meanwhile(t, func(pause func()) {
			x.client.session.Send = x.client.calls.Lend(func(p []byte) error { pause(); return send(p) })
			call()
		}, func() {
			for second, call := range callsOfClient(x) {
				requireTwoNamed(t, second, name, call)
			}
		})
		x.client.session.Send = send
	}
	require.NoError(t, SendToServer(x.client, mHit{}))
	first("Client.Frame", func() { _ = x.client.Apply() })
	x.rounds(5)
	x.requireEqual("nothing came of it")
	first("Client.Disconnect", func() { x.client.Disconnect(Reason{}) })
	x.up = nil
	x.client.Reconnect()
	x.rounds(5)
	require.True(t, x.client.Connected())
	first("Client.Close", x.client.Close)
}

// TestThePeersSendFunctionIsLent: the send function given to Connect and NewClient is wrapped, so
// that other goroutines are known to only read.
func TestThePeersSendFunctionIsLent(t *testing.T) {
	var x *fixture
	asked := 0
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	x = &fixture{t: t, world: &world, mirror: &mirror}
	x.server = NewServer(x.world, testSchema(), WithSeed(1))
	allocations := func(read func()) { // reading the stack allocates
		if !raceDetector {
			require.Zero(t, testing.AllocsPerRun(3, read))
		}
		asked++
	}
	x.peer = x.server.Connect(func(p []byte) error {
		allocations(func() { x.server.Tick(); x.peer.Connected(); x.server.Owner(ecs.Entity{}) })
		x.down = append(x.down, bytes.Clone(p))
		return nil
	})
	x.client = NewClientWith(x.mirror, faceOf(x.server.schema), func(p []byte) error {
		allocations(func() { x.client.Tick(); x.client.Status() })
		x.up = append(x.up, bytes.Clone(p))
		return nil
	}, WithSeed(7))
	x.rounds(5)
	require.True(t, x.client.Connected())
	require.Greater(t, asked, 2)
}

// waiter is a component whose codec waits.
type waiter struct{ n uint64 }

type waitingCodec struct{ wait func() }

func (c *waitingCodec) Fields() []CodecField             { return []CodecField{{Name: "n", Bits: 8}} }
func (c *waitingCodec) Encode(v *waiter, codes []uint64) { c.wait(); codes[0] = v.n & 255 }
func (c *waitingCodec) Decode(codes []uint64, v *waiter) { c.wait(); v.n = codes[0] }

// TestReadingIsFoundToo while a tick captures the world or an Apply changes one.
func TestReadingIsFoundToo(t *testing.T) {
	codec := &waitingCodec{func() {}}
	s := NewSchema()
	Register[waiter](s, With(codec))
	x := newWire(t, s)
	set, group := x.server.NewEntitySet(), x.server.NewGroup()
	e := x.spawn(ecs.ComponentID[waiter](x.world))
	x.rounds(5)
	v := (*waiter)(x.world.Get(e, ecs.ComponentID[waiter](x.world)))
	v.n = 5
	meanwhile(t, func(pause func()) { codec.wait = pause; x.server.Replicate(); codec.wait = func() {} }, func() {
		for name, call := range map[string]func(){
			"Server.Tick": func() { x.server.Tick() }, "Server.TickRate": func() { x.server.TickRate() }, "Server.Stats": func() { x.server.Stats() }, "Server.NetID": func() { x.server.NetID(e) },
			"Server.Entity": func() { x.server.Entity(NetID{}) }, "Server.Owner": func() { x.server.Owner(e) },
			"Peer.Stats": func() { x.peer.Stats() }, "Peer.Connected": func() { x.peer.Connected() }, "Peer.Err": func() { _ = x.peer.Err() },
			"Peer.JoinData": func() { x.peer.JoinData() },
			"EntitySet.Len": func() { set.Len() }, "Group.Len": func() { group.Len() },
		} {
			requireTwoNamed(t, name, "Server.Replicate", call)
		}
	})
	x.deliver(x.takeDown()...)
	meanwhile(t, func(pause func()) { codec.wait = pause; _ = x.client.Apply(); codec.wait = func() {} }, func() {
		for name, call := range map[string]func(){
			"Client.Tick": func() { x.client.Tick() }, "Client.Stats": func() { x.client.Stats() }, "Client.Entity": func() { x.client.Entity(NetID{}) },
			"Client.Entities": func() { x.client.Entities() }, "Client.StateTick": func() { x.client.StateTick(e) }, "Client.Status": func() { x.client.Status() },
		} {
			requireTwoNamed(t, name, "Client.Frame", call)
		}
	})
	x.rounds(3)
	require.Equal(t, "nothing differs", x.client.Verify().String())
}

// TestOneGoroutineMayCallBack from any user function, but no Replicate begins in another.
func TestOneGoroutineMayCallBack(t *testing.T) {
	x := newMisused(t)
	visible := 0
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool {
		visible++
		require.Nil(t, x.server.Owner(e))
		require.Equal(t, "replication: Server.Replicate in a function that Server.Replicate calls: note it, and do it after Server.Replicate",
			refusal(t, x.server.Replicate, "Replicate"))
		return true
	}})
	sent := 0
	x.peer = x.server.Connect(func(p []byte) error {
		sent++
		x.peer.SetBudget(1000)
		require.Error(t, x.peer.Receive(nil))
		require.Contains(t, refusal(t, x.server.Replicate, "Replicate"), "Server.Replicate in a function that ")
		x.down = append(x.down, bytes.Clone(p))
		return nil
	})
	x.client.Reconnect()
	x.rounds(5)
	require.True(t, x.client.Connected())
	require.Positive(t, visible)
	require.Positive(t, sent)
}

// TestPanicsEndCalls: after a panic in a call, the next call is not taken for a concurrent one.
func TestPanicsEndCalls(t *testing.T) {
	x := newMisused(t)
	for name, call := range map[string]func(){
		"message":   func() { _ = SendToClient(x.peer, mBytes40{}) },
		"argument":  func() { x.peer.SetSendInterval(0) },
		"interest":  func() { x.peer.SetInterest(Interest{Grid: &Grid{}}) },
		"peer":      func() { x.server.Disconnect(nil) },
		"component": func() { OnAdd(x.client, func(ecs.Entity, *mHit) {}) },
		"input":     func() { _ = SetInput(x.client, 1, mHit{}) },
		"locked":    func() { q := x.world.Query(ecs.All()); defer q.Close(); x.server.Close() },
	} {
		require.NotEmpty(t, refusal(t, call, "%s", name), name)
	}
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { panic("the user's") }})
	require.PanicsWithValue(t, "the user's", x.server.Replicate)
	x.peer.SetInterest(Interest{})
	send := x.peer.out.Send
	x.peer.out.Send = func([]byte) error { panic("the user's") }
	(*tHealth)(x.world.Get(x.entity, ecs.ComponentID[tHealth](x.world))).HP++
	require.PanicsWithValue(t, "the user's", x.server.Replicate)
	x.peer.out.Send = send
	OnClientMessage(x.server, func(*Peer, mHit) { panic("the user's") })
	require.NoError(t, SendToServer(x.client, mHit{}))
	require.PanicsWithValue(t, "the user's", func() { x.answer(x.apply()...) })
	OnServerMessage(x.client, func(mHit) { panic("the user's") })
	require.NoError(t, SendToClient(x.peer, mHit{}))
	x.deliver(x.replicate()...)
	require.PanicsWithValue(t, "the user's", func() { _ = x.client.Apply() })
	for range 3 {
		require.Nil(t, elsewhere(x.round), "another goroutine, afterwards")
	}
	require.Equal(t, exclusive.Guard{}, x.server.calls)
	require.Equal(t, exclusive.Guard{}, x.client.calls)
}

// TestEveryCallIsExclusive: every exported function and method of a server or client either enters
// it or is known to only read.
func TestEveryCallIsExclusive(t *testing.T) {
	readers := " Server.Accepts Peer.Remote Server.Tick Server.TickRate Server.Stats Server.NetID Server.Entity Server.Owner Peer.Connected Peer.Stats Peer.Err " +
		"Peer.JoinData Peer.Data Server.Peers EntitySet.Len Group.Len Client.Tick Client.Stats Client.NetID Client.Entity Client.Entities Client.StateTick Client.Settled Client.KnownUntil Client.Connected Client.Status " +
		"Client.Complete Client.Err Client.Divergence Client.ServerTime Client.InputTick Client.PredictionTime " +
		"Client.MessageTick Client.Expects Client.HasEnded Client.TickRate "
	names, entered := map[string]string{}, map[string]bool{}
	calls, err := parser.ParseFile(token.NewFileSet(), "internal/exclusive/calls.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(calls, func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok {
			names[kv.Key.(*ast.Ident).Name], err = strconv.Unquote(kv.Value.(*ast.BasicLit).Value)
			require.NoError(t, err)
		}
		return true
	})
	for _, file := range parsePackage(t, token.NewFileSet()) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || !ofServerOrClient(f) {
				continue
			}
			call := ""
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					if s, ok := c.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Enter" || s.Sel.Name == "EnterAlone" || s.Sel.Name == "EnterEnding") {
						call = c.Args[0].(*ast.SelectorExpr).Sel.Name
					}
				}
				return true
			})
			name := nameOf(f)
			if strings.Contains(readers, " "+name+" ") {
				require.Empty(t, call, "%s enters", name)
				continue
			}
			require.NotEmpty(t, call, "%s does not enter its server or client", name)
			require.False(t, entered[call], "%s enters as another call", name)
			entered[call] = true
			require.Equal(t, name, names[call], "the name of %s", call)
		}
	}
	x := newMisused(t)
	require.Len(t, entered, len(callsOf(x))+len(callsOfClient(x)), "all are tested")
}

// ofServerOrClient reports whether a function is a method of a server, a client or a part of one,
// or has one as its first argument.
func ofServerOrClient(f *ast.FuncDecl) bool {
	list := f.Type.Params.List
	if f.Recv != nil {
		list = f.Recv.List
	}
	if len(list) == 0 {
		return false
	}
	star, ok := list[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	of, ok := star.X.(*ast.Ident)
	return ok && slices.Contains([]string{"Server", "Client", "Peer", "EntitySet", "Grid", "Group"}, of.Name)
}

// BenchmarkCall measures the cost of a call that does almost nothing, and of a getter.
func BenchmarkCall(b *testing.B) {
	x := connectedWire(b, testSchema())
	b.Run("change", func(b *testing.B) {
		for b.Loop() {
			x.peer.SetSendInterval(1)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			runtime.KeepAlive(x.server.Tick())
		}
	})
}

// TestSendFunctionsMustNotChangeWhatIsSent: the socket is dead, so the user disconnects at once.
func TestSendFunctionsMustNotChangeWhatIsSent(t *testing.T) {
	for name, call := range map[string]func(x *misused){
		"Peer.Disconnect": func(x *misused) { x.peer.Disconnect(Reason{}) },
		"Server.Close":    func(x *misused) { x.server.Close() },
		"SendToClient":    func(x *misused) { _ = SendToClient(x.peer, mHit{}) },
		"SendToAll":       func(x *misused) { _ = SendToAll(x.server, mHit{}) },
		"SendToViewers":   func(x *misused) { _ = SendToViewers(x.server, x.entity, mHit{}) },
	} {
		x := newMisused(t)
		send := x.peer.out.Send
		x.peer.out.Send = x.server.calls.Lend(func(p []byte) error {
			call(x)
			return send(p)
		})
		(*tHealth)(x.world.Get(x.entity, ecs.ComponentID[tHealth](x.world))).HP++
		require.PanicsWithValue(t, "replication: "+name+" in a function that Server.Replicate calls: note it, and do it "+
			"after Server.Replicate", x.server.Replicate)
		x.peer.out.Send = send
		x.rounds(20)
		x.requireEqual("nothing came of it")
		call(x)
	}
}

// TestInputsChangeNothing: the function of OnInput reads, what changes the client panics in it, and the next frame asks
// for the input again.
func TestInputsChangeNothing(t *testing.T) {
	for name := range callsOfClient(newMisused(t)) {
		x := newMisused(t)
		asked := 0
		OnInput(x.client, func(tick Tick) mMove {
			asked++
			require.False(t, tick.After(x.client.InputTick()))
			if asked == 1 {
				callsOfClient(x)[name]()
			}
			return mMove{}
		})
		require.PanicsWithValue(t, "replication: "+name+" in a function that Client.Frame calls: note it, and do it "+
			"after Client.Frame", func() { x.rounds(20) }, name)
		x.rounds(40)
		x.requireEqual("nothing came of it")
		require.Greater(t, asked, 10)
		require.NotZero(t, x.peer.Stats().Inputs)
		require.Zero(t, x.client.Stats().InputsRefused)
	}
}
