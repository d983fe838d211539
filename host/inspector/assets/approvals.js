// Shows on every page how many approvals wait, and answers them. One tab holds the connection and
// tells the others, because a browser allows six connections for each host.
const DELAY = 1000;

const channel = new BroadcastChannel('cofferdam-approvals');
const link = document.querySelector('nav a[href="/approvals"]');
const news = document.getElementById('approval-news');
const list = document.querySelector('#waiting tbody');
const prompt = document.getElementById('prompt');
const { title } = document;
let last = null;
let end = () => {};

function cell(row, content) {
  const cell = document.createElement('td');
  cell.append(content);
  row.append(cell);
}

function text(value) {
  const content = document.createElement('bdi');
  content.textContent = value;
  return content;
}

function rowOf(waiting) {
  const row = document.createElement('tr');
  row.dataset.id = waiting.id;
  const time = document.createElement('time');
  time.dateTime = waiting.at;
  time.textContent = waiting.at;
  const link = document.createElement('a');
  link.href = '/approval?id=' + encodeURIComponent(waiting.id);
  link.textContent = waiting.kind;
  cell(row, time);
  cell(row, link);
  for (const value of [waiting.tool, waiting.source, waiting.caller]) cell(row, text(value));
  return row;
}

function showList(waiting) {
  const ids = new Set(waiting.map((one) => one.id));
  for (const row of [...list.children]) if (!ids.has(row.dataset.id)) row.remove();
  const known = new Set([...list.children].map((row) => row.dataset.id));
  for (const one of waiting.filter((one) => !known.has(one.id))) {
    const row = rowOf(one);
    list.append(row);
    row.dispatchEvent(new Event('added', { bubbles: true }));
  }
  document.getElementById('waiting').hidden = waiting.length === 0;
  document.getElementById('nothing-waiting').hidden = waiting.length > 0;
}

function show(state) {
  const count = state.waiting.length;
  if (count > (last?.waiting.length ?? 0)) {
    news.textContent = count === 1 ? 'One approval waits.' : `${count} approvals wait.`;
  }
  last = state;
  document.title = count > 0 ? `(${count}) ${title}` : title;
  link.textContent = count > 0 ? `Approvals (${count})` : 'Approvals';
  link.classList.toggle('waiting', count > 0);
  if (list) showList(state.waiting);
  const ended = state.ended.find((one) => one.id === prompt?.dataset.id);
  if (ended) end(`This was ${ended.end}.`);
}

channel.addEventListener('message', ({ data }) => {
  if (data !== 'state?') show(data);
  else if (source && last) channel.postMessage(last);
});

let source = null;
function connect() {
  source = new EventSource('/live/prompts');
  source.addEventListener('prompts', (event) => {
    const state = JSON.parse(event.data);
    channel.postMessage(state);
    show(state);
  });
  // The lock is held as long as the page is open.
  return new Promise(() => {});
}
navigator.locks.request('cofferdam-approvals', connect);
channel.postMessage('state?');

function answerable() {
  const buttons = [...prompt.querySelectorAll('[data-answer]')];
  const state = document.getElementById('answer-state');
  const form = document.getElementById('try');
  let isEnded = false;
  let timer = null;

  // A click or a key that was meant for something else does not answer: the buttons work after the
  // page was visible for a while.
  function arm() {
    clearTimeout(timer);
    if (isEnded || document.hidden) return;
    timer = setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), DELAY);
  }

  function disarm() {
    clearTimeout(timer);
    buttons.forEach((button) => { button.disabled = true; });
  }

  end = (message) => {
    if (isEnded) return;
    isEnded = true;
    disarm();
    state.textContent = message;
  };

  async function send(action) {
    disarm();
    let result;
    let isSettled = false;
    try {
      const answer = await fetch('/answer', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-cofferdam': prompt.dataset.token },
        body: JSON.stringify({
          id: prompt.dataset.id,
          action,
          reason: document.getElementById('reason')?.value ?? '',
          content: action === 'send' ? document.getElementById('editor').value : '',
        }),
      });
      const body = await answer.text();
      const isJson = answer.headers.get('content-type') === 'application/json';
      result = isJson ? JSON.parse(body) : { message: body, problems: [] };
      isSettled = [200, 404, 409].includes(answer.status);
    } catch (error) {
      result = { message: error.message, problems: [] };
    }
    if (isSettled) return end(result.message);
    state.textContent = result.message;
    form?.dispatchEvent(new CustomEvent('problems', { detail: result.problems }));
    arm();
  }

  prompt.addEventListener('click', (event) => {
    const button = event.target.closest('[data-answer]');
    if (button?.type === 'button' && !button.disabled) send(button.dataset.answer);
  });
  form?.addEventListener('submit', (event) => {
    event.preventDefault();
    if (event.submitter && !event.submitter.disabled) send(event.submitter.dataset.answer);
  });
  document.addEventListener('visibilitychange', () => {
    disarm();
    arm();
  });
  arm();
}

if (prompt?.querySelector('[data-answer]')) answerable();
