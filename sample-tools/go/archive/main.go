// The plugin archive reads archives without unpacking them.
package main

import "cofferdam"

func init() {
	cofferdam.Register(
		cofferdam.Tool("list_archive",
			"Lists what is in a zip, tar, tar.gz, tar.bz2 or gz file, with sizes and dates, and says what looks dangerous: paths that lead out, "+
				"links, entries that unpack to far more than they are. Unpacks nothing.",
			listArchive, cofferdam.ReadOnly(true), cofferdam.Idempotent(true), cofferdam.OutputSchema()),
		cofferdam.Tool("read_archive_entry",
			"Reads one file in an archive, or a part of it: text as text, anything else as bytes.",
			readEntry, cofferdam.ReadOnly(true), cofferdam.Idempotent(true)),
		cofferdam.Tool("search_archive",
			"Searches the text files in an archive for a regular expression and gives the lines that match.",
			searchArchive, cofferdam.ReadOnly(true), cofferdam.Idempotent(true), cofferdam.OutputSchema()),
	)
}

func main() {}
