// Outside a component, Node waits.
export const loop = {
  start: (act, delay) => setTimeout(act, delay).unref(),
  stop: clearTimeout,
};
