// The plugin {{name}}.
package main

import (
	"strings"

	"cofferdam"
)

// Greeting contains the arguments of greet. Each field is an argument.
type Greeting struct {
	Name  string `json:"name" description:"Name of the person to greet."`
	Times int    `json:"times" description:"Number of greetings; at most 10." default:"1" minimum:"1"`
}

func greet(_ *cofferdam.Call, in Greeting) (string, error) {
	if in.Times > 10 {
		return "", cofferdam.Failf("%d times is too often", in.Times).Suggest("pass 10 or less")
	}
	greetings := make([]string, in.Times)
	for i := range greetings {
		greetings[i] = "Hello, " + in.Name + "!"
	}
	return strings.Join(greetings, " "), nil
}

func init() {
	cofferdam.Register(
		cofferdam.Tool("greet", "Greets a person by name, once or several times.", greet,
			cofferdam.ReadOnly(true),
			cofferdam.Idempotent(true),
		),
	)
}

// main is required by the compiler and never called.
func main() {}
