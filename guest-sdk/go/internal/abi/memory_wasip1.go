package abi

import (
	"strings"
	"unsafe"
)

// adapterMemory is the memory of the adapter between WASI preview 1, which Go uses, and preview 2,
// which components use. The adapter needs memory for its stack and its state. By default it would
// call the Go runtime, which has not started at that time, or grow the memory, which Go claims for
// its heap. Therefore `cofferdam build` finds this block by its mark and gives it to the adapter.
// The runtime never touches it. The size is two pages of 65536 bytes, and one more for the
// alignment to a page.
//
// The mark is written letter by letter, so that it is in the data of the program. A converted
// string would be copied there only when the program starts.
var adapterMemory = struct {
	mark  [32]byte
	pages [3 * 65536]byte
}{
	mark: [32]byte{
		'c', 'o', 'f', 'f', 'e', 'r', 'd', 'a', 'm', ':', 'm', 'e', 'm', 'o', 'r', 'y',
		'-', 'o', 'f', '-', 'w', 'a', 's', 'i', '-', 'a', 'd', 'a', 'p', 't', 'e', 'r',
	},
}

// received contains blocks that the host has allocated and that nothing in Go points to yet. They
// are released when their content is lifted into Go values, which then hold them.
var received []unsafe.Pointer

// returned contains blocks that the host reads after an export has returned, until it calls the
// export's post-return.
var returned []unsafe.Pointer

// realloc allocates memory for values that the host passes in.
//
//go:wasmexport cabi_realloc
func realloc(old, oldSize, align, size uint32) uint32 {
	if size == 0 {
		// Any aligned address is valid.
		return align
	}
	// Go aligns a block to 8, or to its size if that is less. The content never needs a larger
	// alignment than its size.
	block := make([]byte, size)
	if oldSize > 0 {
		copy(block, unsafe.Slice((*byte)(at(old)), oldSize))
	}
	pointer := unsafe.Pointer(unsafe.SliceData(block))
	received = append(received, pointer)
	return addressOf(pointer)
}

// at converts an address to a pointer. The detour through memory satisfies the compiler and vet,
// which do not know foreign addresses.
func at(address uint32) unsafe.Pointer {
	wide := uint64(address)
	return *(*unsafe.Pointer)(unsafe.Pointer(&wide))
}

func addressOf(pointer unsafe.Pointer) uint32 {
	return uint32(uintptr(pointer))
}

// span is a string or a list in memory.
type span struct {
	address, length uint32
}

func (s span) text() string {
	if s.length == 0 {
		return ""
	}
	return unsafe.String((*byte)(at(s.address)), s.length)
}

// elements returns the elements of a list without copying them.
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

// pins keeps lowered values alive, because an address is not a pointer to the garbage collector.
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

// lower keeps a list alive and returns its address and length.
func lower[T any](p *pins, list []T) span {
	data := unsafe.Pointer(unsafe.SliceData(list))
	*p = append(*p, data)
	return span{addressOf(data), uint32(len(list))}
}

// cast returns the payload of a content as one of its shorter cases.
func cast[T any](content *memoryContent) *T {
	return (*T)(unsafe.Pointer(&content.resource))
}

// valid replaces invalid UTF-8: a Go string may contain any bytes, and the host ends a call that
// passes invalid UTF-8.
func valid(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}
