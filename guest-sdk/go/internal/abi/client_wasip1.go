package abi

import (
	"runtime"
	"unsafe"
)

//go:wasmimport cofferdam:plugin/client@0.1.0 can-ask
func importCanAsk(kind uint32) uint32

//go:wasmimport cofferdam:plugin/client@0.1.0 ask
func importAsk(questions unsafe.Pointer, length uint32, result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/client@0.1.0 log
func importLog(level uint32, message string)

type memoryQuestion struct {
	name optional
	is   uint8
	// Message and schema of a form. The parameters of a sample are in the field of the message.
	message, schema span
}

type memoryAskResult struct {
	isError uint8
	payload struct {
		// The case of an error, or the address of a list.
		first uint32
		// The string of an error, or the length of a list.
		rest [2]uint32
	}
}

type memoryAnswer struct {
	is      uint8
	payload span
}

type memoryRoot struct {
	uri  span
	name optional
}

// clientWithText has a bit for each case of `client.error` with a string.
const clientWithText = 1<<ClientDenied | 1<<ClientInvalid | 1<<ClientLimit | 1<<ClientFailed

// CanAsk is `client.can-ask`.
func CanAsk(kind uint8) bool {
	return importCanAsk(uint32(kind)) != 0
}

// Log is `client.log`.
func Log(level uint8, message string) {
	importLog(uint32(level), valid(message))
}

// Ask is `client.ask`.
func Ask(questions []Question) ([]Answer, *Error) {
	var keep pins
	asked := make([]memoryQuestion, len(questions))
	for i, question := range questions {
		asked[i] = keep.question(question)
	}
	var result memoryAskResult
	receive()
	defer lifted()
	importAsk(unsafe.Pointer(unsafe.SliceData(asked)), uint32(len(asked)), unsafe.Pointer(&result))
	runtime.KeepAlive(asked)
	runtime.KeepAlive(keep)
	if result.isError != 0 {
		return nil, (*memoryError)(unsafe.Pointer(&result.payload)).lift(clientWithText)
	}
	memory := elements[memoryAnswer](span{result.payload.first, result.payload.rest[0]})
	answers := make([]Answer, len(memory))
	for i, answer := range memory {
		answers[i] = answer.lift()
	}
	return answers, nil
}

func (p *pins) question(question Question) memoryQuestion {
	memory := memoryQuestion{name: p.optional(question.Name), is: question.Kind}
	switch question.Kind {
	case AskForm:
		memory.message, memory.schema = p.text(question.Message), p.text(question.JSON)
	case AskSample:
		memory.message = p.text(question.JSON)
	}
	return memory
}

func (it memoryAnswer) lift() Answer {
	switch it.is {
	case Accepted, Message:
		return Answer{Case: it.is, JSON: it.payload.text()}
	case Roots:
		memory := elements[memoryRoot](it.payload)
		roots := make([]Root, len(memory))
		for i, root := range memory {
			roots[i] = Root{root.uri.text(), root.name.text()}
		}
		return Answer{Case: it.is, Roots: roots}
	default:
		return Answer{Case: it.is}
	}
}
