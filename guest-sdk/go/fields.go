package cofferdam

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// field is a field of a struct as [encoding/json] sees it.
type field struct {
	reflect.StructField
	name string
	// True if the tag contains omitempty or omitzero.
	omitted bool
}

// fieldsOf returns the fields in order; those of an embedded struct are at its position.
func fieldsOf(it reflect.Type) []field {
	var fields []field
	for i := range it.NumField() {
		of := it.Field(i)
		tag, options, _ := strings.Cut(of.Tag.Get("json"), ",")
		switch {
		case tag == "-" && options == "":
			continue
		case of.Anonymous && tag == "" && of.Type.Kind() == reflect.Struct:
			fields = append(fields, fieldsOf(of.Type)...)
			continue
		case !of.IsExported():
			continue
		case tag == "":
			tag = of.Name
		}
		words := strings.Split(options, ",")
		omitted := slices.Contains(words, "omitempty") || slices.Contains(words, "omitzero")
		fields = append(fields, field{of, tag, omitted})
	}
	return fields
}

func sortedNames(of map[string]json.RawMessage) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
