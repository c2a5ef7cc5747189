package main

import "slices"

// memoryPort is one of two ends within a process.
type memoryPort struct {
	other *memoryPort
	inbox [][]byte
	sent  uint64
}

// memoryPorts returns the two ends of a cable.
func memoryPorts() (a, b *memoryPort) {
	a, b = &memoryPort{}, &memoryPort{}
	a.other, b.other = b, a
	return a, b
}

func (p *memoryPort) write(packet []byte) error {
	p.other.inbox = append(p.other.inbox, slices.Clone(packet))
	p.sent++
	return nil
}

func (p *memoryPort) read(fn func(packet []byte)) {
	for _, packet := range p.inbox {
		fn(packet)
	}
	p.inbox = p.inbox[:0]
}

func (p *memoryPort) written() uint64 { return p.sent }
func (p *memoryPort) expect(uint64)   {} // nothing is ever in flight
func (p *memoryPort) close()          {}
