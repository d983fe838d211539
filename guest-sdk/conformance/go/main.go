// The conformance plugin in Go. See ../README.md for its tools.
package main

import "cofferdam"

func init() {
	cofferdam.Register(
		cofferdam.Tool("echo", "Returns its arguments.", echo),
		cofferdam.Tool("defaults", "Returns its arguments, all of which have defaults.", defaults),
		cofferdam.Tool("nullables", "Returns its arguments, which may be null.", nullables),
		cofferdam.Tool("nested", "Sums up an order.", nested),
		cofferdam.Tool("fail", "Reports a failure.", fail),
		cofferdam.Tool("crash", "Ends as a bug does.", crash),
		cofferdam.Tool("unicode", "Looks at the characters of a text.", unicode),
		cofferdam.Tool("big_numbers", "Returns numbers with all their digits.", bigNumbers),
		cofferdam.Tool("nothing", "Returns nothing.", nothing),
		cofferdam.Tool("word", "Returns a text.", word),
		cofferdam.Tool("blob", "Returns bytes.", blob),
		cofferdam.Tool("several", "Returns several contents.", several),
		cofferdam.Tool("store", "Works on a file store with the SDK.", store),
		cofferdam.Tool("missing", "Reads a file that is not there.", missing),
		cofferdam.Tool("local_file", "Reads a text file with the standard library.", localFile),
		cofferdam.Tool("progress", "Reports progress.", progress),
		cofferdam.Tool("log", "Says something to the client.", log),
		cofferdam.Tool("relay", "Calls another tool.", relay),
		cofferdam.Tool("secret", "Says how long a secret is.", secret),
		cofferdam.Tool("http", "Sends requests over HTTP and returns the last response.", sendRequests),
		cofferdam.Tool("annotated", "Has everything that a definition can have.", annotated,
			cofferdam.Title("An annotated tool"),
			cofferdam.Group("reading"),
			cofferdam.ReadOnly(true),
			cofferdam.Destructive(false),
			cofferdam.Idempotent(true),
			cofferdam.OpenWorld(false),
			cofferdam.OutputSchema(),
		),
	)
}

func main() {}
