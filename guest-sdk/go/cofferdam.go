// Package cofferdam makes tools for Cofferdam of Go functions: plain functions in, one WebAssembly component out.
//
//	package main
//
//	import (
//		"strings"
//
//		"cofferdam"
//	)
//
//	type Repeat struct {
//		Text  string `json:"text" description:"The text to repeat."`
//		Times int    `json:"times" description:"How often." default:"2" minimum:"0" maximum:"100"`
//	}
//
//	func repeat(call *cofferdam.Call, in Repeat) (string, error) {
//		return strings.Repeat(in.Text, in.Times), nil
//	}
//
//	func init() {
//		cofferdam.Register(
//			cofferdam.Tool("repeat", "Repeats a text.", repeat, cofferdam.ReadOnly(true)),
//		)
//	}
//
//	func main() {}
//
// [Tool] says what can be a parameter and a result, [Failure] how a tool says that it could not do what was asked, [Call] what
// it knows of its call. The packages below do what needs a grant: files, secrets, toolbox, client. Package cofferdamtest calls
// tools as the host does, without a host.
//
// A plugin registers its tools in an init function. Its main function has to be there for the compiler, and nothing calls it.
//
// Every call gets a fresh instance: what a tool leaves in variables is gone at the next call, and all package variables and
// init functions of the program run again before each call. Keep them cheap.
package cofferdam
