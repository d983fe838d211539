// Shows times in the time zone of the browser, and copies commands.
function localize(time) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) return;
  time.title = time.dateTime;
  time.textContent = at.toLocaleString(undefined, {
    dateStyle: 'short',
    timeStyle: 'medium',
  });
}

document.querySelectorAll('time').forEach(localize);
document.addEventListener('added', (event) => {
  event.target.querySelectorAll('time').forEach(localize);
});

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Select the text to copy it';
  }
});
