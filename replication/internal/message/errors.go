package message

import "errors"

// ErrFlood means that a client sent more packets of messages and inputs in a tick than any honest
// client does.
var ErrFlood = errors.New("replication: too many packets of messages and inputs in a tick")

// ErrBufferFull means that too much waits for its acknowledgement, or for the next tick, to take
// another message for the other end. The message was not sent.
var ErrBufferFull = errors.New("replication: the message buffer is full: " +
	"the other end has not acknowledged what is in it, or too much was sent in this tick")
