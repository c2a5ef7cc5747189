// Command load plays with many clients over UDP in one process, then adds a flood of forged requests to join, and
// prints what the server's ticks and memory look like in both phases.
//
//	go run ./load [-clients 1000] [-quiet 60s] [-flood 10s] [-rate 100000]
//
// It fails if a client is lost, the median tick takes more than 1.2 times as long, memory grows, or strangers get more
// answers than udp.WithHelloRate allows.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
)

func main() {
	var l load
	flag.IntVar(&l.clients, "clients", 1000, "number of `clients`")
	flag.DurationVar(&l.quiet, "quiet", time.Minute, "`time` without a flood")
	flag.DurationVar(&l.flood, "flood", 10*time.Second, "`time` of the flood")
	flag.IntVar(&l.rate, "rate", 100_000, "forged `requests` per second")
	flag.Parse()
	table, err := l.run()
	fmt.Print(table)
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

const (
	tickRate = 20
	ships    = 60
	sockets  = 64 // of the flood
)

type ship struct {
	X, Y    float32 `repl:"range=-1000:1000,step=0.01"`
	Heading float32 `repl:"range=0:7,step=0.01"`
}

type command struct{ Turn int8 }

func schema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[ship](s)
	replication.RegisterInput[command](s)
	return s
}

type load struct {
	clients, rate int
	quiet, flood  time.Duration

	world    *ecs.World
	moving   []ecs.Entity
	server   *replication.Server
	listener *udp.Listener
	joined   int
	left     int
}

// A phase is what was measured in one.
type phase struct {
	name     string
	ticks    []time.Duration
	heap     int64  // in use after a garbage collection at the end
	forged   uint64 // requests sent by the flood
	received uint64
	answered uint64
	peers    int
	lost     int
	took     time.Duration
}

func (p *phase) median() time.Duration { return p.percent(50) }

func (p *phase) percent(n int) time.Duration {
	slices.Sort(p.ticks)
	return p.ticks[min(len(p.ticks)*n/100, len(p.ticks)-1)]
}

// run plays all phases. The table has those that were measured, even if there is an error.
func (l *load) run() (table string, err error) {
	world := ecs.NewWorld()
	l.world = &world
	l.server = replication.NewServer(&world, schema(), replication.WithTickRate(tickRate))
	l.server.OnConnect(func(*replication.Peer) { l.joined++ })
	l.server.OnDisconnect(func(*replication.Peer) { l.left++ })
	for range ships {
		l.moving = append(l.moving, world.NewEntity(ecs.ComponentID[ship](&world), ecs.ComponentID[replication.Replicated](&world)))
	}
	l.listener, err = udp.Listen("127.0.0.1:0", l.server, udp.WithLimits(transport.Limits{Peers: l.clients, PeersPerIP: l.clients}))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, l.listener.Close()) }()
	stop, err := l.play()
	if err != nil {
		return "", err
	}
	defer stop()
	for begin := time.Now(); l.joined < l.clients; {
		if time.Since(begin) > time.Minute {
			return "", fmt.Errorf("%d of %d clients have joined after a minute", l.joined, l.clients)
		}
		l.phase("", time.Second, nil)
	}
	l.phase("", 3*time.Second, nil)
	quiet := l.phase("quiet", l.quiet, nil)
	flood := l.phase("flood", l.flood, l.forge)
	again := l.phase("quiet again", l.flood, nil)

	table = "| phase | tick: median | 95 % | longest, ms | forged per second | received per second | answers to strangers per second | heap, MB | peers | lost |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
	for _, p := range []*phase{quiet, flood, again} {
		ms := func(percent int) float64 { return float64(p.percent(percent)) / 1e6 }
		table += fmt.Sprintf("| %s | %.2f | %.2f | %.2f | %.0f | %.0f | %.0f | %.2f | %d | %d |\n", p.name, ms(50), ms(95), ms(100),
			float64(p.forged)/p.took.Seconds(), float64(p.received)/p.took.Seconds(), float64(p.answered)/p.took.Seconds(), float64(p.heap)/1e6, p.peers, p.lost)
	}
	for _, p := range []*phase{quiet, flood, again} {
		if p.lost > 0 || p.peers != l.clients {
			err = errors.Join(err, fmt.Errorf("%s: %d peers of %d, %d lost", p.name, p.peers, l.clients, p.lost))
		}
	}
	if most := udp.DefaultHelloRate * (flood.took.Seconds() + 1); float64(flood.answered) > most {
		err = errors.Join(err, fmt.Errorf("%d answers to strangers, and WithHelloRate allows %.0f", flood.answered, most))
	}
	// Clients have most of the heap. A peer takes 5 kB; if a forged request left any state, it would be hundreds of MB.
	if grown := flood.heap - quiet.heap; grown > 16<<20 {
		err = errors.Join(err, fmt.Errorf("the flood has left %d bytes", grown))
	}
	if before := min(quiet.median(), again.median()); float64(flood.median()) > 1.2*float64(before)+1e5 {
		err = errors.Join(err, fmt.Errorf("the median tick takes %v in the flood, and %v without", flood.median(), before))
	}
	return table, err
}

