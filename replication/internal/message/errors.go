package message

import "errors"

// ErrFlood says that a client sent more packets of messages and inputs in a tick than any honest one does.
var ErrFlood = errors.New("replication: too many packets of messages and inputs in a tick")

// ErrBufferFull says that so much awaits its acknowledgement, or the next tick, that nothing more is taken for the other
// end. The message was not sent.
var ErrBufferFull = errors.New("replication: the message buffer is full: the other end has not acknowledged what is in it")
