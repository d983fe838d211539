// Shows times in the time zone of the browser, and copies commands.
const RELOAD_DELAY = 1000;

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

// Loads a page again that lacks something, as soon as it is complete.
async function reload() {
  const page = document.hidden ? '' : await (await fetch(location.href)).text();
  if (page && !page.includes('data-reload')) location.reload();
  else setTimeout(reload, RELOAD_DELAY);
}
if (document.querySelector('[data-reload]')) setTimeout(reload, RELOAD_DELAY);
document.addEventListener('added', (event) => {
  event.target.querySelectorAll('time').forEach(localize);
});

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy], [data-copy-from]');
  if (!button) return;
  const { copy, copyFrom } = button.dataset;
  try {
    await navigator.clipboard.writeText(copy ?? document.getElementById(copyFrom).textContent);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Select the text to copy it';
  }
});
