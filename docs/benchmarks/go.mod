module github.com/arche-replicate/arche-replicate/docs/benchmarks

go 1.25.0

require (
	github.com/arche-replicate/arche-replicate v0.0.0
	github.com/icza/bitio v1.1.0
	github.com/klauspost/compress v1.20.3
	github.com/mlange-42/arche v0.15.3
	github.com/quic-go/quic-go v0.61.0
	github.com/quic-go/webtransport-go v0.12.0
	github.com/stretchr/testify v1.12.1
	github.com/vmihailenco/msgpack/v5 v5.4.1
	google.golang.org/protobuf v1.36.9
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/dunglas/httpsfv v1.1.0 // indirect
	github.com/quic-go/qpack v0.6.0 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/net v0.56.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)

replace github.com/arche-replicate/arche-replicate => ../..
