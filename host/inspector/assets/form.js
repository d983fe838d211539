// Keeps the form and the JSON editor in step, and makes calls. What is sent is the JSON. Another
// script sends the form of a prompt, and reports problems by an event.
const form = document.getElementById('try');
const editor = document.getElementById('editor');
const editorProblem = document.getElementById('editor-problem');
const root = form.querySelector('.field');

// Returns the part of a field with a role, and not one of a field within it.
function part(field, role) {
  const all = field.querySelectorAll(`[data-role=${role}]`);
  return [...all].find((element) => element.closest('.field') === field);
}

const fieldsOf = (element) => [...element.children].filter((child) => child.matches('.field'));
const itemsOf = (field) => [...part(field, 'items').children].map((item) => item.querySelector('.field'));

// Keeps a number that a double cannot hold as it was typed, where the browser can.
function exact(_, value, context) {
  const isInexact = typeof value === 'number' && !Number.isSafeInteger(value);
  return isInexact && context?.source ? JSON.rawJSON(context.source) : value;
}

const parse = (text) => JSON.parse(text, JSON.rawJSON && exact);

function parsed(text) {
  try {
    return parse(text);
  } catch {
    return text;
  }
}

// Properties of an object that have no field. They stay as they were typed.
const others = new WeakMap();

function set(object, name, value) {
  // Not by assignment: a property may be called `__proto__`.
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true });
}

// Returns the value of a field, or undefined if it is not set.
function read(field) {
  const isSet = part(field, 'set')?.checked ?? true;
  if (!isSet) return undefined;
  if (part(field, 'null')?.checked) return null;
  const { kind } = field.dataset;
  if (kind === 'object') {
    const object = {};
    for (const child of fieldsOf(part(field, 'fields'))) {
      const value = read(child);
      if (value !== undefined) set(object, child.dataset.name, value);
    }
    for (const [name, value] of others.get(field) ?? []) set(object, name, value);
    return object;
  }
  if (kind === 'list') return itemsOf(field).map(read);
  if (kind === 'branches') {
    return read(fieldsOf(part(field, 'branches'))[part(field, 'branch').selectedIndex]);
  }
  const { value } = part(field, 'value');
  if (kind === 'text') return value;
  if (kind === 'number' && value.trim() === '') return undefined;
  if (kind === 'json' && value.trim() === '') return undefined;
  return parsed(value);
}

function addItem(field, value) {
  const item = part(field, 'item').content.firstElementChild.cloneNode(true);
  part(field, 'items').append(item);
  start(item.querySelector('.field'));
  if (value !== undefined) write(item.querySelector('.field'), value);
}

// Returns how well a value fits a field, to choose a branch.
function fits(field, value) {
  const { kind } = field.dataset;
  const is = {
    object: value !== null && typeof value === 'object' && !Array.isArray(value),
    list: Array.isArray(value),
    text: typeof value === 'string',
    number: typeof value === 'number' || Boolean(JSON.isRawJSON?.(value)),
    boolean: typeof value === 'boolean',
  };
  if (kind === 'object' && is.object) {
    const names = fieldsOf(part(field, 'fields')).map((child) => child.dataset.name);
    return 1 + names.filter((name) => Object.hasOwn(value, name)).length;
  }
  if (kind === 'options') {
    return [...part(field, 'value').options].some((o) => o.value === JSON.stringify(value)) ? 3 : 0;
  }
  return is[kind] ? 2 : 0;
}

// Shows a value in a field.
function write(field, value) {
  const isSet = part(field, 'set');
  if (isSet) isSet.checked = value !== undefined;
  const nil = part(field, 'null');
  if (nil) nil.checked = value === null;
  const { kind } = field.dataset;
  if (kind === 'object') {
    const object = value !== null && typeof value === 'object' ? value : {};
    const children = fieldsOf(part(field, 'fields'));
    for (const child of children) {
      const { name } = child.dataset;
      write(child, Object.hasOwn(object, name) ? object[name] : undefined);
    }
    const names = new Set(children.map((child) => child.dataset.name));
    others.set(field, Object.entries(object).filter(([name]) => !names.has(name)));
  } else if (kind === 'list') {
    part(field, 'items').replaceChildren();
    for (const item of Array.isArray(value) ? value : []) addItem(field, item);
  } else if (kind === 'branches') {
    const branches = fieldsOf(part(field, 'branches'));
    const scores = branches.map((branch) => fits(branch, value));
    const best = value === undefined ? 0 : scores.indexOf(Math.max(...scores));
    part(field, 'branch').selectedIndex = best;
    branches.forEach((branch, index) => write(branch, index === best ? value : undefined));
    showBranch(field);
  } else if (value !== undefined && value !== null) {
    const control = part(field, 'value');
    const text = kind === 'text' && typeof value === 'string' ? value : JSON.stringify(value);
    control.value = text;
  } else if (kind !== 'options' && kind !== 'boolean') {
    part(field, 'value').value = '';
  }
}

