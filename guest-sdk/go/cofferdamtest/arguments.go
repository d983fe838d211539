//go:build !wasip1

package cofferdamtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// schema contains the parts of a schema that this package uses.
type schema struct {
	Properties map[string]schema          `json:"properties"`
	Required   []string                   `json:"required"`
	Items      *schema                    `json:"items"`
	Additional *schema                    `json:"additionalProperties"`
	Default    json.RawMessage            `json:"default"`
	Enum       []json.RawMessage          `json:"enum"`
	Defs       map[string]json.RawMessage `json:"$defs"`
}

// decoder decodes arguments by a schema, as the host does.
type decoder struct {
	tool string
}

func decode(tool, text string, arguments []byte) (string, error) {
	var of schema
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		return "", fmt.Errorf("the schema of `%s` is not understood: %w", tool, err)
	}
	if !isObject(arguments) {
		return "", fmt.Errorf("Arguments for '%s' are not a JSON object.", tool)
	}
	decoded, err := (&decoder{tool}).value(of, arguments, "")
	return string(decoded), err
}

func (d *decoder) value(of schema, value json.RawMessage, where string) (json.RawMessage, error) {
	switch {
	case len(of.Enum) > 0 && !slices.ContainsFunc(of.Enum, func(one json.RawMessage) bool { return same(one, value) }):
		words := string(bytes.Join(asBytes(of.Enum), []byte(", ")))
		return nil, fmt.Errorf("Argument '%s' of '%s' is %s and has to be one of %s.", where, d.tool, value, words)
	case of.Properties != nil && isObject(value):
		return d.object(of, value, where)
	case of.Additional != nil && isObject(value):
		return d.each(*of.Additional, value, where)
	case of.Items != nil && bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")):
		return d.list(*of.Items, value, where)
	}
	return value, nil
}

func (d *decoder) object(of schema, value json.RawMessage, where string) (json.RawMessage, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(value, &given); err != nil {
		return nil, err
	}
	decoded := map[string]json.RawMessage{}
	for name, property := range of.Properties {
		at := strings.TrimPrefix(where+"."+name, ".")
		one, is := given[name]
		switch {
		case is && !same(one, []byte("null")):
			filled, err := d.value(property, one, at)
			if err != nil {
				return nil, err
			}
			decoded[name] = filled
		case property.Default != nil:
			decoded[name] = property.Default
		case slices.Contains(of.Required, name):
			return nil, fmt.Errorf("Required argument '%s' was not supplied to '%s'.", at, d.tool)
		}
	}
	return json.Marshal(decoded)
}

func (d *decoder) each(of schema, value json.RawMessage, where string) (json.RawMessage, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(value, &given); err != nil {
		return nil, err
	}
	for name, one := range given {
		filled, err := d.value(of, one, where+"."+name)
		if err != nil {
			return nil, err
		}
		given[name] = filled
	}
	return json.Marshal(given)
}

func (d *decoder) list(of schema, value json.RawMessage, where string) (json.RawMessage, error) {
	var given []json.RawMessage
	if err := json.Unmarshal(value, &given); err != nil {
		return nil, err
	}
	for i, one := range given {
		filled, err := d.value(of, one, fmt.Sprintf("%s[%d]", where, i))
		if err != nil {
			return nil, err
		}
		given[i] = filled
	}
	return json.Marshal(given)
}

func isObject(value []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) && json.Valid(value)
}

func same(a, b json.RawMessage) bool {
	return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
}

func asBytes(values []json.RawMessage) [][]byte {
	all := make([][]byte, len(values))
	for i, value := range values {
		all[i] = value
	}
	return all
}
