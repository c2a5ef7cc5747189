package main

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// zstdMagic starts every zstd frame (RFC 8878, section 3.1.1).
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// openTrace opens a file, or standard input for "-".
func openTrace(path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(path)
}

// decompress reads src through zstd if it begins like a zstd frame, whatever its name. The returned
// function releases the decoder.
func decompress(src io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReader(src)
	if magic, _ := buffered.Peek(len(zstdMagic)); !bytes.Equal(magic, zstdMagic) {
		return buffered, func() {}, nil
	}
	// Without goroutines, which would disturb the measured times.
	decoder, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, nil, err
	}
	return decoder, decoder.Close, nil
}
