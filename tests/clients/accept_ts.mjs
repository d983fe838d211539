// The official TypeScript SDKs against `cofferdam serve`: run by `cargo xtask mcp clients`. The mode is v1, v2 or v2-legacy.

import assert from 'node:assert/strict';
import { EventEmitter, on } from 'node:events';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

// What `cargo xtask mcp` says: {mode, command: [...]} or {mode, url, token, pid}; {swap: {file, with}}
const plan = JSON.parse(process.argv[2]);
const callsAtOnce = 32;
const isV1 = plan.mode === 'v1';
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK']).toString());

const sdk = isV1
  ? {
      ...(await import('@modelcontextprotocol/sdk/client/index.js')),
      ...(await import('@modelcontextprotocol/sdk/client/stdio.js')),
      ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
    }
  : { ...(await import('@modelcontextprotocol/client')), ...(await import('@modelcontextprotocol/client/stdio')) };

function transport() {
  if (plan.url) {
    const requestInit = { headers: { Authorization: `Bearer ${plan.token}` } };
    return new sdk.StreamableHTTPClientTransport(new URL(plan.url), { requestInit });
  }
  const [command, ...args] = plan.command;
  return new sdk.StdioClientTransport({ command, args, stderr: 'inherit' });
}

function cpuSeconds(pid) {
  // After the name in parentheses: state, parent, …, user time and system time as the 12th and 13th.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

async function isIdle(pid) {
  const before = cpuSeconds(pid);
  await sleep(500);
  return cpuSeconds(pid) - before < 0.1;
}

const call = (client, name, args, options) =>
  isV1 ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options);

async function results(client) {
  const { tools } = await client.listTools();
  const named = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
  for (const name of ['echo', 'refuse', 'count', 'compute', 'word_count']) assert(named[name], `${name} in ${Object.keys(named)}`);
  assert.deepEqual(named.echo.outputSchema.required, ['echoed']);
  assert.deepEqual(named.echo.inputSchema.required, ['message']);

  const echoed = await call(client, 'echo', { message: 'grüße\n', number: 7 });
  assert(!echoed.isError);
  assert.deepEqual(echoed.structuredContent, { echoed: { message: 'grüße\n', number: 7 } });
  assert.equal(echoed.content[0].type, 'text');
  const counted = await call(client, 'word_count', { text: 'to be or not to be' });
  assert.equal(counted.structuredContent.words, 6);

  const refused = await call(client, 'refuse', {});
  assert(refused.isError && refused.structuredContent === undefined);
  assert.match(refused.content[0].text, /there is no such row/);
  const trapped = await call(client, 'divide_by_zero', {});
  assert(trapped.isError);
  assert.match(trapped.content[0].text, /Trap\.IntegerDivideByZero/);
  const wrong = await call(client, 'echo', { number: 1 });
  assert(wrong.isError);
  assert.match(wrong.content[0].text, /message/);
  const unknown = await call(client, 'nobody', {});
  assert(unknown.isError);
  assert.equal(unknown.content[0].text, 'Tool nobody not found');
}

async function atOnce(client) {
  const numbers = Array.from({ length: callsAtOnce }, (_, number) => number);
  const answers = await Promise.all(numbers.map((number) => call(client, 'echo', { message: `call ${number}`, number })));
  answers.forEach((answer, number) =>
    assert.deepEqual(answer.structuredContent, { echoed: { message: `call ${number}`, number } }),
  );
}

async function progress(client) {
  const seen = [];
  const result = await call(client, 'count', { steps: 5, pause_ms: 150 }, { onprogress: (step) => seen.push(step) });
  assert.equal(result.content[0].text, 'counted to 5');
  assert(seen.length >= 2, JSON.stringify(seen));
  seen.forEach((step, at) => assert(at === 0 || step.progress > seen[at - 1].progress, JSON.stringify(seen)));
  assert(seen.every((step) => step.total === 5 && step.message.startsWith('step ')), JSON.stringify(seen));
}

async function cancelled(client, pid) {
  const stop = new AbortController();
  const before = cpuSeconds(pid);
  const calls = [1, 2, 3].map(() => call(client, 'compute', {}, { signal: stop.signal, timeout: 120_000 }));
  const settled = Promise.allSettled(calls);
  while (cpuSeconds(pid) - before < 0.5) await sleep(50);
  // On a busy machine, the server may get little time for a moment. Calls that have ended stay idle.
  let computes = false;
  for (let round = 0; round < 40 && !computes; round += 1) computes = !(await isIdle(pid));
  assert(computes, 'the calls compute until they are cancelled');
  stop.abort('enough');
  for (const { status } of await settled) assert.equal(status, 'rejected');
  // Cancelled guests end soon. Their own limits are minutes away.
  let idle = false;
  for (let round = 0; round < 40 && !idle; round += 1) idle = await isIdle(pid);
  assert(idle, 'a cancelled call is still computing');
  assert(!(await call(client, 'echo', { message: 'still here' })).isError);
}

async function listChanges(client, changed) {
  // In one step: no reader sees a part of it.
  writeFileSync(`${plan.swap.file}.new`, readFileSync(plan.swap.with));
  renameSync(`${plan.swap.file}.new`, plan.swap.file);
  // The server may announce its start as well, so one announcement is not enough.
  let names;
  do names = await changed();
  while (!names.includes('schema'));
  assert(!names.includes('word_count'), `after the swap: ${names}`);
}

globalThis.setTimeout(() => {
  console.error('this takes too long');
  process.exit(1);
}, 240_000).unref();

const lists = new EventEmitter();
const announced = on(lists, 'tools');
const onChanged = (error, tools) =>
  error ? lists.emit('error', error) : lists.emit('tools', tools.map((tool) => tool.name));
const changed = async () => (await announced.next()).value[0];
const options = { listChanged: { tools: { onChanged } } };
if (plan.mode === 'v2') options.versionNegotiation = { mode: 'auto' };
const client = new sdk.Client({ name: 'accept', version: '1' }, options);
const connection = transport();
await client.connect(connection);
if (plan.mode === 'v2') assert.equal(client.getDiscoverResult?.() === undefined, false, 'the current revision is spoken');
await results(client);
await atOnce(client);
await progress(client);
await cancelled(client, plan.pid ?? connection.pid);
await listChanges(client, changed);
await client.close();
