package web

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"syscall/js"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/loop"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// page returns what the handler's script has defined.
func page() (js.Value, bool) {
	v := js.Global().Get("archeReplicate")
	return v, v.Type() == js.TypeObject
}

// Frames yields the time since the last frame, which Client.Frame takes, whenever
// the screen is redrawn: in a browser, before the page is drawn; elsewhere 60 times
// a second. In a page that is hidden, where nothing is drawn, frames go on when
// packets arrive, at most ten times a second, so that the client stays connected.
func Frames(ctx context.Context) iter.Seq[time.Duration] {
	script, ok := page()
	if !ok {
		return loop.Frames(ctx, 60)
	}
	return func(yield func(time.Duration) bool) {
		ready := make(chan struct{}, 1)
		call := js.FuncOf(func(js.Value, []js.Value) any {
			select {
			case ready <- struct{}{}:
			default:
			}
			return nil
		})
		next := script.Call("frames", call)
		defer func() {
			next.Invoke(false) // the page calls it no more
			call.Release()
		}()
		last := time.Now()
		for first := true; ; first = false {
			next.Invoke()
			select {
			case <-ctx.Done():
				return
			case <-ready:
			}
			now := time.Now()
			dt := now.Sub(last)
			if first {
				dt = 0
			}
			last = now
			if !yield(dt) {
				return
			}
		}
	}
}

type dialer struct {
	where  string
	script js.Value
	setMTU func(bytes int)
}

func newDialer(url string) (*dialer, error) {
	script, ok := page()
	if !ok {
		return nil, errors.New(`the page lacks the script of the server's handler: load it before this program, as in <script src="/play?js"></script>`)
	}
	where := script.Call("where", url).String()
	if where == "" {
		return nil, errors.New("give the path of the server's handler, such as /play, or its URL over HTTP or HTTPS")
	}
	return &dialer{where: where, script: script}, nil
}

// dial opens a socket of the page.
func (d *dialer) dial(ctx context.Context) (link.ClientSocket, error) {
	s := &socket{opened: make(chan int, 1), ended: make(chan error, 1)}
	s.onOpened = js.FuncOf(func(_ js.Value, args []js.Value) any {
		s.opened <- args[1].Int()
		return nil
	})
	s.onEnded = js.FuncOf(func(_ js.Value, args []js.Value) any {
		status, text := args[0].Int(), args[1].String()
		if status == 0 {
			s.ended <- errors.New(text)
		} else {
			s.ended <- refusal(status, text, d.where)
		}
		return nil
	})
	s.page = d.script.Call("dial", d.where, s.onOpened, s.onEnded)
	s.inbox, s.outbox = s.page.Get("inbox"), s.page.Get("outbox")
	s.pull, s.push, s.dropped = s.page.Get("pull"), s.page.Get("push"), s.page.Get("dropped")
	select {
	case mtu := <-s.opened:
		d.setMTU(mtu)
		return s, nil
	case err := <-s.ended:
		s.release()
		return nil, err
	case <-ctx.Done():
		s.Close(ctx.Err())
		s.release()
		return nil, errors.New("no answer from " + d.where + ": is the server running?")
	}
}

// A socket is one of the page. JavaScript keeps the packets that arrive, as entering Go for each of them would allocate.
type socket struct {
	page, inbox, outbox, pull, push, dropped js.Value
	onOpened, onEnded                        js.Func
	opened                                   chan int
	ended                                    chan error
	in, out                                  []byte
}

// Read implements [link.Puller]: it waits for the end.
func (s *socket) Read() ([]byte, error) {
	err := <-s.ended
	s.release()
	return nil, err
}

func (s *socket) release() {
	s.onOpened.Release()
	s.onEnded.Release()
}

// Pull returns the next packet that waits.
func (s *socket) Pull() []byte {
	n := s.pull.Invoke().Int()
	if n == 0 {
		return nil
	}
	if n > len(s.in) {
		s.in = make([]byte, n+2048)
	}
	js.CopyBytesToGo(s.in[:n], s.inbox)
	return s.in[:n]
}

// Dropped implements [link.Puller].
func (s *socket) Dropped() uint64 { return uint64(s.dropped.Invoke().Int()) }

var errClosed = errors.New("the connection is closed")

func (s *socket) Write(packet []byte) error {
	s.out = binary.LittleEndian.AppendUint32(s.out[:0], uint32(len(packet)))
	s.out = append(s.out, packet...)
	js.CopyBytesToJS(s.outbox, s.out)
	for {
		switch s.push.Invoke().Int() {
		case 1:
			return nil
		case -1:
			return errClosed
		}
		time.Sleep(5 * time.Millisecond) // what the browser keeps is sent
	}
}

// Close closes the socket, whose functions the page calls no more.
func (s *socket) Close(why error) {
	s.page.Call("close")
	if why == nil {
		why = errClosed
	}
	select {
	case s.ended <- why:
	default:
	}
}
