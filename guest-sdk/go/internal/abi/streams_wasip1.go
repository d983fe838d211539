package abi

import (
	"runtime"
	"time"
	"unsafe"
)

// Resources of wasi:io. Each is released with Drop, children before their parents.
type (
	Pollable     uint32
	InputStream  uint32
	OutputStream uint32
)

//go:wasmimport wasi:io/poll@0.2.12 [resource-drop]pollable
func importDropPollable(pollable uint32)

//go:wasmimport wasi:io/poll@0.2.12 poll
func importPoll(pollables unsafe.Pointer, length uint32, result unsafe.Pointer)

//go:wasmimport wasi:clocks/monotonic-clock@0.2.12 subscribe-duration
func importSubscribeDuration(nanoseconds uint64) uint32

//go:wasmimport wasi:io/streams@0.2.12 [resource-drop]input-stream
func importDropInput(stream uint32)

//go:wasmimport wasi:io/streams@0.2.12 [method]input-stream.read
func importReadStream(stream uint32, length uint64, result unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.12 [method]input-stream.subscribe
func importSubscribeInput(stream uint32) uint32

//go:wasmimport wasi:io/streams@0.2.12 [resource-drop]output-stream
func importDropOutput(stream uint32)

//go:wasmimport wasi:io/streams@0.2.12 [method]output-stream.check-write
func importCheckWrite(stream uint32, result unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.12 [method]output-stream.write
func importWriteStream(stream uint32, data unsafe.Pointer, length uint32, result unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.12 [method]output-stream.subscribe
func importSubscribeOutput(stream uint32) uint32

//go:wasmimport wasi:io/error@0.2.12 [resource-drop]error
func importDropError(err uint32)

// StreamEnd is `streams.stream-error`. A stream without one goes on.
type StreamEnd uint8

const (
	StreamOpen StreamEnd = iota
	// StreamClosed is a normal end.
	StreamClosed
	StreamFailed
)

// memoryStreamError is `stream-error`.
type memoryStreamError struct {
	is  uint8
	err uint32
}

type memoryRead struct {
	isError uint8
	// A list, or a stream error.
	payload span
}

type memoryCheckWrite struct {
	isError uint8
	// A count of bytes, or a stream error.
	payload uint64
}

type memoryWrite struct {
	isError uint8
	err     memoryStreamError
}

// streamErrorFailed is the case `last-operation-failed`.
const streamErrorFailed = 0

// end returns the end of a stream, and the error of `wasi:io/error` that the caller has to drop.
func (it *memoryStreamError) end() (StreamEnd, uint32) {
	if it.is == streamErrorFailed {
		return StreamFailed, it.err
	}
	return StreamClosed, 0
}

// Drop releases the pollable.
func (it Pollable) Drop() {
	importDropPollable(uint32(it))
}

// After returns a pollable that is ready after a duration.
func After(duration time.Duration) Pollable {
	return Pollable(importSubscribeDuration(uint64(max(duration, 0))))
}

// Poll is `poll.poll`. It blocks the program until at least one of the pollables is ready, and
// returns the indices of those that are.
func Poll(pollables []Pollable) []uint32 {
	var result span
	receive()
	defer lifted()
	importPoll(unsafe.Pointer(unsafe.SliceData(pollables)), uint32(len(pollables)), unsafe.Pointer(&result))
	runtime.KeepAlive(pollables)
	return elements[uint32](result)
}

// Drop releases the stream.
func (it InputStream) Drop() {
	importDropInput(uint32(it))
}

// Subscribe returns a pollable that is ready when the stream can be read.
func (it InputStream) Subscribe() Pollable {
	return Pollable(importSubscribeInput(uint32(it)))
}

// Read returns at most `length` bytes, and none if there are none yet. The error is that of a
// failed stream of an HTTP body.
func (it InputStream) Read(length int) ([]byte, StreamEnd, *HTTPError) {
	var result memoryRead
	receive()
	defer lifted()
	importReadStream(uint32(it), uint64(length), unsafe.Pointer(&result))
	if result.isError == 0 {
		return elements[byte](result.payload), StreamOpen, nil
	}
	end, cause := (*memoryStreamError)(unsafe.Pointer(&result.payload)).end()
	if end == StreamClosed {
		return nil, end, nil
	}
	defer importDropError(cause)
	return nil, end, httpErrorOf(cause)
}

// Drop releases the stream.
func (it OutputStream) Drop() {
	importDropOutput(uint32(it))
}

// Subscribe returns a pollable that is ready when the stream can be written.
func (it OutputStream) Subscribe() Pollable {
	return Pollable(importSubscribeOutput(uint32(it)))
}

// CheckWrite returns the number of bytes that can be written without blocking.
func (it OutputStream) CheckWrite() (int, StreamEnd) {
	var result memoryCheckWrite
	importCheckWrite(uint32(it), unsafe.Pointer(&result))
	if result.isError == 0 {
		return int(min(result.payload, 1<<30)), StreamOpen
	}
	return 0, ended((*memoryStreamError)(unsafe.Pointer(&result.payload)))
}

// Write writes at most as many bytes as CheckWrite has returned.
func (it OutputStream) Write(data []byte) StreamEnd {
	var result memoryWrite
	importWriteStream(uint32(it), unsafe.Pointer(unsafe.SliceData(data)), uint32(len(data)), unsafe.Pointer(&result))
	runtime.KeepAlive(data)
	if result.isError == 0 {
		return StreamOpen
	}
	return ended(&result.err)
}

func ended(it *memoryStreamError) StreamEnd {
	end, cause := it.end()
	if end == StreamFailed {
		importDropError(cause)
	}
	return end
}
