package soak

import (
	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A note is the contents of the soak's messages. Unique identifies it.
type note struct {
	Unique uint32
	Text   string `repl:"max=24"`
	Who    ecs.Entity
	Level  float32 `repl:"range=0:10,step=0.1"`
}

type (
	noteA note
	noteB note
	noteC note
	noteD note
	noteE note
)

type anyNote interface {
	~struct {
		Unique uint32
		Text   string `repl:"max=24"`
		Who    ecs.Entity
		Level  float32 `repl:"range=0:10,step=0.1"`
	}
}

// A fire asks the server for an entity with a signature.
type fire struct {
	Number uint16
	Wanted bool
	Owner  ecs.Entity
}

type noteKind int

const (
	noteWaiting noteKind = iota
	noteToo
	noteImmediate
	noteUnreliable
	noteSpark // unreliable and immediate
	noteKinds
)

// reliable kinds are delivered once each; those of one channel in order.
func (k noteKind) reliable() bool { return k < noteUnreliable }

func (k noteKind) waits() bool { return k == noteWaiting || k == noteToo || k == noteUnreliable }

func (k noteKind) channel() int {
	if k == noteImmediate {
		return 1
	}
	return 0
}

// noteCalls are the generic functions for one type of note.
type noteCalls struct {
	register func(s *replication.Schema, opts ...replication.MessageOption)
	send     func(p *replication.Peer, n note) error
	all      func(s *replication.Server, n note) error
	viewers  func(s *replication.Server, e ecs.Entity, n note) error
	toServer func(c *replication.Client, n note) error
	onServer func(s *replication.Server, fn func(p *replication.Peer, n note))
	onClient func(c *replication.Client, fn func(n note))
}

func callsOf[T anyNote]() noteCalls {
	return noteCalls{
		register: replication.RegisterMessage[T],
		send:     func(p *replication.Peer, n note) error { return replication.SendToClient(p, T(n)) },
		all:      func(s *replication.Server, n note) error { return replication.SendToAll(s, T(n)) },
		viewers: func(s *replication.Server, e ecs.Entity, n note) error {
			return replication.SendToViewers(s, e, T(n))
		},
		toServer: func(c *replication.Client, n note) error { return replication.SendToServer(c, T(n)) },
		onServer: func(s *replication.Server, fn func(p *replication.Peer, n note)) {
			replication.OnClientMessage(s, func(p *replication.Peer, m T) { fn(p, note(m)) })
		},
		onClient: func(c *replication.Client, fn func(n note)) {
			replication.OnServerMessage(c, func(m T) { fn(note(m)) })
		},
	}
}

var noteTypes = [noteKinds]noteCalls{callsOf[noteA](), callsOf[noteB](), callsOf[noteC](), callsOf[noteD](), callsOf[noteE]()}

func registerNotes(s *replication.Schema, p *plan) {
	for i, calls := range noteTypes {
		calls.register(s, p.noteOpts[i]...)
	}
	replication.RegisterMessage[fire](s)
}

// A command is the input type.
type command struct {
	X, Y   int8    `repl:"range=-1:1"`
	Aim    float32 `repl:"angle,bits=10"`
	Serial uint16
	At     ecs.Entity
}
