// Package exclusive finds two goroutines in one server or client.
package exclusive

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// A Guard knows which call a server, with its peers, or a client is in. It is a plain number, as
// that in Go's maps: programs that are right need no atomic one, which would take ten times as
// long, and in others it need not find every mistake. Go's race detector sees what escapes it.
//
// A call may call a function of the user's, which calls back on the same goroutine. So a call
// declares what it permits meanwhile: Open permits everything, Lend and Ask only reading. What is not
// permitted is looked at closely: it is a mistake unless the call that is going on is on the same
// goroutine's stack, and within Ask it is one in any case.
type Guard struct {
	now State
}

// A State is a call, and what it does not permit.
type State uint32

const (
	noChange State = 1 // nothing but reading, which Check does
	noRead   State = 2 // not even that
	readOnly State = 4 // a function of the user's was called that must not change anything
	sending  State = 8 // the function with which packets are sent was called

	permissions = noChange | noRead
	callShift   = 4
)

// Enter begins a call that changes something, and returns what is to be given to Leave when it ends.
func (g *Guard) Enter(c Call) (was State) {
	if was = g.now; was&noChange != 0 {
		inspect(was)
	}
	if was&readOnly != 0 || was&sending != 0 && c.queues() {
		refuseWithin(was, c)
	}
	g.now = State(c)<<callShift | permissions | was&sending
	return was
}

// EnterAlone is Enter for a call that must not be made in any other.
func (g *Guard) EnterAlone(c Call) (was State) {
	if now := g.now; now != 0 {
		if calls := stack(); len(calls) > 0 && slices.Contains(calls[1:], now.call()) {
			refuseWithin(now, c)
		}
		refuse(now, c.String())
	}
	return g.Enter(c)
}

// Check is for calls that only read.
func (g *Guard) Check() {
	if now := g.now; now&noRead != 0 {
		inspect(now)
	}
}

// Leave returns to a state before.
func (g *Guard) Leave(was State) { g.now = was }

// Open permits everything in a function of the user's that is about to be called, until Leave.
func (g *Guard) Open() (was State) {
	was = g.now
	g.now = was &^ (permissions | readOnly)
	return was
}

// Ask permits functions of the user's that decide what is sent to read, and nothing else, until Leave.
func (g *Guard) Ask() (was State) {
	was = g.PermitReading()
	g.now |= readOnly
	return was
}

// PermitReading permits calls that only read, until Leave.
func (g *Guard) PermitReading() (was State) {
	was = g.now
	g.now = was &^ noRead
	return was
}

// Lend returns the function with which packets are sent, in which others are known to read. It may call the other end,
// which may answer at once. It must not change what is being sent.
func (g *Guard) Lend(send func(packet []byte) error) func(packet []byte) error {
	return func(packet []byte) error {
		was := g.PermitReading()
		g.now |= sending
		err := send(packet)
		g.now = was // if it panics, the call that sends does this
		return err
	}
}

// inspect panics if the call that is going on is not one of this goroutine's. It can't find out in a
// program whose functions have other names, such as one that an obfuscator has renamed.
func inspect(now State) {
	calls := stack()
	if len(calls) > 0 && !slices.Contains(calls[1:], now.call()) { // the first is the one that enters
		refuse(now, calls[0])
	}
}

// refuse panics because of a second call.
func refuse(now State, second string) {
	panic(fmt.Sprintf("replication: %s while %s is going on: a server with its peers, or a client, is for "+
		"one goroutine at a time; "+
		"make all calls on one, or hold a mutex around each", second, now.call()))
}

// refuseWithin panics because of a call in a function of the user's that another one calls.
func refuseWithin(now State, second Call) {
	panic(fmt.Sprintf("replication: %v in a function that %v calls: note it, and do it after %[2]v",
		second, now.call()))
}

func (s State) call() string { return Call(s >> callShift).String() }

// stack returns the exported functions of package replication that this goroutine is in, the latest first.
func stack() (calls []string) {
	pcs := make([]uintptr, 64)
	n := runtime.Callers(2, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 2*n)
		n = runtime.Callers(2, pcs)
	}
	for frames, more := runtime.CallersFrames(pcs[:n]), true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		name, ours := strings.CutPrefix(frame.Function, "github.com/arche-replicate/arche-replicate/replication")
		name, called := strings.CutPrefix(name, ".")
		for _, noise := range [...]string{"(*", ")", "[...]"} { // not what a user writes
			name = strings.ReplaceAll(name, noise, "")
		}
		if last := name[strings.LastIndexByte(name, '.')+1:]; ours && called && last[0] >= 'A' && last[0] <= 'Z' {
			calls = append(calls, name)
		}
	}
	return calls
}
