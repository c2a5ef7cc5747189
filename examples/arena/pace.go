package main

import (
	"context"
	"iter"

	"github.com/arche-replicate/arche-replicate/replication/loop"
)

// pace yields ticks until ctx is done: at their rate, or as fast as possible without a screen.
func (c *config) pace(ctx context.Context) iter.Seq[int] {
	if !c.headless {
		return loop.Ticks(ctx, c.tickRate)
	}
	return func(yield func(int) bool) {
		n := 0
		for ctx.Err() == nil && yield(n) {
			n++
		}
	}
}
