package abi

import (
	"runtime"
	"unsafe"
)

//go:wasmimport cofferdam:plugin/files@0.1.0 stores
func importStores(result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/files@0.1.0 stat
func importStat(store, path string, result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/files@0.1.0 read
func importRead(store, path string, offset, length uint64, result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/files@0.1.0 write
func importWrite(store, path string, content unsafe.Pointer, length, mode uint32, result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/files@0.1.0 delete
func importDelete(store, path string, result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/files@0.1.0 create-directory
func importCreateDirectory(store, path string, result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/files@0.1.0 list
func importList(store, directory string, hasGlob uint32, glob string, recursive uint32, result unsafe.Pointer)

//go:wasmimport cofferdam:plugin/files@0.1.0 search
func importSearch(
	store, directory, pattern string, caseSensitive, hasGlob uint32, glob string, recursive uint32,
	result unsafe.Pointer,
)

type memoryStore struct {
	name     span
	writable uint8
}

type memoryStatResult struct {
	isError uint8
	// Aligned to 8, because it contains a size.
	payload struct {
		kind uint8
		size uint64
	}
}

// memoryFilesResult is a result with an error or at most a list; the result of a search has a byte
// after the list.
type memoryFilesResult struct {
	isError uint8
	payload struct {
		// The case of an error, or the address of a list.
		first uint32
		// The string of an error, or the length of a list and the byte.
		rest [2]uint32
	}
}

type memoryEntry struct {
	name span
	kind uint8
}

type memoryMatch struct {
	path, snippet, lines span
}

type memoryLine struct {
	number uint64
	text   span
}

// filesWithText has a bit for each case of `files.error` with a string.
const filesWithText = 1<<FilesWrongType | 1<<FilesInvalidPath | 1<<FilesDenied | 1<<FilesLimit | 1<<FilesInvalidPattern

func (it *memoryFilesResult) list() span {
	return span{it.payload.first, it.payload.rest[0]}
}

func (it *memoryFilesResult) err() *Error {
	if it.isError == 0 {
		return nil
	}
	return (*memoryError)(unsafe.Pointer(&it.payload)).lift(filesWithText)
}

// Stores is `files.stores`.
func Stores() []Store {
	var result span
	receive()
	defer lifted()
	importStores(unsafe.Pointer(&result))
	memory := elements[memoryStore](result)
	stores := make([]Store, len(memory))
	for i, store := range memory {
		stores[i] = Store{store.name.text(), store.writable != 0}
	}
	return stores
}

// StatFile is `files.stat`.
func StatFile(store, path string) (Stat, *Error) {
	var result memoryStatResult
	receive()
	defer lifted()
	importStat(valid(store), valid(path), unsafe.Pointer(&result))
	if result.isError != 0 {
		return Stat{}, (*memoryError)(unsafe.Pointer(&result.payload)).lift(filesWithText)
	}
	return Stat{result.payload.kind == 1, result.payload.size}, nil
}

// ReadFile is `files.read`.
func ReadFile(store, path string, offset, length uint64) ([]byte, *Error) {
	var result memoryFilesResult
	receive()
	defer lifted()
	importRead(valid(store), valid(path), offset, length, unsafe.Pointer(&result))
	if err := result.err(); err != nil {
		return nil, err
	}
	return elements[byte](result.list()), nil
}

// WriteFile is `files.write`.
func WriteFile(store, path string, content []byte, replace bool) *Error {
	var result memoryFilesResult
	data := unsafe.Pointer(unsafe.SliceData(content))
	receive()
	defer lifted()
	importWrite(valid(store), valid(path), data, uint32(len(content)), flag(replace), unsafe.Pointer(&result))
	runtime.KeepAlive(content)
	return result.err()
}

// DeleteFile is `files.delete`.
func DeleteFile(store, path string) *Error {
	var result memoryFilesResult
	receive()
	defer lifted()
	importDelete(valid(store), valid(path), unsafe.Pointer(&result))
	return result.err()
}

// CreateDirectory is `files.create-directory`.
func CreateDirectory(store, path string) *Error {
	var result memoryFilesResult
	receive()
	defer lifted()
	importCreateDirectory(valid(store), valid(path), unsafe.Pointer(&result))
	return result.err()
}

// ListFiles is `files.list`.
func ListFiles(store, directory, glob string, recursive bool) ([]Entry, *Error) {
	var result memoryFilesResult
	receive()
	defer lifted()
	importList(valid(store), valid(directory), flag(glob != ""), valid(glob), flag(recursive), unsafe.Pointer(&result))
	if err := result.err(); err != nil {
		return nil, err
	}
	memory := elements[memoryEntry](result.list())
	entries := make([]Entry, len(memory))
	for i, entry := range memory {
		entries[i] = Entry{entry.name.text(), entry.kind == 1}
	}
	return entries, nil
}

// SearchFiles is `files.search`; the boolean is true if matches were dropped.
func SearchFiles(store, directory string, query Query) ([]Match, bool, *Error) {
	var result memoryFilesResult
	receive()
	defer lifted()
	importSearch(
		valid(store), valid(directory), valid(query.Pattern), flag(query.CaseSensitive),
		flag(query.Glob != ""), valid(query.Glob), flag(query.Recursive), unsafe.Pointer(&result),
	)
	if err := result.err(); err != nil {
		return nil, false, err
	}
	memory := elements[memoryMatch](result.list())
	matches := make([]Match, len(memory))
	for i, match := range memory {
		matches[i] = Match{match.path.text(), match.snippet.text(), liftLines(match.lines)}
	}
	return matches, uint8(result.payload.rest[1]) != 0, nil
}

func liftLines(list span) []Line {
	memory := elements[memoryLine](list)
	lines := make([]Line, len(memory))
	for i, line := range memory {
		lines[i] = Line{line.number, line.text.text()}
	}
	return lines
}
