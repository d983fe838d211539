package abi

import "unsafe"

// Each function below calls one import and lifts its result. An import writes its result to a
// variable that escapes to the heap, because a pointer to it is passed out of Go, so it does not
// move in the meantime. Strings are passed as Go strings, which consist of the address and the
// length that the ABI requires.

//go:wasmimport cofferdam:plugin/call@0.1.0 id
func importID(result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/call@0.1.0 session
func importSession(result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/call@0.1.0 time-left-ms
func importTimeLeft() uint64

//go:wasmimport cofferdam:plugin/call@0.1.0 cancelled
func importCancelled() uint32

//go:wasmimport cofferdam:plugin/call@0.1.0 progress
func importProgress(done float64, hasTotal uint32, total float64, hasMessage uint32, message string)

// CallID is `call.id`.
func CallID() string {
	var result span
	receive()
	defer lifted()
	importID(unsafe.Pointer(&result))
	return result.text()
}

// CallSession is `call.session`.
func CallSession() string {
	var result optional
	receive()
	defer lifted()
	importSession(unsafe.Pointer(&result))
	return result.text()
}

// TimeLeft is `call.time-left-ms`.
func TimeLeft() uint64 {
	return importTimeLeft()
}

// CallCancelled is `call.cancelled`.
func CallCancelled() bool {
	return importCancelled() != 0
}

// Progress is `call.progress`; a total of 0 means unknown.
func Progress(done, total float64, message string) {
	message = valid(message)
	importProgress(done, flag(total != 0), total, flag(message != ""), message)
}

//go:wasmimport cofferdam:plugin/errors@0.1.0 unexpected
func importUnexpected(typeName, message string, result unsafe.Pointer)

// Unexpected is `errors.unexpected`.
func Unexpected(typeName, message string) string {
	var result span
	receive()
	defer lifted()
	importUnexpected(valid(typeName), valid(message), unsafe.Pointer(&result))
	return result.text()
}

//go:wasmimport cofferdam:plugin/secrets@0.1.0 get
func importSecret(name string, result unsafe.Pointer)

type memorySecret struct {
	isError uint8
	value   span
}

// Secret is `secrets.get`.
func Secret(name string) (string, bool) {
	var result memorySecret
	receive()
	defer lifted()
	importSecret(valid(name), unsafe.Pointer(&result))
	if result.isError != 0 {
		return "", false
	}
	return result.value.text(), true
}

//go:wasmimport cofferdam:plugin/toolbox@0.1.0 list-tools
func importTools(result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/toolbox@0.1.0 call-tool
func importTool(name, arguments string, result unsafe.Pointer)

type memoryToolResult struct {
	isError uint8
	// `list<content>`, or the case of the error: see below.
	payload toolPayload
}

// toolPayload contains the error variant; the list of contents overlaps its first two words.
type toolPayload struct {
	is      uint32
	failure memoryFailure
}

// Tools is `toolbox.list-tools`.
func Tools() []Definition {
	var result span
	receive()
	defer lifted()
	importTools(unsafe.Pointer(&result))
	memory := elements[memoryDefinition](result)
	definitions := make([]Definition, len(memory))
	for i := range memory {
		definitions[i] = memory[i].lift()
	}
	return definitions
}

// CallTool is `toolbox.call-tool`. The failure is that of the error case `failed`.
func CallTool(name, arguments string) ([]Content, *Failure, *Error) {
	var result memoryToolResult
	receive()
	defer lifted()
	importTool(valid(name), valid(arguments), unsafe.Pointer(&result))
	if result.isError == 0 {
		return liftContents(*(*span)(unsafe.Pointer(&result.payload))), nil, nil
	}
	// The case is one byte; the bytes after it are undefined.
	is := uint8(result.payload.is)
	switch is {
	case ToolboxFailed:
		return nil, result.payload.failure.lift(), &Error{Case: is}
	case ToolboxInvalidArguments, ToolboxEnded:
		return nil, nil, &Error{Case: is, Text: result.payload.failure.message.text()}
	default:
		return nil, nil, &Error{Case: is}
	}
}

// memoryError is an error variant whose cases have a string or nothing.
type memoryError struct {
	is   uint8
	text span
}

// lift returns the case, and the string if `withText` has a bit for it. For other cases the memory
// of the string is undefined.
func (it *memoryError) lift(withText uint32) *Error {
	if withText&(1<<it.is) == 0 {
		return &Error{Case: it.is}
	}
	return &Error{Case: it.is, Text: it.text.text()}
}

// receiving is the number of imports whose results are not lifted yet. It can be more than 1: while
// the host allocates memory for one result, the garbage collector may run, and after it another
// goroutine.
var receiving int

// receive begins an import whose result needs memory.
func receive() {
	receiving++
}

// lifted ends it. Go values point to the memory of its result now.
func lifted() {
	receiving--
	if receiving == 0 {
		release()
	}
}

// release lets go of the memory that results have taken.
func release() {
	clear(received)
	received = received[:0]
}

func flag(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}
