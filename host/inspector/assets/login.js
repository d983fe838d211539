// Logs in with the key in the fragment of the address, which is never sent by the browser itself.
const state = document.getElementById('login-state');
const key = new URLSearchParams(location.hash.slice(1)).get('k');
if (key) {
  history.replaceState(null, '', location.pathname + location.search);
  state.textContent = 'Logging in …';
  try {
    const answer = await fetch('/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-cofferdam': 'login' },
      body: JSON.stringify({ key }),
    });
    if (answer.ok) {
      location.reload();
    } else {
      state.textContent =
        'This address was used already, or is too old. Start the command again for a new one.';
    }
  } catch {
    state.textContent = 'The inspector does not answer. Is the command still running?';
  }
}