function showBranch(field) {
  const chosen = part(field, 'branch').selectedIndex;
  fieldsOf(part(field, 'branches')).forEach((branch, index) => {
    branch.hidden = index !== chosen;
  });
}

// Fills a field and those within it with their defaults.
function start(field) {
  const { kind } = field.dataset;
  if (kind === 'object') fieldsOf(part(field, 'fields')).forEach(start);
  if (kind === 'branches') {
    fieldsOf(part(field, 'branches')).forEach(start);
    showBranch(field);
  }
  if (field.dataset.default !== undefined) write(field, parsed(field.dataset.default));
}

function toEditor() {
  editor.value = JSON.stringify(read(root) ?? {}, null, 2);
  editorProblem.hidden = true;
}

function toForm() {
  try {
    write(root, parse(editor.value));
    editorProblem.hidden = true;
  } catch (error) {
    editorProblem.textContent = error.message;
    editorProblem.hidden = false;
  }
}

// Returns the path of a field, as the decoder writes it.
function pathOf(field) {
  const outer = field.parentElement.closest('.field');
  if (!outer) return '';
  const { name } = field.dataset;
  const before = pathOf(outer);
  if (outer.dataset.kind === 'list') return `${before}[${itemsOf(outer).indexOf(field)}]`;
  if (name === '') return before;
  if (!/^[A-Za-z0-9_-]+$/.test(name)) return `${before}[${JSON.stringify(name)}]`;
  return before ? `${before}.${name}` : name;
}

function showProblems(problems) {
  for (const field of [root, ...root.querySelectorAll('.field')]) {
    const line = part(field, 'problem');
    const path = pathOf(field);
    const found = problems.filter((problem) => problem.path === path);
    line.hidden = found.length === 0 || Boolean(field.closest('[hidden]'));
    line.textContent = found.map((problem) => problem.message).join(' ');
  }
}

function show(result) {
  const element = (name) => document.getElementById(`result-${name}`);
  const section = document.getElementById('result');
  section.hidden = false;
  section.dataset.outcome = result.outcome;
  element('outcome').textContent = result.outcome;
  element('took').textContent = result.took;
  element('text').textContent = result.text;
  element('diff').textContent = result.diff;
  element('diff').hidden = result.diff === '';
  element('command').hidden = !result.command;
  element('command').querySelector('code').textContent = result.command ?? '';
  element('page').hidden = !result.page;
  if (result.page) element('page').href = result.page;
  element('notes').replaceChildren(...result.notes.map((note) => {
    const item = document.createElement('li');
    item.textContent = note;
    return item;
  }));
  showProblems(result.problems);
}

form.addEventListener('input', (event) => {
  if (event.target === editor) return toForm();
  const field = event.target.closest('.field');
  const isSet = part(field, 'set');
  if (isSet && event.target !== isSet) isSet.checked = true;
  if (event.target.dataset.role === 'branch') showBranch(field);
  toEditor();
});

form.addEventListener('click', (event) => {
  const { role } = event.target.dataset;
  if (role === 'add') {
    const field = event.target.closest('.field');
    const isSet = part(field, 'set');
    if (isSet) isSet.checked = true;
    addItem(field);
  } else if (role === 'remove') {
    event.target.closest('.item').remove();
  } else {
    return;
  }
  toEditor();
});

form.addEventListener('problems', (event) => showProblems(event.detail));

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  if (!form.dataset.tool) return;
  const isDryRun = event.submitter?.dataset.dryRun !== undefined;
  const buttons = form.querySelectorAll('button[type=submit]');
  buttons.forEach((button) => { button.disabled = true; });
  try {
    const answer = await fetch('/try', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-cofferdam': form.dataset.token },
      body: JSON.stringify({
        tool: form.dataset.tool,
        arguments: editor.value,
        is_dry_run: isDryRun,
      }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    show(await answer.json());
  } catch (error) {
    show({ outcome: 'not called', text: error.message, took: '', diff: '', notes: [], problems: [] });
  }
  buttons.forEach((button) => { button.disabled = false; });
});

start(root);
toEditor();
