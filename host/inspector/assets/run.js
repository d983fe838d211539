// Keeps the page of a run current. Each event has the whole state, as plain text, which is set as
// text.
const ROWS_MAX = 300;
const LABEL_CHARS_MAX = 22;
const NEWS_INTERVAL = 2000;

const questions = document.getElementById('run-questions');
const command = document.getElementById('run-command');
const rows = document.querySelector('#run-supersteps tbody');
const state = document.getElementById('live-state');
const news = document.getElementById('live-news');
const pause = document.getElementById('live-pause');
let source = null;
let isPaused = false;
let isOver = false;
let asked = null;
let announced = null;
let current = null;

// Text that stays the same stays selected.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setWords(element, { words, names }) {
  if (element.textContent === words + names) return;
  element.textContent = words;
  if (!names) return;
  const content = document.createElement('bdi');
  content.textContent = names;
  element.append(content);
}

function short(words) {
  const characters = [...words];
  if (characters.length <= LABEL_CHARS_MAX) return words;
  return characters.slice(0, LABEL_CHARS_MAX - 1).join('') + '…';
}

function setExecutor(index, [kind, words]) {
  const cell = document.querySelector(`tr[data-executor="${index}"] .state`);
  if (cell) {
    cell.dataset.state = kind;
    setText(cell, words);
  }
  const node = document.querySelector(`.graph [data-executor="${index}"]`);
  if (!node) return;
  node.setAttribute('class', kind);
  setText(node.querySelector('.state'), short(words));
  const title = node.querySelector('title');
  title.textContent = title.textContent.slice(0, title.textContent.lastIndexOf(': ') + 2) + words;
}

function rowOf(number) {
  const row = document.createElement('tr');
  row.dataset.superstep = number;
  const head = document.createElement('th');
  head.scope = 'row';
  head.className = 'number';
  head.textContent = number;
  row.append(head);
  for (let cells = 0; cells < 3; cells += 1) row.append(document.createElement('td'));
  row.lastChild.append(document.createElement('code'));
  return row;
}

function setSuperstep([number, executors, then, checkpoint]) {
  let row = rows.querySelector(`[data-superstep="${number}"]`);
  if (!row) {
    row = rowOf(number);
    rows.append(row);
  }
  setWords(row.children[1], executors);
  setWords(row.children[2], then);
  setText(row.querySelector('code'), checkpoint);
}

function questionOf({ executor, id, prompt }) {
  const name = document.createElement('bdi');
  name.textContent = executor;
  const head = document.createElement('h2');
  head.append(name, ' asks');
  const text = document.createElement('pre');
  text.tabIndex = 0;
  text.role = 'region';
  text.ariaLabel = 'Question';
  text.textContent = prompt;
  const code = document.createElement('code');
  code.textContent = id;
  const note = document.createElement('p');
  note.append('Its id is ', code, '.');
  return [head, text, note];
}

function show() {
  if (isOver) state.textContent = 'This run is over.';
  else state.textContent = isPaused ? 'Paused.' : 'Live.';
}

function update(event) {
  const run = JSON.parse(event.data);
  const last = Number(rows.lastElementChild?.dataset.superstep ?? 0);
  // An event has the newest supersteps. A page that lacks others loads itself again.
  if (rows.childElementCount > 0 && run.supersteps[0]?.[0] > last + 1) return location.reload();
  document.getElementById('run-superstep').textContent = run.superstep;
  setWords(document.getElementById('run-state'), run.state);
  run.executors.forEach((executor, index) => setExecutor(index, executor));
  run.supersteps.forEach(setSuperstep);
  while (rows.childElementCount > ROWS_MAX) rows.firstElementChild.remove();
  const open = JSON.stringify(run.questions);
  if (open !== asked) questions.replaceChildren(...run.questions.flatMap(questionOf));
  asked = open;
  command.hidden = run.resume_command === null;
  setText(command.querySelector('code'), run.resume_command ?? '');
  const copy = command.querySelector('button');
  if (copy) copy.dataset.copy = run.resume_command ?? '';
  const words = `Superstep ${run.superstep}: ${run.state.words}${run.state.names}`;
  // The state at the start is read with the page.
  announced ??= words;
  current = words;
  isOver = run.is_over;
  if (isOver) {
    disconnect();
    pause.hidden = true;
  }
  show();
}

function connect() {
  source = new EventSource('/live/run' + location.search);
  source.onopen = show;
  source.onerror = () => {
    state.textContent = 'Not connected; trying again.';
  };
  source.addEventListener('run', update);
}

function disconnect() {
  source?.close();
  source = null;
}

// A hidden page holds no connection: browsers allow six for each host.
function follow() {
  const isWanted = !isPaused && !isOver && !document.hidden;
  if (isWanted && !source) connect();
  if (!isWanted) disconnect();
}

pause.hidden = false;
pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.setAttribute('aria-pressed', String(isPaused));
  follow();
  show();
});
document.addEventListener('visibilitychange', follow);
setInterval(() => {
  if (announced !== current) news.textContent = current;
  announced = current;
}, NEWS_INTERVAL);
follow();
