// Package toolbox calls other tools that are granted to the plugin.
//
// A called tool runs with its own grants and limits, in its own sandbox. Its file changes belong to
// the call that made it: if that fails, the host drops them. Tools that need the user's approval
// cannot be called. The manifest of the plugin must request each tool: `tools = ["word_count"]`.
//
//	var counts struct{ Words int }
//	if err := toolbox.Call("word_count", map[string]any{"text": "to be or not to be"}, &counts); err != nil {
//		return nil, err
//	}
package toolbox

import (
	"encoding/json"
	"fmt"

	"cofferdam"
	"cofferdam/internal/abi"
	"cofferdam/internal/answer"
	"cofferdam/internal/shown"
)

// Errors of a call, besides a failure that the tool reports, which is a [*cofferdam.Failure]. Use
// [errors.Is].
var (
	// ErrUnknown means that no tool of this name is granted.
	ErrUnknown = shown.New("no tool of that name was granted")
	// ErrInvalidArguments means that the arguments do not match the tool's schema. The text of the
	// error names every problem.
	ErrInvalidArguments = shown.New("invalid arguments")
	// ErrEnded means that the tool ended with an error: a trap, a limit, a denial. See
	// [EndedError].
	ErrEnded = shown.New("the tool that was called has ended")
	// ErrTooDeep means that calls are nested too deeply.
	ErrTooDeep = shown.New("tools call each other too deeply")
)

// InvalidArgumentsError is an [ErrInvalidArguments].
type InvalidArgumentsError struct {
	// Problems names every problem.
	Problems string
}

func (err *InvalidArgumentsError) Error() string        { return err.Problems }
func (err *InvalidArgumentsError) ForModel() bool       { return true }
func (err *InvalidArgumentsError) Is(target error) bool { return target == ErrInvalidArguments }

// EndedError is an [ErrEnded].
type EndedError struct {
	// Type is the name of the error type, for example `Trap.Unreachable`.
	Type string
}

func (err *EndedError) Error() string        { return "the tool that was called ended as " + err.Type }
func (err *EndedError) ForModel() bool       { return true }
func (err *EndedError) Is(target error) bool { return target == ErrEnded }

// Granted is a granted tool.
type Granted struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
}

// List returns the granted tools.
func List() []Granted {
	definitions := abi.Tools()
	tools := make([]Granted, len(definitions))
	for i, it := range definitions {
		tools[i] = Granted{Name: it.Name, Title: it.Title, Description: it.Description}
		tools[i].InputSchema = json.RawMessage(it.InputSchema)
		if it.OutputSchema != "" {
			tools[i].OutputSchema = json.RawMessage(it.OutputSchema)
		}
	}
	return tools
}

// Call calls a tool and decodes its value into `result` as [json.Unmarshal] does: text is a JSON
// string, no items are null, and several items are an array. The arguments are a value that
// [json.Marshal] turns into an object.
func Call(name string, arguments, result any) error {
	contents, err := call(name, arguments)
	if err != nil {
		return err
	}
	value, err := answer.Value(contents)
	if err != nil {
		return fmt.Errorf("the result of `%s` cannot be read: %w", name, err)
	}
	if err := json.Unmarshal(value, result); err != nil {
		return fmt.Errorf("the result of `%s` is another one than expected: %w", name, err)
	}
	return nil
}

// Contents calls a tool and returns the items of its result.
func Contents(name string, arguments any) ([]cofferdam.Content, error) {
	contents, err := call(name, arguments)
	if err != nil {
		return nil, err
	}
	return answer.Contents(contents), nil
}

func call(name string, arguments any) ([]abi.Content, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments for `%s` cannot be written: %w", name, err)
	}
	contents, failure, failed := abi.CallTool(name, string(text))
	if failed == nil {
		return contents, nil
	}
	switch failed.Case {
	case abi.ToolboxUnknown:
		return nil, ErrUnknown
	case abi.ToolboxInvalidArguments:
		return nil, &InvalidArgumentsError{failed.Text}
	case abi.ToolboxFailed:
		return nil, answer.Failure(failure)
	case abi.ToolboxEnded:
		return nil, &EndedError{failed.Text}
	default:
		return nil, ErrTooDeep
	}
}