// play lets clients play on a goroutine of their own until stop is called.
func (l *load) play() (stop func(), err error) {
	type player struct {
		client *replication.Client
		conn   *udp.Conn
	}
	var players []player
	var done atomic.Bool
	var work sync.WaitGroup
	stop = func() {
		done.Store(true)
		work.Wait()
		for _, p := range players {
			_ = p.conn.Close() // the measurement is over
		}
	}
	for range l.clients {
		world := ecs.NewWorld(64)
		client := replication.NewClient(&world, schema())
		replication.OnInput(client, func(replication.Tick) command { return command{1} })
		conn, err := udp.Dial(l.listener.Addr().String(), client)
		if err != nil {
			stop()
			return nil, fmt.Errorf("a client: %w: raise the limit of open files", err)
		}
		players = append(players, player{client, conn})
	}
	work.Go(func() {
		// Clients come one after another within a tick, as in reality.
		const slices = 20
		last := time.Now()
		for turn := 0; !done.Load(); turn++ {
			for i := turn % slices; i < len(players); i += slices {
				players[i].conn.Poll()
				_ = players[i].client.Frame(time.Second / tickRate) // a client that has ended is counted as lost
			}
			last = last.Add(time.Second / tickRate / slices)
			if time.Since(last) > time.Second/tickRate {
				last = time.Now()
			}
			time.Sleep(time.Until(last))
		}
	})
	return stop, nil
}

// phase runs ticks for some time, and something else beside them.
func (l *load) phase(name string, took time.Duration, beside func(done *atomic.Bool, sent *atomic.Uint64)) *phase {
	var done atomic.Bool
	var sent atomic.Uint64
	var work sync.WaitGroup
	if beside != nil {
		work.Go(func() { beside(&done, &sent) })
	}
	p := &phase{name: name}
	before, left := l.listener.Stats(), l.left
	begin := time.Now()
	for next := begin; time.Since(begin) < took; {
		at := time.Now()
		l.listener.Poll()
		for i, e := range l.moving {
			if i%3 != len(p.ticks)%3 { // each one moves in every third tick
				continue
			}
			s := (*ship)(l.world.Get(e, ecs.ComponentID[ship](l.world)))
			s.X, s.Heading = s.X+0.3, s.Heading+0.02
			if s.X > 900 {
				s.X = -900
			}
			if s.Heading > 6 {
				s.Heading = 0
			}
		}
		l.server.Replicate()
		p.ticks = append(p.ticks, time.Since(at))
		next = next.Add(time.Second / tickRate)
		time.Sleep(time.Until(next))
	}
	p.took = time.Since(begin)
	after := l.listener.Stats()
	done.Store(true)
	work.Wait()
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	p.heap = int64(memory.HeapAlloc)
	p.received, p.answered = after.Received-before.Received, after.Answered-before.Answered
	p.forged, p.peers, p.lost = sent.Load(), l.server.Stats().Peers, l.left-left
	return p
}

// forge sends what looks like a request to join, from many sockets, each with an IP address of its own where the system
// allows that.
func (l *load) forge(done *atomic.Bool, sent *atomic.Uint64) {
	var work sync.WaitGroup
	at := l.listener.Addr()
	for i := range 2 { // goroutines
		work.Go(func() {
			var conns []*net.UDPConn
			for j := range sockets / 2 {
				conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 1, byte(i*sockets/2+j))})
				if err != nil {
					conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, "load: the flood:", err)
					return
				}
				defer func() { _ = conn.Close() }()
				conns = append(conns, conn)
			}
			datagram := make([]byte, 88) // as long as a client's first one
			copy(datagram, "\xf7replUDP")
			begin := time.Now()
			for n := 0; !done.Load(); n++ {
				datagram[len(datagram)-1] = byte(n)
				_, _ = conns[n%len(conns)].WriteToUDPAddrPort(datagram, at) // a flood does not care
				if n%64 == 63 {
					sent.Add(64)
					time.Sleep(time.Until(begin.Add(time.Duration(n) * time.Second / time.Duration(max(l.rate/2, 1)))))
				}
			}
		})
	}
	work.Wait()
}
