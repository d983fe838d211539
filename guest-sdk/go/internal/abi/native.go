//go:build !wasip1

package abi

// Host implements the imports outside a component. It has one method for each import.
type Host interface {
	CallID() string
	CallSession() string
	TimeLeft() uint64
	CallCancelled() bool
	Progress(done, total float64, message string)

	Unexpected(typeName, message string) string

	Secret(name string) (string, bool)

	Tools() []Definition
	CallTool(name, arguments string) ([]Content, *Failure, *Error)

	Stores() []Store
	StatFile(store, path string) (Stat, *Error)
	ReadFile(store, path string, offset, length uint64) ([]byte, *Error)
	WriteFile(store, path string, content []byte, replace bool) *Error
	DeleteFile(store, path string) *Error
	CreateDirectory(store, path string) *Error
	ListFiles(store, directory, glob string, recursive bool) ([]Entry, *Error)
	SearchFiles(store, directory string, query Query) ([]Match, bool, *Error)

	CanAsk(kind uint8) bool
	Ask(questions []Question) ([]Answer, *Error)
	Log(level uint8, message string)
}

// Native is the current host. A test sets it for the duration of a call.
var Native Host = Nobody{}

// Nobody is a host that grants nothing and drops all reports.
type Nobody struct{}

func (Nobody) CallID() string                    { return "" }
func (Nobody) CallSession() string               { return "" }
func (Nobody) TimeLeft() uint64                  { return 1<<63 - 1 }
func (Nobody) CallCancelled() bool               { return false }
func (Nobody) Progress(float64, float64, string) {}
func (Nobody) Secret(string) (string, bool)      { return "", false }
func (Nobody) Tools() []Definition               { return nil }
func (Nobody) Stores() []Store                   { return nil }
func (Nobody) CanAsk(uint8) bool                 { return false }
func (Nobody) Log(uint8, string)                 {}

func (Nobody) Unexpected(typeName, message string) string {
	return typeName + ": " + message
}

func (Nobody) CallTool(string, string) ([]Content, *Failure, *Error) {
	return nil, nil, &Error{Case: ToolboxUnknown}
}

func (Nobody) Ask([]Question) ([]Answer, *Error) {
	return nil, &Error{Case: ClientUnsupported}
}

var unknownStore = &Error{Case: FilesUnknownStore}

func (Nobody) StatFile(string, string) (Stat, *Error)                   { return Stat{}, unknownStore }
func (Nobody) ReadFile(string, string, uint64, uint64) ([]byte, *Error) { return nil, unknownStore }
func (Nobody) WriteFile(string, string, []byte, bool) *Error            { return unknownStore }
func (Nobody) DeleteFile(string, string) *Error                         { return unknownStore }
func (Nobody) CreateDirectory(string, string) *Error                    { return unknownStore }
func (Nobody) ListFiles(string, string, string, bool) ([]Entry, *Error) { return nil, unknownStore }
func (Nobody) SearchFiles(string, string, Query) ([]Match, bool, *Error) {
	return nil, false, unknownStore
}

func CallID() string                               { return Native.CallID() }
func CallSession() string                          { return Native.CallSession() }
func TimeLeft() uint64                             { return Native.TimeLeft() }
func CallCancelled() bool                          { return Native.CallCancelled() }
func Progress(done, total float64, message string) { Native.Progress(done, total, message) }
func Secret(name string) (string, bool)            { return Native.Secret(name) }
func Tools() []Definition                          { return Native.Tools() }
func Stores() []Store                              { return Native.Stores() }
func CanAsk(kind uint8) bool                       { return Native.CanAsk(kind) }
func Ask(questions []Question) ([]Answer, *Error)  { return Native.Ask(questions) }
func Log(level uint8, message string)              { Native.Log(level, message) }
func DeleteFile(store, path string) *Error         { return Native.DeleteFile(store, path) }
func CreateDirectory(store, path string) *Error    { return Native.CreateDirectory(store, path) }

func Unexpected(typeName, message string) string {
	return Native.Unexpected(typeName, message)
}

func CallTool(name, arguments string) ([]Content, *Failure, *Error) {
	return Native.CallTool(name, arguments)
}

func StatFile(store, path string) (Stat, *Error) {
	return Native.StatFile(store, path)
}

func ReadFile(store, path string, offset, length uint64) ([]byte, *Error) {
	return Native.ReadFile(store, path, offset, length)
}

func WriteFile(store, path string, content []byte, replace bool) *Error {
	return Native.WriteFile(store, path, content, replace)
}

func ListFiles(store, directory, glob string, recursive bool) ([]Entry, *Error) {
	return Native.ListFiles(store, directory, glob, recursive)
}

func SearchFiles(store, directory string, query Query) ([]Match, bool, *Error) {
	return Native.SearchFiles(store, directory, query)
}
