package config

import "github.com/mlange-42/arche/ecs"

// ClientOptions are what the options of a client set.
type ClientOptions struct {
	EndOptions
	MaxEntities int
	NoCompact   bool
	SpawnWith   []ecs.ID
	JoinData    []byte
}
