module github.com/arche-replicate/arche-replicate/examples/physics

go 1.25.0

require (
	github.com/ByteArena/box2d v1.0.2
	github.com/arche-replicate/arche-replicate v0.0.0
	github.com/mlange-42/arche v0.15.3
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/arche-replicate/arche-replicate => ../..
