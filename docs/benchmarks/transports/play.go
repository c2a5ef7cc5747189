package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

const tickRate = 60

// state and command have random values, so that packets are as large as they.
type state struct{ Values [23]uint64 }

type command struct{ Values [2]uint64 }

func schema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[state](s)
	replication.RegisterInput[command](s)
	return s
}

// played is what happened in a game.
type played struct {
	sent
	carried, datagrams uint64 // bytes and datagrams below the transport, if there are relays
	cpu                time.Duration
	joining            time.Duration // processor's time until all clients were connected, beside that for packets
}

type player struct {
	client *replication.Client
	end    end
}

// play runs a game over a carrier.
func (m measurement) play(c carrier, relayed bool) (p played, err error) {
	world := ecs.NewWorld()
	server := replication.NewServer(&world, schema(), replication.WithTickRate(tickRate))
	entity := world.NewEntity(ecs.ComponentID[state](&world), ecs.ComponentID[replication.Replicated](&world))
	values := rand.New(rand.NewPCG(1, 2))
	l, err := c.listen(server)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	var counts counter
	players := make([]player, m.clients)
	defer func() {
		for _, p := range players {
			if p.end != nil {
				err = errors.Join(err, p.end.Close())
			}
		}
		counts.close()
	}()
	begin := cpuTime()
	for i := range players {
		address := l.address
		if relayed {
			if address, err = c.relay(&counts, address); err != nil {
				return p, err
			}
		}
		w := ecs.NewWorld(16)
		client := replication.NewClient(&w, schema())
		mine := rand.New(rand.NewPCG(3, uint64(i)))
		replication.OnInput(client, func(replication.Tick) command {
			return command{[2]uint64{mine.Uint64(), mine.Uint64()}}
		})
		end, err := c.dial(address, client)
		if err != nil {
			return p, err
		}
		players[i] = player{client, end}
	}
	next := time.Now()
	tick := func() {
		l.poll()
		v := (*state)(world.Get(entity, ecs.ComponentID[state](&world)))
		for i := range v.Values {
			v.Values[i] = values.Uint64()
		}
		server.Replicate()
		for _, p := range players {
			p.end.Poll()
			_ = p.client.Frame(time.Second / tickRate) // who has ended is missed below
		}
		if next = next.Add(time.Second / tickRate); time.Since(next) > time.Second {
			next = time.Now()
		}
		time.Sleep(time.Until(next))
	}
	for limit := time.Now().Add(time.Minute); !allConnected(players); tick() {
		if time.Now().After(limit) {
			return p, fmt.Errorf("%s: not all clients connect within a minute: %v", c.name, players[0].client.Err())
		}
	}
	joining, before := cpuTime()-begin, count(server, players)
	for range tickRate / 2 {
		tick()
	}
	begin, first := cpuTime(), count(server, players)
	data, datagrams := counts.bytes.Load(), counts.datagrams.Load()
	for end := time.Now().Add(m.window); time.Now().Before(end); {
		tick()
	}
	p.cpu, p.sent = cpuTime()-begin, count(server, players)
	p.packets, p.bytes, p.acks = p.packets-first.packets, p.bytes-first.bytes, p.acks-first.acks
	p.carried, p.datagrams = counts.bytes.Load()-data, counts.datagrams.Load()-datagrams
	p.joining = joining - time.Duration(before.packets*float64(p.cpu)/p.packets)
	if !allConnected(players) {
		return p, fmt.Errorf("%s: a client was lost", c.name)
	}
	return p, nil
}

func allConnected(players []player) bool {
	for _, p := range players {
		if p.client.Status() != replication.StatusConnected {
			return false
		}
	}
	return true
}

// sent is what both ends have sent: packets, bytes in those that are no acknowledgements, and acknowledgements.
type sent struct{ packets, bytes, acks float64 }

func count(server *replication.Server, players []player) (n sent) {
	for p := range server.Peers() {
		s := p.Stats()
		n.packets += float64(s.Packets+s.MessagePackets) - float64(s.SendErrors)
		n.bytes += float64(s.Bytes + s.MessageBytes)
	}
	for _, p := range players {
		s := p.client.Stats()
		n.packets += float64(s.Acks+s.InputPackets+s.MessagePackets) - float64(s.SendErrors)
		n.bytes += float64(s.InputBytes + s.MessageBytes)
		n.acks += float64(s.Acks)
	}
	return n
}

// cpuTime returns the processor's time of the process so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it never fails for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
