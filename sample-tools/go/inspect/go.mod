module example.com/inspect

go 1.24

require cofferdam v0.0.0

replace cofferdam => ../../../guest-sdk/go
