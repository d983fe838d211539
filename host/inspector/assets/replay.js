// Runs a recorded call again, and shows what differs. Text arrives as plain text.
const form = document.getElementById('replay');
const result = document.getElementById('replay-result');
const button = form?.querySelector('button');

function fill(id, lines) {
  document.getElementById(id).replaceChildren(...lines.map((line) => {
    const item = document.createElement('li');
    item.textContent = line;
    return item;
  }));
}

function show({ outcome, differences, notes }) {
  document.getElementById('replay-outcome').textContent =
    outcome === 'identical' ? 'is identical' : outcome;
  fill('replay-differences', differences);
  fill('replay-notes', notes);
  result.hidden = false;
}

form?.addEventListener('submit', async (event) => {
  event.preventDefault();
  button.disabled = true;
  try {
    const answer = await fetch('/replay', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-cofferdam': form.dataset.token },
      body: JSON.stringify({
        call: form.dataset.call,
        component: document.getElementById('replay-component').value,
      }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    show(await answer.json());
  } catch (error) {
    show({ outcome: 'was not started', differences: [], notes: [error.message] });
  }
  button.disabled = false;
  button.focus();
});
