package cofferdam

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"cofferdam/internal/abi"
)

// None is the input of a tool without parameters, or the output of a tool whose result is null.
type None struct{}

// Function is a tool of a plugin, made by [Tool].
type Function struct {
	name        string
	title       string
	description string
	group       string
	annotations abi.Annotations
	input       reflect.Type
	output      reflect.Type
	hasOutput   bool
	run         func(arguments string) ([]abi.Content, error)
}

// Option is an option of a tool.
type Option func(*Function)

// Tool makes a tool of a function. The name has 1 to 128 characters from `A-Z a-z 0-9 _ . -` and is
// unique within the plugin. The description tells the model what the tool does and when to use it,
// in at most 4096 bytes; the model knows nothing else about the tool.
//
// # Parameters
//
// The exported fields of the struct Input are the parameters, named by their json tags as in
// [encoding/json].
//
//	field                                the model
//	Name T                               must send it
//	Name T `default:"…"`                 may omit it or send null: the default
//	Name *T                              may omit it or send null: nil
//	Name T `json:"name,omitempty"`       may omit it: the zero value (omitzero is the same)
//
// Other tags are part of the schema that the model sees and that the host checks before the tool
// runs:
//
//	description:"What it is."            the more exact, the better the calls
//	default:"3"                          JSON, or a plain string for a field that is one
//	enum:"open,paid"                     the allowed strings; of a slice, for its items
//	minimum:"1" maximum:"100"            for numbers
//
// T is a bool, a number, a string, a slice, an array, a map with string keys, or a struct of those.
// []byte is a base64 string, [encoding/json.RawMessage] and any accept every value (any loses
// digits of large integers), [time.Time] is an RFC 3339 string, a type that implements
// [encoding.TextUnmarshaler] is a string, and a type that implements [Schemer] returns its own
// schema. For a type without a JSON form, the program panics with the name of the field when the
// plugin is installed or tested.
//
// # Results
//
//	Output                               result
//	string                               a string
//	None                                 null
//	Content and its implementations      exactly this item
//	[]Content                            all of these items
//	any other type, or a pointer to it   a JSON value; a nil slice is null in JSON
//
// An error becomes a failure, whose text the model sees if it is a [*Failure]. A panic ends the program, and
// the model sees only that it has ended: return errors for expected failures.
func Tool[Input, Output any](
	name, description string, function func(*Call, Input) (Output, error), options ...Option,
) *Function {
	tool := &Function{
		name:        name,
		description: description,
		input:       reflect.TypeFor[Input](),
		output:      reflect.TypeFor[Output](),
	}
	tool.run = func(arguments string) ([]abi.Content, error) {
		input := new(Input)
		if err := tool.decode(arguments, input); err != nil {
			return nil, err
		}
		output, err := function(&Call{}, *input)
		if err != nil {
			return nil, err
		}
		return contentsOf(output)
	}
	for _, option := range options {
		option(tool)
	}
	return tool
}

// Title sets a display name for users.
func Title(title string) Option {
	return func(tool *Function) { tool.title = title }
}

// Group puts the tool in a group of this name, for hosts that offer the tools of a plugin by group.
// The name has 1 to 64 characters from `A-Z a-z 0-9 _ . -`.
func Group(name string) Option {
	return func(tool *Function) { tool.group = name }
}

// ReadOnly sets whether the tool changes nothing. This and the options below are hints for
// approvals. They grant nothing, and a missing hint means unknown.
func ReadOnly(is bool) Option {
	return func(tool *Function) { tool.annotations.ReadOnly = &is }
}

// Destructive sets whether the tool may destroy something: delete, overwrite, send.
func Destructive(is bool) Option {
	return func(tool *Function) { tool.annotations.Destructive = &is }
}

// Idempotent sets whether a second call with the same arguments has no further effect.
func Idempotent(is bool) Option {
	return func(tool *Function) { tool.annotations.Idempotent = &is }
}

// OpenWorld sets whether the tool accesses systems outside the host, such as the network.
func OpenWorld(is bool) Option {
	return func(tool *Function) { tool.annotations.OpenWorld = &is }
}

// LongRunning sets whether the tool may take minutes.
func LongRunning(is bool) Option {
	return func(tool *Function) { tool.annotations.LongRunning = &is }
}

// OutputSchema publishes the schema of the output type. The host checks each result against it:
// slices and maps may be null, a returned pointer may not.
func OutputSchema() Option {
	return func(tool *Function) { tool.hasOutput = true }
}

// registered contains the tools in the order of their registration.
var registered []*Function

// Register adds tools to the plugin: at most 128, with unique names. Call it in an init function.
func Register(tools ...*Function) {
	if registered == nil {
		abi.Preparations = append(abi.Preparations, prepare)
	}
	registered = append(registered, tools...)
	abi.List, abi.Serve, abi.Outcome = definitions, serve, outcome
}

// definitions makes the schemas. They are not made for calls.
func definitions() []abi.Definition {
	all := make([]abi.Definition, len(registered))
	for i, tool := range registered {
		all[i] = tool.definition()
	}
	return all
}

// InputSchema returns the JSON Schema of the tool's arguments. It panics if a type has no form in
// JSON.
func (tool *Function) InputSchema() string {
	return inputSchema(tool.name, tool.group, tool.input)
}

func (tool *Function) definition() abi.Definition {
	definition := abi.Definition{
		Name:        tool.name,
		Title:       tool.title,
		Description: tool.description,
		InputSchema: tool.InputSchema(),
		Annotations: tool.annotations,
	}
	if tool.hasOutput {
		definition.OutputSchema = outputSchema(tool.name, tool.output)
	}
	return definition
}

func serve(name, arguments string) ([]abi.Content, *abi.Failure) {
	for _, tool := range registered {
		if tool.name != name {
			continue
		}
		contents, err := tool.run(arguments)
		if err != nil {
			return nil, failureOf(err)
		}
		return contents, nil
	}
	return nil, failureOf(Failf("there is no tool `%s`", name))
}

// outcome converts the result of a function for the host.
func outcome(output any, err error) ([]abi.Content, *abi.Failure) {
	var contents []abi.Content
	if err == nil {
		contents, err = contentsOf(output)
	}
	if err != nil {
		return nil, failureOf(err)
	}
	return contents, nil
}

// decode decodes the model's arguments. The host has already checked them and filled in the
// defaults, so errors are not expected here. An incorrect host gets a failure with a message.
func (tool *Function) decode(arguments string, input any) error {
	err := json.Unmarshal([]byte(arguments), input)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType) && wrongType.Field != "":
		err = fmt.Errorf("Argument '%s' of '%s' cannot be used: it is %s", wrongType.Field, tool.name, wrongType.Value)
	default:
		err = fmt.Errorf("Arguments for '%s' cannot be used: %w", tool.name, err)
	}
	return &Failure{Message: err.Error() + ".", Retry: RetryCannotHelp}
}
