package abi

import (
	"strings"
	"unsafe"
)

// The adapter between the first preview of WASI, which Go speaks, and the second, which components speak, needs memory of its
// own: a stack and its state. It would ask the runtime for it, which has not started by then, or grow the memory, which Go
// takes for its own. So `cofferdam build` finds this block by its mark and gives it to the adapter. The runtime never looks
// into it. The size is two pages of 65536 bytes, and one more to begin at the border of a page.
//
// The mark is written letter by letter: only such a value is in the data of the program. A converted text would be copied there
// when the program starts.
var adapterMemory = struct {
	mark  [32]byte
	pages [3 * 65536]byte
}{
	mark: [32]byte{
		'c', 'o', 'f', 'f', 'e', 'r', 'd', 'a', 'm', ':', 'm', 'e', 'm', 'o', 'r', 'y',
		'-', 'o', 'f', '-', 'w', 'a', 's', 'i', '-', 'a', 'd', 'a', 'p', 't', 'e', 'r',
	},
}

// received are blocks that the host has asked for and that nothing in Go points to yet. They are let go when what is in them
// has been lifted into Go values, which then hold them.
var received []unsafe.Pointer

// returned are blocks that the host reads after an export has returned, until it calls the export's post-return.
var returned []unsafe.Pointer

// realloc is how the host gets memory for what it passes in.
//
//go:wasmexport cabi_realloc
func realloc(old, oldSize, align, size uint32) uint32 {
	if size == 0 {
		// Any address will do, as long as it is aligned.
		return align
	}
	// Go aligns a block to 8, or to its size if that is less; what is in it is never aligned to more than its size.
	block := make([]byte, size)
	if oldSize > 0 {
		copy(block, unsafe.Slice((*byte)(at(old)), oldSize))
	}
	pointer := unsafe.Pointer(unsafe.SliceData(block))
	received = append(received, pointer)
	return addressOf(pointer)
}

// at makes a pointer of an address. The detour over memory is for the compiler and vet, which know no foreign addresses.
func at(address uint32) unsafe.Pointer {
	wide := uint64(address)
	return *(*unsafe.Pointer)(unsafe.Pointer(&wide))
}

func addressOf(pointer unsafe.Pointer) uint32 {
	return uint32(uintptr(pointer))
}

// span is a string or a list as it lies in memory.
type span struct {
	address, length uint32
}

func (s span) text() string {
	if s.length == 0 {
		return ""
	}
	return unsafe.String((*byte)(at(s.address)), s.length)
}

// elements are the elements of a list. They are the memory itself.
func elements[T any](s span) []T {
	if s.length == 0 {
		return nil
	}
	return unsafe.Slice((*T)(at(s.address)), s.length)
}

// optional is `option<string>`.
type optional struct {
	is   uint8
	span span
}

func (o optional) text() string {
	if o.is == 0 {
		return ""
	}
	return o.span.text()
}

// truth is `option<bool>`.
type truth struct {
	is, value uint8
}

func (t truth) pointer() *bool {
	if t.is == 0 {
		return nil
	}
	value := t.value != 0
	return &value
}

func lowerTruth(value *bool) truth {
	switch {
	case value == nil:
		return truth{}
	case *value:
		return truth{1, 1}
	default:
		return truth{1, 0}
	}
}

// pins keep what has been lowered alive: an address in memory is no pointer to the garbage collector.
type pins []unsafe.Pointer

func (p *pins) text(text string) span {
	text = valid(text)
	data := unsafe.Pointer(unsafe.StringData(text))
	*p = append(*p, data)
	return span{addressOf(data), uint32(len(text))}
}

func (p *pins) optional(text string) optional {
	if text == "" {
		return optional{}
	}
	return optional{1, p.text(text)}
}

// lower keeps a list and says where it is.
func lower[T any](p *pins, list []T) span {
	data := unsafe.Pointer(unsafe.SliceData(list))
	*p = append(*p, data)
	return span{addressOf(data), uint32(len(list))}
}

// cast reads the payload of a content as one of its shorter cases.
func cast[T any](content *memoryContent) *T {
	return (*T)(unsafe.Pointer(&content.resource))
}

// valid makes UTF-8 of a text: a Go string may hold anything, and the host ends a call that passes something else.
func valid(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}
