package main

import (
	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

func main() {
	world := ecs.NewWorld()
	client := replication.NewClient(&world, newSchema())
	interpolation.Attach(client)
	run(&world, client)
}
