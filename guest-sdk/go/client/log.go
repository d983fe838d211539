package client

import (
	"fmt"

	"cofferdam/internal/abi"
)

// Level is the severity of a log line, as in MCP and syslog.
type Level uint8

// The severities of RFC 5424.
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

// Log sends a log line to the client, which may show it to the user. Output on standard error stays
// in the host's record of the call. The host drops lines of more than 8 KiB, and lines that are too
// many.
func Log(level Level, message string) {
	abi.Log(uint8(level), message)
}

// Debugf logs a line for debugging.
func Debugf(format string, arguments ...any) { Log(LevelDebug, fmt.Sprintf(format, arguments...)) }

// Infof logs a normal event.
func Infof(format string, arguments ...any) { Log(LevelInfo, fmt.Sprintf(format, arguments...)) }

// Warningf logs something that may be wrong.
func Warningf(format string, arguments ...any) { Log(LevelWarning, fmt.Sprintf(format, arguments...)) }

// Errorf logs an error after which the tool continues. To end the tool, return an error.
func Errorf(format string, arguments ...any) { Log(LevelError, fmt.Sprintf(format, arguments...)) }
