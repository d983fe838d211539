package cofferdam

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Schemer is a type that returns its own schema. The method is called on the zero value.
type Schemer interface {
	// JSONSchema returns a JSON Schema 2020-12 as JSON.
	JSONSchema() string
}

// Schemas are inlined, because several model APIs mishandle `$ref`. Only recursive types stay in
// `$defs`.
type schemas struct {
	tool string
	// The group of the tool, which is a part of its input schema; it may be empty.
	group string
	// True for schemas of results, in which every field that is always written is required.
	output bool
	// The structs around the current type, for detecting recursion.
	within []reflect.Type
	// The recursive structs with their names.
	recursive map[reflect.Type]string
	defined   object
}

// object is a JSON object that keeps the order of its properties.
type object []property

type property struct {
	name  string
	value any
}

// MarshalJSON encodes the properties in order.
func (it object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, property := range it {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := marshal(property.name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(property.value)
		if err != nil {
			return nil, err
		}
		text = append(append(append(text, name...), ':'), value...)
	}
	return append(text, '}'), nil
}

func inputSchema(tool, group string, input reflect.Type) string {
	if input.Kind() != reflect.Struct {
		panic(fmt.Sprintf("cofferdam: the input of tool `%s` is %s, which is not a struct", tool, input))
	}
	return (&schemas{tool: tool, group: group}).whole(input)
}

// outputSchema returns the schema of a result. For a pointer, it is the schema of its target: a
// tool returns nil only with an error, and clients expect an object at the top.
func outputSchema(tool string, output reflect.Type) string {
	if output.Kind() == reflect.Pointer {
		output = output.Elem()
	}
	return (&schemas{tool: tool, output: true}).whole(output)
}

func (s *schemas) whole(of reflect.Type) string {
	s.recursive = map[reflect.Type]string{}
	schema := s.of(of, "")
	if len(s.recursive) > 0 {
		// Runs again, now that the recursive types, which cannot be inlined, are known.
		s.defined = nil
		schema = append(s.of(of, ""), property{"$defs", s.defined})
	}
	if s.group != "" {
		schema = append(schema, property{"x-group", s.group})
	}
	text, err := marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("cofferdam: the schema of tool `%s` cannot be written: %v", s.tool, err))
	}
	return text
}

var (
	timeType            = reflect.TypeFor[time.Time]()
	rawType             = reflect.TypeFor[json.RawMessage]()
	numberType          = reflect.TypeFor[json.Number]()
	schemerType         = reflect.TypeFor[Schemer]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
)

// of returns the schema of a type; where names the field in messages.
func (s *schemas) of(it reflect.Type, where string) object {
	switch {
	case it.Implements(schemerType) && it.Kind() != reflect.Pointer:
		text := reflect.Zero(it).Interface().(Schemer).JSONSchema()
		return s.written(text, where)
	case it == timeType:
		return object{{"type", "string"}, {"format", "date-time"}}
	case it == rawType:
		return object{}
	case it == numberType:
		return object{{"type", "number"}}
	case s.isText(it):
		return object{{"type", "string"}}
	}
	switch it.Kind() {
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Float32:
		return object{{"type", "number"}, {"format", "float"}}
	case reflect.Float64:
		return object{{"type", "number"}}
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}, {"format", "int64"}}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		limit := int64(1) << (it.Bits() - 1)
		return object{{"type", "integer"}, {"minimum", -limit}, {"maximum", limit - 1}}
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return object{{"type", "integer"}, {"minimum", 0}}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return object{{"type", "integer"}, {"minimum", 0}, {"maximum", uint64(1)<<it.Bits() - 1}}
	case reflect.Interface:
		if it.NumMethod() == 0 {
			return object{}
		}
	case reflect.Pointer:
		return nullable(s.of(it.Elem(), where))
	case reflect.Slice:
		return s.slice(it, where)
	case reflect.Array:
		return append(s.list(it, where), property{"minItems", it.Len()}, property{"maxItems", it.Len()})
	case reflect.Map:
		if it.Key().Kind() == reflect.String {
			return object{{"type", s.maybeNil("object")}, {"additionalProperties", s.of(it.Elem(), where)}}
		}
	case reflect.Struct:
		return s.structure(it, where)
	}
	panic(s.complaint(where, fmt.Sprintf("its type %s has no form in JSON", it)))
}

// isText reports whether a type encodes itself as a string, or decodes itself from one.
func (s *schemas) isText(it reflect.Type) bool {
	if it.Kind() == reflect.Interface {
		return false
	}
	if s.output {
		return it.Implements(textMarshalerType)
	}
	return reflect.PointerTo(it).Implements(textUnmarshalerType)
}

func (s *schemas) slice(it reflect.Type, where string) object {
	if it.Elem().Kind() == reflect.Uint8 {
		return object{{"type", s.maybeNil("string")}, {"contentEncoding", "base64"}}
	}
	return s.list(it, where)
}

func (s *schemas) list(it reflect.Type, where string) object {
	kind := any("array")
	if it.Kind() == reflect.Slice {
		kind = s.maybeNil("array")
	}
	return object{{"type", kind}, {"items", s.of(it.Elem(), where)}}
}

// maybeNil adds null in a result, because a nil slice or map is encoded as null.
func (s *schemas) maybeNil(kind string) any {
	if s.output {
		return []string{kind, "null"}
	}
	return kind
}

