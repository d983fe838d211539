// Adds calls to the list as they are recorded. Text arrives as plain text and is set as text.
const ROWS_MAX = 500;
const NEWS_INTERVAL = 2000;

const list = document.getElementById('calls');
const rows = list.querySelector('tbody');
const state = document.getElementById('live-state');
const news = document.getElementById('live-news');
const pause = document.getElementById('live-pause');
const none = document.getElementById('no-calls');
let source = null;
let newest = list.dataset.from || '';
let isPaused = false;
let added = 0;
let leftOut = 0;

function cell(row, text, className) {
  const cell = document.createElement('td');
  if (className) cell.className = className;
  const content = document.createElement('bdi');
  content.textContent = text;
  cell.append(content);
  row.append(cell);
}

function rowOf(call) {
  const row = document.createElement('tr');
  row.dataset.id = call.id;
  row.dataset.outcome = call.outcome;
  const time = document.createElement('time');
  time.dateTime = call.at;
  time.textContent = `${call.time} UTC`;
  row.append(document.createElement('td'));
  row.lastChild.append(time);
  const link = document.createElement('a');
  link.href = '/call/' + encodeURIComponent(call.id);
  link.textContent = call.tool;
  row.append(document.createElement('td'));
  row.lastChild.append(link);
  cell(row, call.owner);
  cell(row, call.outcome, 'outcome');
  cell(row, call.took, 'number');
  cell(row, call.notes);
  return row;
}

function show() {
  const sampled = leftOut > 0 ? ` ${leftOut} calls are not shown: too many at once.` : '';
  state.textContent = isPaused ? `Paused.${sampled}` : `Live.${sampled}`;
}

function add(event) {
  const data = JSON.parse(event.data);
  newest = event.lastEventId || newest;
  for (const call of data.rows) {
    const row = rowOf(call);
    const known = rows.querySelector(`[data-id="${CSS.escape(call.id)}"]`);
    if (known) {
      known.replaceWith(row);
    } else {
      rows.prepend(row);
      added += 1;
    }
    row.dispatchEvent(new Event('added', { bubbles: true }));
  }
  while (rows.childElementCount > ROWS_MAX) rows.lastElementChild.remove();
  leftOut += data.left_out;
  none.hidden = true;
  show();
}

function connect() {
  const address = new URL('/live' + location.search, location.href);
  if (newest) address.searchParams.set('from', newest);
  source = new EventSource(address);
  source.onopen = show;
  source.onerror = () => {
    state.textContent = 'Not connected; trying again.';
  };
  source.addEventListener('calls', add);
  source.addEventListener('rebase', () => location.reload());
}

function disconnect() {
  source?.close();
  source = null;
}

// A hidden page holds no connection: browsers allow six for each host.
function update() {
  const isWanted = !isPaused && !document.hidden;
  if (isWanted && !source) connect();
  if (!isWanted) disconnect();
}

pause.hidden = false;
pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.setAttribute('aria-pressed', String(isPaused));
  update();
  show();
});
document.addEventListener('visibilitychange', update);
setInterval(() => {
  if (added > 0) news.textContent = `${added} new calls`;
  added = 0;
}, NEWS_INTERVAL);
update();
