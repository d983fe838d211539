/**
 * Secrets that are granted by name. A tool that only sends a secret in a request does not need this
 * module: the user can bind the secret to the request, and the tool never sees it.
 *
 * @module cofferdam/secrets
 */

/**
 * Returns the value of a secret, or `undefined` if it is not granted, whether it exists or not. The
 * manifest of the plugin must request it: `secrets = ["github"]`.
 */
export function get(name: string): string | undefined;
