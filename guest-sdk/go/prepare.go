package cofferdam

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// prepare decodes and encodes a sample of each type of the tools when the plugin is built:
// [encoding/json] looks at a type when it sees the first value of it, which takes longer than most
// calls. It calls no method of an author's type.
func prepare() {
	for _, tool := range registered {
		for _, of := range []reflect.Type{tool.input, tool.output} {
			value := reflect.New(of)
			if json.Unmarshal([]byte(sample(of, nil)), value.Interface()) == nil {
				_, _ = contentsOf(value.Elem().Interface())
			}
		}
	}
}

// customTypes are the interfaces of types with a JSON form of their own.
var customTypes = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	reflect.TypeFor[Content](),
}

// sample returns JSON with a value of each type in a type, except for those with methods that would
// be called. It is empty if there is none.
func sample(of reflect.Type, within []reflect.Type) string {
	for _, custom := range customTypes {
		if of.Implements(custom) || reflect.PointerTo(of).Implements(custom) {
			return ""
		}
	}
	switch kind := of.Kind(); {
	case kind == reflect.Bool:
		return "false"
	case kind == reflect.String && of != numberType:
		return `""`
	case kind >= reflect.Int && kind <= reflect.Float64:
		return "0"
	case kind == reflect.Pointer:
		return sample(of.Elem(), within)
	case kind == reflect.Slice && of.Elem().Kind() == reflect.Uint8:
		return `""`
	case kind == reflect.Slice || kind == reflect.Array:
		return "[" + sample(of.Elem(), within) + "]"
	case kind == reflect.Map && of.Key().Kind() == reflect.String:
		if item := sample(of.Elem(), within); item != "" {
			return `{"":` + item + `}`
		}
		return "{}"
	case kind == reflect.Struct && !slices.Contains(within, of):
		return sampleStruct(of, append(within, of))
	default:
		return ""
	}
}

func sampleStruct(of reflect.Type, within []reflect.Type) string {
	var members []string
	for _, field := range fieldsOf(of) {
		if value := sample(field.Type, within); value != "" {
			name, _ := marshal(field.name)
			members = append(members, name+":"+value)
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}
