package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// All options are alike: an interface with a method that only this package knows. Those of an end are applied to
// its configuration, which packages below read; the others to what is being registered.

// An Option configures either end: it may be given to [NewServer] and to [NewClient].
type Option interface {
	ServerOption
	ClientOption
}

// A ServerOption configures a [Server]. Every [Option] is one.
type ServerOption interface{ serverOption }

// A ClientOption configures a [Client]. Every [Option] is one.
type ClientOption interface{ clientOption }

// A PeerOption configures a [Peer]. Every [PathOption] is one.
type PeerOption interface{ applyToPeer(*peerOptions) }

// A PathOption is about what the path to a client carries. It may be given to [Server.Connect], for one peer, and to
// [NewServer], for those that have none of their own.
type PathOption interface {
	ServerOption
	PeerOption
}

// An MTUOption is a [PathOption] that may be given to [NewClient] as well.
type MTUOption interface {
	PathOption
	ClientOption
}

// A TypeOption changes how any type is registered: a component, a resource, a message or the input.
type TypeOption interface {
	ComponentOption
	MessageOption
}

// A ComponentOption changes how [Register] registers a component type, and [RegisterResource] a resource. Every
// [TypeOption] is one.
type ComponentOption interface{ applyToComponent(*schema.Options) }

// A MessageOption changes how [RegisterMessage] registers a message type. Every [TypeOption] is one.
type MessageOption interface{ applyToMessage(*schema.MessageOptions) }

type (
	serverOption interface{ ApplyToServer(*config.ServerOptions) }
	clientOption interface{ ApplyToClient(*config.ClientOptions) }

	peerOption      func(*peerOptions)
	typeOption      func(*schema.Options)
	componentOption func(*schema.Options)
	messageOption   func(*schema.MessageOptions)
)

func (f peerOption) applyToPeer(o *peerOptions)                 { f(o) }
func (f typeOption) applyToComponent(o *schema.Options)         { f(o) }
func (f typeOption) applyToMessage(o *schema.MessageOptions)    { f(&o.Options) }
func (f componentOption) applyToComponent(o *schema.Options)    { f(o) }
func (f messageOption) applyToMessage(o *schema.MessageOptions) { f(o) }

// applyOptions applies the options that a function was given. None may be nil.
func applyOptions[O any](function string, opts []O, apply func(O)) {
	for i, opt := range opts {
		if isNil(opt) {
			panic(fmt.Sprintf("replication: %s: option %d is nil: leave it out", function, i+1))
		}
		apply(opt)
	}
}
