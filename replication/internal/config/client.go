package config

import "github.com/mlange-42/arche/ecs"

// ClientOptions are what the options of a client set.
type ClientOptions struct {
	MaxEntities int
	Seed        uint64
	Seeded      bool
	MTU         int
	Timeout     int

	NoCompact bool
	SpawnWith []ecs.ID
}
