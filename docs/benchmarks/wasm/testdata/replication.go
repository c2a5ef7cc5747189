package main

import (
	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

func main() {
	world := ecs.NewWorld()
	run(&world, replication.NewClient(&world, newSchema()))
}
