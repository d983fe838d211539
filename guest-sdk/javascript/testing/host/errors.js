// Outside a component, errors are shown.
export default { unexpected: (type, message) => `${type}: ${message}` };
