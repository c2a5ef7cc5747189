package config

import "github.com/mlange-42/arche/ecs"

// ClientOptions has the settings that the options of a client make.
type ClientOptions struct {
	EndOptions
	MaxEntities int
	NoCompact   bool
	SpawnWith   []ecs.ID
	JoinData    []byte
}
