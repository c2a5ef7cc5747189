package main

import (
	"bufio"
	"bytes"
	"fmt"
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

// openRows reads the head of a trace: a recording, or CSV, plain or compressed. The returned function releases what
// reads it.
func openRows(cfg config, src io.Reader) (*reader, func(), error) {
	if file, size, ok := randomAccess(src); ok && isRecording(io.NewSectionReader(file, 0, size)) {
		r, err := newRecordedReader(cfg, file, size)
		return r, func() {}, err
	}
	plain, release, err := decompress(src)
	if err != nil {
		return nil, nil, err
	}
	buffered := bufio.NewReader(plain)
	var r *reader
	if head, _ := buffered.Peek(len(recordingMagic)); isRecording(bytes.NewReader(head)) {
		r, err = bufferRecording(cfg, buffered)
	} else {
		r, err = newReader(cfg.name(), buffered)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return r, release, nil
}

// recordingMagic starts every recording: see package recording.
const recordingMagic = "ARCHEREC"

// isRecording reports whether a file begins like a recording.
func isRecording(src io.Reader) bool {
	head := make([]byte, len(recordingMagic))
	_, err := io.ReadFull(src, head)
	return err == nil && string(head) == recordingMagic
}

// randomAccess returns a file that can be read in any order, and its size.
func randomAccess(src io.Reader) (file io.ReaderAt, size int64, ok bool) {
	switch f := src.(type) {
	case *bytes.Reader:
		return f, f.Size(), true
	case *os.File:
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return nil, 0, false
		}
		return f, info.Size(), true
	}
	return nil, 0, false
}

// maxBuffered is the largest recording that is read from a pipe, or is compressed.
const maxBuffered = 512 << 20

// bufferRecording reads a recording into memory: players need random access.
func bufferRecording(cfg config, src io.Reader) (*reader, error) {
	data, err := io.ReadAll(io.LimitReader(src, maxBuffered+1))
	if err != nil {
		return nil, &fault{file: cfg.name(), reason: "cannot be read: " + err.Error()}
	}
	if len(data) > maxBuffered {
		return nil, &fault{file: cfg.name(), reason: fmt.Sprintf("a recording of more than %d MiB can't be compressed "+
			"or come from a pipe: name a plain file", maxBuffered>>20)}
	}
	return newRecordedReader(cfg, bytes.NewReader(data), int64(len(data)))
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
