/** Returns the exception of a failed import: an error with the error value of WIT. */
export function refusal(payload) {
  return Object.assign(new Error(`the host refused: ${JSON.stringify(payload)}`), { payload });
}
