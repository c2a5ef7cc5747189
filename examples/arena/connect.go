package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/loop"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

const (
	frameRate     = 60 // of clients in a process of their own
	loadFrameRate = 30 // of many
	remindEvery   = 5 * time.Second
)

// crew is the clients of a process, or those of one of its goroutines.
type crew struct {
	c       config
	clients []*client
	network *netsim.Network
	screen  *screen
	began   time.Time // when the first client was connected
	ended   time.Time
	healed  bool
	costs   cost
	meter   meter
}

// runClients plays with clients of a server in another process.
func runClients(ctx context.Context, c *config, s *screen) (*report, error) {
	s.printLine(fmt.Sprintf("arena: %s for %s\nlink: %s", count(c.clients, "client"), c.connect, c.link()))
	network := netsim.NewNetwork(c.seed, c.network())
	defer network.Close()
	crews := []*crew{{c: *c, network: network, screen: s}}
	for c.load > 0 && len(crews) < min(runtime.GOMAXPROCS(0), c.clients) {
		crews = append(crews, &crew{c: *c, network: network, screen: &screen{}})
	}
	for i := range c.clients {
		w, client := crews[i%len(crews)], newClient(i, c.predict, true)
		if err := client.dial(c.connect, network); err != nil {
			return nil, err
		}
		defer client.close()
		w.clients = append(w.clients, client)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, len(crews))
	for _, w := range crews[1:] {
		go func() { done <- w.play(ctx, stop) }()
	}
	done <- crews[0].play(ctx, stop)
	s.leave()
	var errs []error
	for range crews {
		errs = append(errs, <-done)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return reportOf(crews, ctx.Err() != nil), nil
}

// play plays until the server ends the fight, the clients have played long enough, or ctx is done. An
// error stops the other crews.
func (w *crew) play(ctx context.Context, stop context.CancelCauseFunc) (err error) {
	defer func() {
		w.ended = time.Now()
		if err != nil {
			stop(err)
		}
	}()
	rate := frameRate
	if w.c.load > 0 {
		rate = loadFrameRate
	}
	received := time.Now()
	reminded := received.Add(time.Second/2 - remindEvery) // half a second is usual
	for dt := range loop.Frames(ctx, rate) {
		present, err := w.frame(dt)
		now := time.Now()
		switch {
		case err != nil:
			return err
		case present > 0:
			received = now
			if w.c.duration > 0 && now.Sub(w.began) >= w.c.duration && w.clients[0].Final == nil {
				return nil
			}
			w.screen.show(int(now.Sub(w.began).Seconds()), w.picture)
		case !slices.ContainsFunc(w.clients, func(c *client) bool { return !c.over }):
			return nil
		case now.Sub(received) >= w.c.wait:
			return w.silence()
		case now.Sub(reminded) >= remindEvery && w.began.IsZero():
			reminded = now
			w.screen.printLine(fmt.Sprintf("arena: waiting for a server at %s; start one with:\n"+
				"  go run ./examples/arena -serve %s", w.c.connect, w.c.connect))
		}
	}
	return nil
}

// silence is the error if no server answers any more.
func (w *crew) silence() error {
	err := fmt.Errorf("no server answered at %s within %v: start one with -serve", w.c.connect, w.c.wait)
	if why := w.clients[0].Client.Err(); why != nil {
		err = fmt.Errorf("%w (%w)", err, why)
	}
	return err
}

// frame shows a frame of all clients, and returns how many are connected.
func (w *crew) frame(dt time.Duration) (present int, err error) {
	for _, client := range w.clients {
		if client.over {
			continue
		}
		if err := client.frame(dt); err != nil {
			var end *replication.DisconnectError
			if !errors.As(err, &end) || end.Reason.Code != reasonOver {
				return 0, err
			}
			client.over = true // the server has ended the fight
			continue
		}
		if client.Client.Status() != replication.StatusConnected {
			continue
		}
		present++
		if w.began.IsZero() {
			w.began = time.Now()
			w.c.tickRate = client.Client.TickRate()
		}
		if client.Final != nil && !w.healed {
			w.healed = true
			w.network.Set(netsim.Profile{}) // links lose nothing while the worlds are compared
		}
		client.Compare(client.reader)
	}
	return present, nil
}

// hasLeft reports whether a client goes before the fight is over.
func (w *crew) hasLeft(c *client) bool { return !w.ended.IsZero() && !c.over }

// played returns for how long the clients have played.
func (w *crew) played() time.Duration {
	switch {
	case w.began.IsZero():
		return 0
	case w.ended.IsZero():
		return time.Since(w.began)
	default:
		return w.ended.Sub(w.began)
	}
}

// ticks converts a duration to ticks of the server.
func (w *crew) ticks(d time.Duration) int { return int(d.Seconds() * float64(w.c.tickRate)) }

// picture returns everything that there is to see.
func (w *crew) picture() frame {
	first, ticks := w.clients[0], w.ticks(w.played())
	title := fmt.Sprintf("client 1: %d differ", first.Client.Stats().Diverged)
	p := &picture{c: &w.c, ticks: ticks, limit: w.ticks(w.c.duration), views: []view{{title, &first.world}}}
	if second := ticks / w.c.tickRate; w.costs.JSON == 0 || second > w.costs.second {
		w.costs.JSON, w.costs.second = inPackets(jsonBytes(first.reader, first.Client.Entities())), second
	}
	p.figures = w.meter.figures(ticks, &w.c, &w.costs, w.rows())
	return p
}
