//go:build !wasip1

// Package cofferdamtest calls tools as the host does, with JSON, but without a host.
//
//	func TestRepeat(t *testing.T) {
//		value, err := cofferdamtest.Call("repeat", `{"text": "ab"}`)
//		if err != nil || value != `"abab"` {
//			t.Errorf("got %s, %v", value, err)
//		}
//	}
//
// Arguments are decoded by the published schema: defaults are filled in, null and absent are alike,
// undeclared keys are dropped, and missing arguments and values outside an enum are errors. Other
// steps of the host do not happen: converting "2" to 2, checking bounds and patterns.
//
// [Host] grants stores in memory, secrets, other tools, and answers to questions. Files that a tool
// opens with package os are those of the machine: pass it the path of a [testing.T.TempDir].
//
// Calls run one at a time, because parallel tests would share the host.
package cofferdamtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"cofferdam"
	"cofferdam/client"
	"cofferdam/internal/abi"
	"cofferdam/internal/answer"
)

// Host contains the grants of a tool and records its reports. The zero value grants nothing.
type Host struct {
	// Files contains the stores by name, each with its files by path. Stores are writable. As in
	// the host, the changes of a failed call are dropped.
	Files map[string]map[string]string
	// ReadOnly names stores that are read-only.
	ReadOnly []string
	// Secrets contains the granted secrets by name.
	Secrets map[string]string
	// Tools contains other tools. The result of a function is treated like the result of a tool.
	Tools map[string]func(arguments json.RawMessage) (any, error)
	// Answer answers the tool's questions. If it is nil, questions are unsupported. Its error
	// should be one of package client.
	Answer func(client.Question) (client.Answer, error)
	// Session is the session of the call.
	Session string
	// TimeLeft is the time left for the call; 0 means unlimited.
	TimeLeft time.Duration
	// Cancelled is true if the caller has canceled the call.
	Cancelled bool

	// Progress contains the reports of calls.
	Progress []Progress
	// Log contains the log lines of calls.
	Log []Line
}

// Progress is a progress report.
type Progress struct {
	Done, Total float64
	Message     string
}

// Line is a log line.
type Line struct {
	Level   client.Level
	Message string
}

// Call calls a tool without grants. See [Host.Call].
func Call(tool string, arguments any) (string, error) {
	return new(Host).Call(tool, arguments)
}

// Call calls a registered tool and returns the value that a model would see, as JSON: null, a
// string, or a JSON value; several items as an array, a blob as its media type and its length.
//
// The arguments are JSON (a string, []byte or [json.RawMessage]), or a value that [json.Marshal]
// turns into an object. The error is a failure of the tool, always a [*cofferdam.Failure], or
// describes invalid arguments.
func (host *Host) Call(tool string, arguments any) (string, error) {
	contents, err := host.serve(tool, arguments)
	if err != nil {
		return "", err
	}
	value, err := answer.Value(contents)
	return string(value), err
}

// Contents calls a registered tool and returns the items of its result. See [Host.Call].
func (host *Host) Contents(tool string, arguments any) ([]cofferdam.Content, error) {
	contents, err := host.serve(tool, arguments)
	if err != nil {
		return nil, err
	}
	return answer.Contents(contents), nil
}

// Definition is the published definition of a tool.
type Definition struct {
	Name         string
	Title        string
	Description  string
	InputSchema  string
	OutputSchema string
}

// Definitions returns the definitions that the plugin publishes. It panics if a type has no form in
// JSON, in which case the host would not install the plugin, so call it in a test.
func Definitions() []Definition {
	var all []Definition
	for _, it := range definitions() {
		all = append(all, Definition{it.Name, it.Title, it.Description, it.InputSchema, it.OutputSchema})
	}
	return all
}

func definitions() []abi.Definition {
	if abi.List == nil {
		return nil
	}
	return abi.List()
}

// serving is locked during a call, because the SDK has one host at a time.
var serving sync.Mutex

func (host *Host) serve(tool string, arguments any) ([]abi.Content, error) {
	serving.Lock()
	defer serving.Unlock()
	text, err := textOf(arguments)
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions() {
		if definition.Name != tool {
			continue
		}
		decoded, err := decode(tool, definition.InputSchema, text)
		if err != nil {
			return nil, err
		}
		return host.run(tool, decoded)
	}
	return nil, fmt.Errorf("there is no tool `%s`; an init function has to register it", tool)
}

func (host *Host) run(tool, arguments string) ([]abi.Content, error) {
	before := make(map[string]map[string]string, len(host.Files))
	for name, files := range host.Files {
		before[name] = maps.Clone(files)
	}
	abi.Native = &native{Host: host}
	defer func() { abi.Native = abi.Nobody{} }()
	contents, failure := abi.Serve(tool, arguments)
	if failure != nil {
		host.Files = before
		return nil, answer.Failure(failure)
	}
	return contents, nil
}

func textOf(arguments any) ([]byte, error) {
	switch arguments := arguments.(type) {
	case nil:
		return []byte("{}"), nil
	case string:
		return []byte(arguments), nil
	case []byte:
		return arguments, nil
	default:
		text, err := json.Marshal(arguments)
		if err != nil {
			return nil, errors.Join(errors.New("the arguments cannot be written as JSON"), err)
		}
		return text, nil
	}
}
