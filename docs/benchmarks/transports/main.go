// Command transports measures what each transport adds to the packets that it carries, and prints it as a table.
//
//	go run ./transports [-docs ..] [-clients 50] [-window 3s] [-rounds 5]
//
// With -docs the table also goes into transports.md in that directory.
//
// A server and its clients play over loopback in one process, at 60 ticks per second: about 200 bytes to each client and
// 30 from it per tick. Bytes are counted by relays between the two, acknowledgements of the transport included. The
// processor's time is that of the process, less that of the same game in memory; it is measured without relays, all
// transports in turns, and the median counts.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/arche-replicate/arche-replicate/docs/benchmarks/page"
)

func main() {
	docs := flag.String("docs", "", "`directory` of transports.md, which gets the table")
	var m measurement
	flag.IntVar(&m.clients, "clients", 50, "number of `clients`")
	flag.DurationVar(&m.window, "window", 3*time.Second, "`time` of each measurement")
	flag.IntVar(&m.rounds, "rounds", 5, "`number` of measurements of each transport")
	flag.Parse()
	if err := run(*docs, m); err != nil {
		fmt.Fprintln(os.Stderr, "transports:", err)
		os.Exit(1)
	}
}

func run(docs string, m measurement) error {
	table, err := m.table()
	if err != nil {
		return err
	}
	fmt.Print(table)
	if docs == "" {
		return nil
	}
	return page.Insert(filepath.Join(docs, "transports.md"), "transports", table)
}

// checksum is the size of one, which packets over UDP alone have.
const checksum = 4

// A measurement compares all carriers.
type measurement struct {
	clients, rounds int
	window          time.Duration
}

// A row is what was measured of a carrier.
type row struct {
	name       string
	bytes      float64       // on top, per packet
	datagrams  float64       // per packet; 0: a connection of TCP
	cpu        time.Duration // per packet, both ends
	handshakes time.Duration // per client, both ends
}

func (m measurement) table() (string, error) {
	rows := make([]row, len(carriers))
	var ack float64 // its bytes; the counters have those of all other packets
	for i, c := range carriers {
		rows[i].name = c.name
		if c.relay == nil {
			continue // in memory
		}
		played, err := m.play(c, true)
		if err != nil {
			return "", err
		}
		more := float64(played.carried) - played.bytes
		if ack == 0 { // nothing else is on top of UDP
			ack = more / played.acks
		} else {
			more += checksum * played.acks
		}
		rows[i].bytes = (more - ack*played.acks) / played.packets
		rows[i].datagrams = float64(played.datagrams) / played.packets
	}
	cpu, handshakes := make([][]time.Duration, len(carriers)), make([][]time.Duration, len(carriers))
	for range m.rounds {
		for i, c := range carriers {
			played, err := m.play(c, false)
			if err != nil {
				return "", err
			}
			cpu[i] = append(cpu[i], time.Duration(float64(played.cpu)/played.packets))
			handshakes[i] = append(handshakes[i], played.joining/time.Duration(m.clients))
		}
	}
	for i := range rows {
		slices.Sort(cpu[i])
		slices.Sort(handshakes[i])
		rows[i].cpu, rows[i].handshakes = cpu[i][m.rounds/2], handshakes[i][m.rounds/2]
	}
	memory, plain := rows[0], rows[1]
	var b strings.Builder
	b.WriteString("| transport | bytes on top per packet | datagrams per packet | with UDP and IP | CPU per packet | CPU per connection |\n" +
		"|---|---:|---:|---:|---:|---:|\n")
	for _, r := range rows[1:] {
		datagrams, headers := "TCP", "-"
		if r.datagrams > 0 {
			datagrams = fmt.Sprintf("%.2f", r.datagrams)
			headers = fmt.Sprintf("%+.0f", r.bytes+28*(r.datagrams-plain.datagrams))
		}
		fmt.Fprintf(&b, "| %s | %+.0f | %s | %s | %.1f µs, %.1f times UDP's | %.2f ms |\n", r.name, r.bytes, datagrams, headers,
			micros(r.cpu-memory.cpu), float64(r.cpu-memory.cpu)/float64(plain.cpu-memory.cpu),
			micros(r.handshakes-memory.handshakes)/1e3)
	}
	return b.String(), nil
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }
