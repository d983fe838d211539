// Package cofferdam makes tools for Cofferdam of Go functions: plain functions in, one WebAssembly
// component out.
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
//			cofferdam.Tool("repeat", "Repeats a string.", repeat, cofferdam.ReadOnly(true)),
//		)
//	}
//
//	func main() {}
//
// [Tool] documents parameters and results, [Failure] is the error of a tool that could not do what
// was asked, and [Call] is the current call. The packages below provide what needs a grant: files,
// secrets, toolbox, client. Package cofferdamtest calls tools as the host does, without a host.
//
// A plugin registers its tools in an init function. The compiler requires a main function, which is
// never called.
//
// Package variables are initialized and init functions run once, while the plugin is built, without
// files, environment, network and clock. Every call gets a fresh instance that begins with what they
// have left, and a call does not see what an earlier call has changed.
package cofferdam
