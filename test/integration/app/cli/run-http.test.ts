import { readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { killAll, type ProcessOptions, runCli, type TestProcess } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { urlOf } from './ecs-support.js';
import { newFolder, removeFolders } from './run-support.js';

const TOKEN = 'a-token-for-the-tests';

let store: string;

beforeEach(() => {
  store = newFolder();
});

afterEach(async () => {
  await killAll();
  removeFolders();
});

/** A run that answers over HTTP, with a command that goes on until it is asked to end. */
function run(
  options: readonly string[],
  script = 'echo begun; exec sleep 300',
  processOptions: ProcessOptions = {},
): TestProcess {
  const http = options.includes('--http') ? [] : ['--http', '127.0.0.1:0'];
  return runCli(
    ['run', '--store', `file:${store}`, '--nodes', '3', ...http, ...options, '--', 'sh', '-c', script],
    processOptions,
  );
}

async function held(
  options: readonly string[] = [],
): Promise<{ readonly task: TestProcess; readonly url: string }> {
  const task = run(options);
  const url = await urlOf(task);
  await task.waitForOutput(/begun/);
  return { task, url };
}

const written = (text: string) => {
  const path = join(newFolder(), 'token');
  writeFileSync(path, text);
  return path;
};

describe('a run that cannot answer over HTTP', () => {
  const refused = async (...options: string[]) => {
    const task = runCli(['run', '--store', `file:${store}`, ...options, '--', 'true']);
    const { code } = await task.exit;
    expect(task.stderr()).toMatch(/^nodelease: [^\n]*\n$/);
    // Nothing has been acquired, and not even looked for.
    expect({ code, files: readdirSync(store) }).toEqual({ code: 64, files: [] });
    return task.stderr();
  };

  it('ends with 64 before it acquires anything where it cannot listen', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    expect(await refused('--http', `127.0.0.1:${port}`)).toMatch(
      /--http: expected a port that no other program listens on/,
    );
    other.close();
    expect(await refused('--http', '203.0.113.7:0')).toMatch(/--http: expected an address of this machine/);
  });

  it('ends with 64 before it acquires anything where the token file is empty, too short, or has two words', async () => {
    const refusals = ['', 'short\n', `${TOKEN} ${TOKEN}`].map(async (text) => {
      expect(await refused('--http', '127.0.0.1:0', '--bearer-token-file', written(text))).toMatch(
        /--bearer-token-file: expected a file that holds one token/,
      );
    });
    await Promise.all(refusals);
  });

  it('ends with 64 before it acquires anything where there is no token file', async () => {
    expect(await refused('--http', '127.0.0.1:0', '--bearer-token-file', '/no/such/file')).toMatch(
      /it cannot be read: ENOENT/,
    );
  });
});

