/**
 * Secrets that a person has granted by name. A tool that only sends a secret in a request does not need this: a person can bind
 * the secret to the request, and the tool never sees it.
 *
 * @module cofferdam/secrets
 */

/**
 * The value of a secret; `undefined` if it was not granted, whether there is one or not. The manifest of the plugin has to ask
 * for it: `secrets = ["github"]`.
 */
export function get(name: string): string | undefined;
