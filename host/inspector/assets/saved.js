// Inputs of a tool that the user saved. They stay in this browser, under the address of the page.
const INPUTS_MAX = 20;
const BYTES_MAX = 64 * 1024;

const section = document.getElementById('saved');
const saving = document.getElementById('save');
const name = document.getElementById('save-name');
const list = document.getElementById('saved-list');
const state = document.getElementById('saved-state');
const editor = document.getElementById('editor');
const key = `cofferdam.inputs/${section.dataset.source}/${section.dataset.tool}`;

// Another program may have stored anything under this address.
function isInput(input) {
  return typeof input?.name === 'string' && typeof input.json === 'string';
}

function read() {
  try {
    const inputs = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(inputs) ? inputs.filter(isInput).slice(0, INPUTS_MAX) : [];
  } catch {
    return [];
  }
}

// Stores the inputs, and returns whether there was room.
function store(inputs) {
  try {
    if (inputs.length === 0) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(inputs));
    return true;
  } catch {
    state.textContent = 'The browser has no room for it.';
    return false;
  }
}

function load(input) {
  editor.value = input.json;
  editor.dispatchEvent(new Event('input', { bubbles: true }));
  state.textContent = `Loaded ${input.name}.`;
}

function remove(input) {
  if (!store(read().filter((other) => other.name !== input.name))) return;
  show();
  state.textContent = `Deleted ${input.name}.`;
  // The button that had the focus is gone.
  name.focus();
}

function button(text, label, action) {
  const element = document.createElement('button');
  element.type = 'button';
  element.textContent = text;
  element.setAttribute('aria-label', label);
  element.addEventListener('click', action);
  return element;
}

function show() {
  list.replaceChildren(...read().map((input) => {
    const item = document.createElement('li');
    const title = document.createElement('bdi');
    title.textContent = input.name;
    item.append(
      title,
      ' ',
      button('Load', `Load ${input.name}`, () => load(input)),
      ' ',
      button('Delete', `Delete ${input.name}`, () => remove(input)),
    );
    return item;
  }));
}

saving.addEventListener('submit', (event) => {
  event.preventDefault();
  const input = { name: name.value.trim(), json: editor.value };
  if (input.name === '') {
    state.textContent = 'Enter a name.';
    return;
  }
  if (new TextEncoder().encode(input.json).length > BYTES_MAX) {
    state.textContent = 'It is longer than 64 KiB.';
    return;
  }
  const others = read().filter((other) => other.name !== input.name);
  if (others.length >= INPUTS_MAX) {
    state.textContent = `There are ${INPUTS_MAX} already. Delete one.`;
    return;
  }
  if (!store([input, ...others])) return;
  name.value = '';
  show();
  state.textContent = `Saved ${input.name}.`;
});

section.hidden = false;
show();
