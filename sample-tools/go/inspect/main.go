// The plugin inspect reports what certificates, addresses and dates really say. Models guess these;
// the standard library handles them exactly.
package main

import (
	// Contains the time zones, which a component cannot read from the machine.
	_ "time/tzdata"

	"cofferdam"
)

func init() {
	cofferdam.Register(
		cofferdam.Tool("inspect_certificates",
			"Reads X.509 certificates (PEM or DER, one or a chain): subject, names, validity, key, fingerprint, and what is wrong with "+
				"them at a date or for a host. Does not know which authorities a computer trusts.",
			inspectCertificates, cofferdam.ReadOnly(true), cofferdam.Idempotent(true), cofferdam.OutputSchema()),
		cofferdam.Tool("inspect_url",
			"Takes a URL apart: scheme, host, port, path, query, fragment. Decodes internationalised hosts and says what looks like a "+
				"trick: look-alike letters, hidden characters, disguised IP addresses, credentials. Connects to nothing.",
			inspectURL, cofferdam.ReadOnly(true), cofferdam.Idempotent(true), cofferdam.OutputSchema()),
		cofferdam.Tool("inspect_date",
			"Reads a date or a time in many forms and says which moment it is: in UTC and in time zones, weekday, ISO week, and how far it "+
				"is from another one.",
			inspectDate, cofferdam.ReadOnly(true), cofferdam.Idempotent(true), cofferdam.OutputSchema()),
	)
}

func main() {}