describe('a run with HTTP', () => {
  it('answers what is asked wrongly, and works on', async () => {
    const { task, url } = await held();
    const answers = [
      await fetch(`${url}/nothing`),
      await fetch(`${url}/readyz`, { method: 'POST', body: 'x' }),
      await fetch(`${url}/lease`, { method: 'DELETE' }),
      await fetch(`${url}/api/leases`, { method: 'PUT', body: '{}' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([404, 405, 405, 405]);
    for (const answer of answers)
      expect(await answer.json()).toMatchObject({ error: expect.any(String), message: expect.any(String) });
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
    expect(task.stderr()).toContain('lease released');
  });

  it('reports on itself and on its cluster', async () => {
    const { url } = await held(['--task-id', 'me']);
    expect(await (await fetch(`${url}/lease`)).json()).toMatchObject({
      state: 'held',
      nodeId: 0,
      version: 1,
      taskId: 'me',
    });
    const { nodes } = (await (await fetch(`${url}/api/leases`)).json()) as {
      nodes: Record<string, unknown>[];
    };
    expect(nodes[0]).toMatchObject({ id: 0, state: 'held', version: 1, taskId: 'me' });
    const metrics = await fetch(`${url}/metrics`);
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(await metrics.text()).toMatch(/^nodelease_[a-z_]+.* \d/m);
  });

  it('reports nothing but its health to a client that does not send the token', async () => {
    const { task, url } = await held(['--bearer-token-file', written(`${TOKEN}\n`), '--http', '0.0.0.0:0']);
    const local = url.replace('0.0.0.0', '127.0.0.1');
    const statuses = (headers: Record<string, string>) =>
      Promise.all(
        ['/livez', '/readyz', '/lease', '/metrics', '/api/leases'].map(
          async (path) => (await fetch(local + path, { headers })).status,
        ),
      );
    expect(await statuses({})).toEqual([200, 200, 401, 401, 401]);
    expect(await statuses({ authorization: `Bearer ${TOKEN}` })).toEqual([200, 200, 200, 200, 200]);
    expect(task.stderr()).not.toMatch(/any client that reaches/);
    expect(task.stderr()).not.toContain(TOKEN);
  });

  it('warns where any client may ask', async () => {
    const { task } = await held(['--http', '0.0.0.0:0']);
    await task.waitForOutput(
      /any client that reaches http:\/\/0\.0\.0\.0:\d+ can see all leases and metrics/,
    );
  });

  it('passes to its command the URL by which it is reached, also where it listens everywhere', async () => {
    const script = 'echo "$NODELEASE_URL $A"; node dist/cli/nodelease.js health';
    const task = run(
      ['--http', '0.0.0.0:0', '--env', 'A=node-{id}-v{version}@{url}', '--env', 'NODE_ENV=x'],
      script,
    );
    expect((await task.exit).code, task.stderr()).toBe(0);
    expect(task.stdout()).toMatch(
      /^(http:\/\/127\.0\.0\.1:\d+) node-0-v1@\1\nok, held, node id 0 at version 1\n$/,
    );
  });

  it('keeps its address to itself: a run within it listens nowhere unless configured to, and has no URL', async () => {
    const inner = `node dist/cli/nodelease.js run --store file:${store} -- sh -c 'echo "[$NODELEASE_HTTP] [$NODELEASE_URL]"'`;
    const env = { NODELEASE_HTTP: '127.0.0.1:0' };
    const task = runCli(
      ['run', '--store', `file:${store}`, '--', 'sh', '-c', `echo "[$NODELEASE_HTTP]"; ${inner}`],
      { env },
    );
    expect((await task.exit).code, task.stderr()).toBe(0);
    expect(task.stdout()).toBe('[]\n[] []\n');
  });

  it('reports a fixed node id, which is leased nowhere', async () => {
    const task = runCli([
      'run',
      '--node-id',
      '5',
      '--http',
      '127.0.0.1:0',
      '--',
      'sh',
      '-c',
      'echo begun; exec sleep 300',
    ]);
    const url = await urlOf(task);
    await task.waitForOutput(/begun/);
    expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({
      status: 'ok',
      nodeId: 5,
      validForMs: null,
    });
    expect((await fetch(`${url}/api/leases`)).status).toBe(404);
  });

  it('reports a node id that comes only from ZooKeeper', async () => {
    const zookeeper = [
      '--provider',
      'zookeeper',
      '--zookeeper',
      `${inject('zookeeper').connect}${uniqueChroot('http')}`,
    ];
    const task = runCli([
      'run',
      ...zookeeper,
      '--http',
      '127.0.0.1:0',
      '--',
      'sh',
      '-c',
      'echo begun; exec sleep 300',
    ]);
    const url = await urlOf(task);
    await task.waitForOutput(/begun/);
    expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({
      status: 'ok',
      nodeId: 0,
      discovery: { ready: true },
    });
    const { nodes } = (await (await fetch(`${url}/api/leases`)).json()) as {
      nodes: Record<string, unknown>[];
    };
    expect(nodes).toMatchObject([{ id: 0, state: 'held' }]);
    task.kill('SIGTERM');
    expect((await task.exit).code, task.stderr()).toBe(143);
  });

  it('stays ready where its command is only asked to report on itself, as a JVM is by SIGQUIT', async () => {
    const task = run([], "trap 'echo dumped' QUIT; echo begun; while :; do sleep 0.05; done");
    const url = await urlOf(task);
    await task.waitForOutput(/begun/);
    task.kill('SIGQUIT');
    await task.waitForOutput(/dumped/);
    expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({ status: 'ok', state: 'held' });
  });

  it('logs as it is configured to, whatever standard error is', async () => {
    const pretty = run(['--log-format', 'pretty'], 'true');
    const json = run([], 'true', { env: { NODELEASE_LOG_FORMAT: 'json' } });
    await Promise.all([pretty.exit, json.exit]);
    expect(pretty.stderr()).toMatch(/^\[[\d:.]+\] INFO: answering HTTP requests at/m);
    for (const line of json.stderr().trimEnd().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ name: 'nodelease' });
  });
});
