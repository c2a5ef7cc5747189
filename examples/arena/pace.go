package main

import (
	"context"
	"time"
)

// pace makes ticks last as long as they should.
type pace struct {
	tick time.Duration // 0: as fast as possible
	next time.Time
}

func newPace(c *config) *pace {
	if c.headless {
		return &pace{}
	}
	return &pace{tick: time.Second / time.Duration(c.tickRate), next: time.Now()}
}

// wait returns at the time of the next tick, or when ctx is done.
func (p *pace) wait(ctx context.Context) {
	if p.tick == 0 {
		return
	}
	p.next = p.next.Add(p.tick)
	pause := time.Until(p.next)
	if pause < -time.Second/4 {
		p.next = time.Now() // too late to catch up: skip ticks
	}
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