func (s *schemas) structure(it reflect.Type, where string) object {
	if slices.Contains(s.within, it) {
		s.recursive[it] = s.nameOf(it)
		return reference(s.recursive[it])
	}
	s.within = append(s.within, it)
	schema := s.properties(it, where)
	s.within = s.within[:len(s.within)-1]
	name, is := s.recursive[it]
	if !is {
		return schema
	}
	s.defined = s.defined.with(name, schema)
	if len(s.within) == 0 {
		// The outermost type is inlined in addition to its definition.
		return schema
	}
	return reference(name)
}

func reference(name string) object {
	return object{{"$ref", "#/$defs/" + name}}
}

// nameOf returns a name for a type, which must be unique and need no escapes in a reference.
func (s *schemas) nameOf(it reflect.Type) string {
	if name, is := s.recursive[it]; is {
		return name
	}
	name := strings.Map(func(letter rune) rune {
		if letter == '_' || letter < unicode.MaxASCII && (unicode.IsLetter(letter) || unicode.IsDigit(letter)) {
			return letter
		}
		return '_'
	}, it.Name())
	for _, taken := range s.recursive {
		if taken == name {
			return fmt.Sprintf("%s_%d", name, len(s.recursive)+1)
		}
	}
	return name
}

func (s *schemas) properties(it reflect.Type, where string) object {
	properties, required := object{}, []string{}
	for _, field := range fieldsOf(it) {
		at := strings.TrimPrefix(where+"."+field.name, ".")
		schema := s.of(field.Type, at)
		schema = s.tagged(schema, field, at)
		properties = append(properties, property{field.name, schema})
		if s.isRequired(field) {
			required = append(required, field.name)
		}
	}
	schema := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		schema = append(schema, property{"required", required})
	}
	return schema
}

func (s *schemas) isRequired(field field) bool {
	if s.output {
		return !field.omitted
	}
	_, hasDefault := field.Tag.Lookup("default")
	return !field.omitted && !hasDefault && field.Type.Kind() != reflect.Pointer
}

// tagged adds the tags of a field.
func (s *schemas) tagged(schema object, field field, where string) object {
	if words, is := field.Tag.Lookup("enum"); is {
		schema = s.choice(schema, strings.Split(words, ","), where)
	}
	for _, bound := range []string{"minimum", "maximum"} {
		text, is := field.Tag.Lookup(bound)
		if !is {
			continue
		}
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			panic(s.complaint(where, fmt.Sprintf("its %s `%s` is not a number", bound, text)))
		}
		schema = schema.with(bound, json.Number(text))
	}
	if text, is := field.Tag.Lookup("description"); is {
		schema = schema.with("description", text)
	}
	if text, is := field.Tag.Lookup("default"); is && !s.output {
		schema = schema.with("default", s.fallback(text, field.Type, where))
	}
	return schema
}

// choice restricts a string, or the items of a list, to an enum.
func (s *schemas) choice(schema object, words []string, where string) object {
	for i, property := range schema {
		switch {
		case property.name == "items":
			schema[i].value = s.choice(property.value.(object), words, where)
			return schema
		case property.name == "type" && property.value == "string":
			return schema.with("enum", words)
		case property.name == "type" && fmt.Sprint(property.value) == "[string null]":
			all := make([]any, 0, len(words)+1)
			for _, word := range words {
				all = append(all, word)
			}
			return schema.with("enum", append(all, nil))
		}
	}
	panic(s.complaint(where, "it has the tag `enum` and is not a string"))
}

// fallback returns the default as JSON.
func (s *schemas) fallback(text string, of reflect.Type, where string) any {
	value := reflect.New(of)
	if json.Unmarshal([]byte(text), value.Interface()) == nil {
		return json.RawMessage(text)
	}
	quoted, err := marshal(text)
	if err == nil && json.Unmarshal([]byte(quoted), value.Interface()) == nil {
		return json.RawMessage(quoted)
	}
	panic(s.complaint(where, fmt.Sprintf("its default `%s` is not a value of %s", text, of)))
}

func (s *schemas) written(text, where string) object {
	decoder := json.NewDecoder(strings.NewReader(text))
	var whole map[string]json.RawMessage
	if err := decoder.Decode(&whole); err != nil {
		panic(s.complaint(where, fmt.Sprintf("its JSONSchema is not a JSON object: %v", err)))
	}
	schema := object{}
	for _, name := range sortedNames(whole) {
		schema = append(schema, property{name, whole[name]})
	}
	return schema
}

func (s *schemas) complaint(where, what string) string {
	if where == "" {
		return fmt.Sprintf("cofferdam: tool `%s`: %s", s.tool, what)
	}
	return fmt.Sprintf("cofferdam: tool `%s`, field `%s`: %s", s.tool, where, what)
}

// with replaces or adds a property.
func (it object) with(name string, value any) object {
	for i := range it {
		if it[i].name == name {
			it[i].value = value
			return it
		}
	}
	return append(it, property{name, value})
}

// nullable also allows null. A schema without a type already allows it, or is a reference.
func nullable(schema object) object {
	for i, property := range schema {
		switch {
		case property.name == "type":
			if kind, is := property.value.(string); is {
				schema[i].value = []string{kind, "null"}
			}
			return schema
		case property.name == "$ref":
			return object{{"anyOf", []object{schema, {{"type", "null"}}}}}
		}
	}
	return schema
}
