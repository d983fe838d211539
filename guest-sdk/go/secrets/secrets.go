// Package secrets reads the secrets that are granted to the plugin by name.
//
// A plugin that only sends a secret in a request does not need this package: the user can bind the
// secret to the request, and the plugin never sees it. The manifest of the plugin must request each
// secret: `secrets = ["github"]`.
package secrets

import "cofferdam/internal/abi"

// Get returns the value of a secret. It returns false if no secret of this name is granted, whether
// it exists or not. The host redacts the value wherever it detects it in data that leaves the
// call.
func Get(name string) (value string, granted bool) {
	return abi.Secret(name)
}
