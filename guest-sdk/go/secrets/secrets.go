// Package secrets reads the secrets that were granted to the plugin by name.
//
// A plugin that only sends a secret in a request does not need this: a person can bind the secret to the request, and the plugin
// never sees it. The manifest of the plugin has to ask for each: `secrets = ["github"]`.
package secrets

import "cofferdam/internal/abi"

// Get gives the value of a secret. It is false if no secret of that name was granted, whether there is one or not. The host
// takes the value out of everything that leaves the call, as far as it recognises it.
func Get(name string) (value string, granted bool) {
	return abi.Secret(name)
}
