package main

import (
	"testing"

	"cofferdam/cofferdamtest"
)

func TestGreet(t *testing.T) {
	for arguments, expected := range map[string]string{
		`{"name": "Ada"}`:                `"Hello, Ada!"`,
		`{"name": "Ada", "times": 2}`:    `"Hello, Ada! Hello, Ada!"`,
		`{"name": "Ada", "times": 1000}`: "1000 times is too often",
		`{}`:                             "Required argument 'name' was not supplied to 'greet'.",
	} {
		value, err := cofferdamtest.Call("greet", arguments)
		if err != nil {
			value = err.Error()
		}
		if value != expected {
			t.Errorf("greet %s: found %s, expected %s", arguments, value, expected)
		}
	}
}
