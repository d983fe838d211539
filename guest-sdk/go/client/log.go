package client

import (
	"fmt"

	"cofferdam/internal/abi"
)

// Level says how much a line matters, as in MCP and syslog.
type Level uint8

// The words of RFC 5424.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelNotice
	LevelWarning
	LevelError
	LevelCritical
	LevelAlert
	LevelEmergency
)

// Log says a line to the client, which may show it to a person; what is printed to standard error stays in the host's record of
// the call. The host leaves out lines of more than 8 KiB, and what is too much.
func Log(level Level, message string) {
	abi.Log(uint8(level), message)
}

// Debugf is for whoever looks for the cause of something.
func Debugf(format string, arguments ...any) { Log(LevelDebug, fmt.Sprintf(format, arguments...)) }

// Infof says what goes on.
func Infof(format string, arguments ...any) { Log(LevelInfo, fmt.Sprintf(format, arguments...)) }

// Warningf says that something may be wrong.
func Warningf(format string, arguments ...any) { Log(LevelWarning, fmt.Sprintf(format, arguments...)) }

// Errorf says that something went wrong, although the tool goes on. What ends it is an error that it returns.
func Errorf(format string, arguments ...any) { Log(LevelError, fmt.Sprintf(format, arguments...)) }
