module github.com/arche-replicate/arche-replicate/docs/benchmarks

go 1.25.0

require (
	github.com/arche-replicate/arche-replicate v0.0.0
	github.com/icza/bitio v1.1.0
)

replace github.com/arche-replicate/arche-replicate => ../..
