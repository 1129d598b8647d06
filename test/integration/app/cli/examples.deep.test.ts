import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { FaultProxy } from '../../../support/network/fault-proxy.js';
import { cliFile, killAll, runCli, runProcess, type TestProcess } from '../../../support/processes.js';
import { type ExampleStore, exampleFolder, exampleStore } from './example-support.js';
import { newFolder, removeFolders } from './run-support.js';

const LEASE = ['--duration', '3s', '--grace', '500ms'];

let store: ExampleStore;
const servers = new Set<Server>();

beforeEach(async () => {
  store = await exampleStore(inject('s3'));
});

afterEach(async () => {
  await killAll();
  for (const server of servers) server.close();
  servers.clear();
  removeFolders();
});

/** Asks again until `good` is content with the answer. */
async function until<T>(ask: () => Promise<T> | T, good: (answer: T) => boolean, ms = 30_000): Promise<T> {
  const end = performance.now() + ms;
  for (;;) {
    const answer = await ask();
    if (good(answer)) return answer;
    if (performance.now() > end) throw new Error(`still ${JSON.stringify(answer)} after ${ms} ms`);
    await sleep(50);
  }
}

/** The node id and version that an example says it has. */
async function nodeOf(example: TestProcess, word = 'node'): Promise<{ id: number; version: number }> {
  const [, id, version] = await example.waitForOutput(
    new RegExp(`^${word} (\\d+), version (\\d+)`, 'm'),
    60_000,
  );
  return { id: Number(id), version: Number(version) };
}

async function portOf(example: TestProcess): Promise<string> {
  return (await example.waitForOutput(/listens on port (\d+)/, 60_000))[1] ?? '';
}

const getJson = async (url: string) => {
  const response = await fetch(url);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

/**
 * Answers every request as nodelease answers `/lease` while it holds none, and with one that would say
 * otherwise in its body.
 */
async function withoutLease(): Promise<{ url: string; asked(): number }> {
  let asked = 0;
  const server = createServer((_, response) => {
    asked += 1;
    response
      .writeHead(503, { 'content-type': 'application/json' })
      .end('{"state":"lost","nodeId":0,"version":1,"validForMs":60000}');
  });
  servers.add(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked };
}

describe('the Express service', () => {
  let database: string;

  const start = () =>
    runProcess(process.execPath, ['server.js'], {
      cwd: exampleFolder('express-service', ['nodelease', 'express']),
      env: { ...store.env, DATABASE: database, PORT: '0', DRAIN_MS: '3000', DURATION_MS: '3000' },
    });
  const order = async (port: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"item":"tea"}',
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  beforeEach(async () => {
    const process_ = runProcess(process.execPath, ['database.js'], {
      cwd: exampleFolder('express-service'),
      env: { PORT: '0' },
    });
    database = (await process_.waitForOutput(/http:\S+/, 30_000))[0];
  });

  it('takes orders under its own id, gives them unique ids, and leaves a released lease at SIGTERM', async () => {
    const [one, two] = [start(), start()];
    const nodes = [await nodeOf(one), await nodeOf(two)];
    expect(new Set(nodes.map(({ id }) => id)).size).toBe(2);
    const answers = await Promise.all(
      [await portOf(one), await portOf(two)].flatMap((port) => [order(port), order(port), order(port)]),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(201));
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(6);
    expect(new Set(answers.map(({ body }) => body.node))).toEqual(new Set(nodes.map(({ id }) => id)));

    const url = `http://127.0.0.1:${await portOf(one)}/internal`;
    expect(await getJson(`${url}/readyz`)).toMatchObject({
      status: 200,
      body: { status: 'ok', nodeId: nodes[0]?.id },
    });
    expect(await getJson(`${url}/lease`)).toMatchObject({
      status: 200,
      body: { version: nodes[0]?.version },
    });
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(
      new RegExp(`^nodelease_lease_node_id ${nodes[0]?.id}$`, 'm'),
    );
    one.kill('SIGTERM');
    expect(
      await until(
        () => getJson(`${url}/readyz`),
        ({ status }) => status === 503,
      ),
    ).toMatchObject({ body: { state: 'stopping' } });
    expect(await one.exit).toEqual({ code: 0, signal: null });
    expect(one.stdout()).toMatch(/^released$/m);
    expect(await store.status(nodes[0]?.id ?? -1)).toMatchObject({
      state: 'released',
      version: nodes[0]?.version,
    });
  });

  it('is taken over when it is killed, and the database refuses the version of the dead one from then on', async () => {
    const killed = start();
    const { id, version } = await nodeOf(killed);
    expect((await order(await portOf(killed))).status).toBe(201);
    killed.kill('SIGKILL');
    await until(
      () => store.status(id),
      ({ state }) => state === 'expired',
    );
    const successor = start();
    expect(await nodeOf(successor)).toEqual({ id, version: version + 1 });
    expect((await order(await portOf(successor))).status).toBe(201);
    const late = await fetch(database, {
      method: 'POST',
      body: JSON.stringify({ id: 'late', node: id, version, item: 'tea' }),
    });
    expect([late.status, await late.json()]).toEqual([
      409,
      { error: `node ${id} is at version ${version + 1}, not ${version}` },
    ]);
  });

  it('answers 503 and no error until it has all that an order takes: its node id, and the ids of orders, which come later', async () => {
    const { hostname, port } = new URL(inject('s3').endpoint);
    const proxy = new FaultProxy();
    // What only the first of all does takes many requests.
    expect((await runCli(['init'], { env: store.env }).exit).code).toBe(0);
    try {
      const slow = `http://127.0.0.1:${await proxy.start(hostname, Number(port))}`;
      // Until the first order is refused.
      proxy.stall('both');
      const example = runProcess(process.execPath, ['server.js'], {
        cwd: exampleFolder('express-service', ['nodelease', 'express']),
        env: { ...store.env, AWS_ENDPOINT_URL_S3: slow, DATABASE: database, PORT: '0', DURATION_MS: '15000' },
      });
      const at = await portOf(example);
      const seen = new Set<number>();
      await until(
        async () => (await order(at)).status,
        (status) => {
          if (!seen.has(status)) proxy.heal();
          proxy.delay(200);
          seen.add(status);
          return status === 201;
        },
      );
      expect([...seen]).toEqual([503, 201]);
    } finally {
      await killAll();
      await proxy.stop();
    }
  });

  it('answers health checks while it waits for a node id, and ends with 0 when it is asked to', async () => {
    const env = { ...store.env, AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9' };
    const waiting = runProcess(process.execPath, ['server.js'], {
      cwd: exampleFolder('express-service', ['nodelease', 'express']),
      env: { ...env, PORT: '0' },
    });
    const url = `http://127.0.0.1:${await portOf(waiting)}/internal`;
    expect((await getJson(`${url}/livez`)).status).toBe(200);
    expect(await getJson(`${url}/readyz`)).toMatchObject({ status: 503, body: { state: 'acquiring' } });
    waiting.kill('SIGTERM');
    expect(await waiting.exit).toEqual({ code: 0, signal: null });
  });
});

describe('the worker', () => {
  const start = (queue: string, sent: string, shards: number) =>
    runProcess(process.execPath, ['worker.js'], {
      cwd: exampleFolder('worker', ['nodelease']),
      env: { ...store.env, QUEUE: queue, SENT: sent, SHARDS: String(shards), DURATION_MS: '3000' },
    });
  const put = (queue: string, jobs: number) => {
    mkdirSync(queue, { recursive: true });
    for (let job = 0; job < jobs; job++) writeFileSync(join(queue, `${job}-mail`), '');
  };
  const letters = (sent: string) =>
    readdirSync(sent).map(
      (file) =>
        JSON.parse(readFileSync(join(sent, file), 'utf8')) as { job: string; shard: number; version: number },
    );

  it('works off the jobs of its shard and no others, and gives the shard back at SIGTERM', async () => {
    const [queue, sent] = [join(newFolder(), 'queue'), join(newFolder(), 'sent')];
    put(queue, 40);
    const workers = [start(queue, sent, 2), start(queue, sent, 2)];
    const shards = [];
    for (const worker of workers) shards.push(await nodeOf(worker, 'shard'));
    expect(shards.map(({ id }) => id).sort()).toEqual([0, 1]);
    await until(
      () => readdirSync(queue).length,
      (left) => left === 0,
    );
    expect(letters(sent)).toHaveLength(40);
    for (const { job, shard } of letters(sent)) expect(Number.parseInt(job, 10) % 2).toBe(shard);
    for (const worker of workers) worker.kill('SIGTERM');
    for (const worker of workers) expect(await worker.exit).toEqual({ code: 0, signal: null });
    expect(await store.status(0)).toMatchObject({ state: 'released' });
    expect(await store.status(1)).toMatchObject({ state: 'released' });
  });

  it('leaves its shard to a successor when it is killed, which does the rest under the next version', async () => {
    const [queue, sent] = [join(newFolder(), 'queue'), join(newFolder(), 'sent')];
    const killed = start(queue, sent, 1);
    const { version } = await nodeOf(killed, 'shard');
    killed.kill('SIGKILL');
    await killed.exit;
    put(queue, 10);
    expect(await nodeOf(start(queue, sent, 1), 'shard')).toEqual({ id: 0, version: version + 1 });
    await until(
      () => readdirSync(queue).length,
      (left) => left === 0,
    );
    expect(letters(sent).map((letter) => letter.version)).toEqual(Array(10).fill(version + 1));
  });

  it('ends with 0 when it is asked to while it waits for a shard', async () => {
    const [queue, sent] = [join(newFolder(), 'queue'), join(newFolder(), 'sent')];
    const holder = start(queue, sent, 1);
    await nodeOf(holder, 'shard');
    const queueOfTheSecond = join(newFolder(), 'queue');
    const waiting = start(queueOfTheSecond, sent, 1);
    await until(
      () => existsSync(queueOfTheSecond),
      (isThere) => isThere,
    );
    waiting.kill('SIGTERM');
    expect(await waiting.exit).toEqual({ code: 0, signal: null });
    expect(waiting.stdout()).toBe('');
  });

  it('does nothing more after a pause that outlasted its lease, and ends with 76', async () => {
    const [queue, sent] = [join(newFolder(), 'queue'), join(newFolder(), 'sent')];
    const paused = start(queue, sent, 1);
    await nodeOf(paused, 'shard');
    paused.kill('SIGSTOP');
    await until(
      () => store.status(0),
      ({ state }) => state === 'expired',
    );
    put(queue, 10);
    paused.kill('SIGCONT');
    expect(await paused.exit).toEqual({ code: 76, signal: null });
    expect(letters(sent)).toEqual([]);
  });
});

describe.each([
  ['Python', 'python-service', ['python3', 'service.py'], 0],
  // The JVM says 143 itself.
  ['Java', 'java-service', ['java', 'Main.java'], 143],
] as const)('the %s service', (_language, name, command, endsWith) => {
  const start = (...more: string[]) =>
    runCli(['run', '--http', '127.0.0.1:0', ...LEASE, ...more, '--', ...command], {
      cwd: exampleFolder(name),
      env: { ...store.env, PORT: '0' },
    });
  const ask = async (example: TestProcess) => getJson(`http://127.0.0.1:${await portOf(example)}/`);

  it('answers under its own id, and leaves a released lease at SIGTERM', async () => {
    const [one, two] = [start(), start()];
    const nodes = [await nodeOf(one), await nodeOf(two)];
    expect(new Set(nodes.map(({ id }) => id)).size).toBe(2);
    expect(await ask(one)).toEqual({ status: 200, body: { node: nodes[0]?.id, version: nodes[0]?.version } });
    expect(await ask(two)).toEqual({ status: 200, body: { node: nodes[1]?.id, version: nodes[1]?.version } });
    one.kill('SIGTERM');
    expect(await one.exit).toEqual({ code: endsWith, signal: null });
    expect(one.stdout()).toMatch(/^ended$/m);
    expect(await store.status(nodes[0]?.id ?? -1)).toMatchObject({
      state: 'released',
      version: nodes[0]?.version,
    });
  });

  it('says 503 once nodelease does not say any more that the id is its own, which a successor has later', async () => {
    // It asks nodelease once a second, for a second, and is ended with the lease.
    const example = start('--duration', '9s');
    const { id } = await nodeOf(example);
    expect((await ask(example)).status).toBe(200);
    // Neither nodelease nor its guard: the service is asked before they stop it.
    example.kill('SIGSTOP');
    expect(
      (
        await until(
          () => ask(example),
          ({ status }) => status === 503,
        )
      ).body,
    ).toEqual({ error: 'this node has lost its id' });
    await until(
      () => store.status(id),
      ({ state }) => state === 'expired',
    );
    expect(await nodeOf(start())).toEqual({ id, version: 2 });
  });

  it('takes every answer but 200 for a lease that is lost', async () => {
    const [file, ...args] = command;
    const env = { NODE_ID: '0', NODE_ID_VERSION: '1', NODELEASE_URL: (await withoutLease()).url };
    expect((await ask(runProcess(file, args, { cwd: exampleFolder(name), env }))).status).toBe(503);
  });
});

describe("the broker's environment", () => {
  const start = (...more: string[]) =>
    runCli(
      [
        ...[
          'run',
          '--nodes',
          '3',
          ...LEASE,
          '--env',
          'ZEEBE_BROKER_CLUSTER_NODEID={id}',
          '--env',
          'ZEEBE_BROKER_DATA_DIRECTORY=/data/{id}',
        ],
        ...['--', 'sh', '-c', './start-broker.sh && echo up && exec sleep 300'],
        ...more,
      ],
      { cwd: exampleFolder('zeebe-broker'), env: store.env },
    );

  it('has a separate node id for each of three brokers, and passes that of a killed one to its successor', async () => {
    const brokers = [start(), start(), start()];
    const ids = await Promise.all(
      brokers.map(async (broker) => {
        await broker.waitForOutput(/^up$/m, 60_000);
        const [, id] = /^ZEEBE_BROKER_CLUSTER_NODEID=(\d)$/m.exec(broker.stdout()) ?? [];
        expect(broker.stdout()).toContain(`ZEEBE_BROKER_DATA_DIRECTORY=/data/${id}\n`);
        return id;
      }),
    );
    expect([...ids].sort()).toEqual(['0', '1', '2']);
    brokers[1]?.kill('SIGKILL');
    const successor = start();
    await successor.waitForOutput(/^up$/m, 60_000);
    expect(successor.stdout()).toContain(`ZEEBE_BROKER_CLUSTER_NODEID=${ids[1]}\n`);
    brokers[0]?.kill('SIGTERM');
    await brokers[0]?.exit;
    expect(await store.status(Number(ids[0]))).toMatchObject({ state: 'released', version: 1 });
  });

  it('goes to the broker itself, in place of the shell', async () => {
    const folder = exampleFolder('zeebe-broker');
    const fake = join(folder, 'broker');
    writeFileSync(fake, '#!/bin/sh\necho "broker $ZEEBE_BROKER_CLUSTER_NODEID is process $$"\n', {
      mode: 0o755,
    });
    const broker = runCli(['run', '--env', 'ZEEBE_BROKER_CLUSTER_NODEID={id}', '--', './start-broker.sh'], {
      cwd: folder,
      env: { ...store.env, BROKER: fake },
    });
    expect(await broker.exit).toEqual({ code: 0, signal: null });
    expect(broker.stdout()).toMatch(/^ZEEBE_BROKER_CLUSTER_NODEID=0\nbroker 0 is process \d+\n$/);
  });
});

describe('the application next to the sidecar', () => {
  const sidecar = () =>
    runProcess(process.execPath, [cliFile, 'serve', '--http', '127.0.0.1:0', ...LEASE], { env: store.env });
  const urlOf = async (process_: TestProcess) =>
    (await process_.waitForOutput(/http:\/\/127\.0\.0\.1:\d+/, 60_000))[0];
  const start = (url: string, env: Record<string, string> = {}) =>
    runProcess(process.execPath, ['app.js'], {
      cwd: exampleFolder('sidecar'),
      env: { SIDECAR: url, EVERY_MS: '50', ...env },
    });

  it('works as the node that its sidecar holds, and stops working when that is stopped, which leaves a released lease', async () => {
    const [one, two] = [sidecar(), sidecar()];
    const apps = [start(await urlOf(one)), start(await urlOf(two))] as const;
    const nodes = [await nodeOf(apps[0]), await nodeOf(apps[1])] as const;
    expect(new Set(nodes.map(({ id }) => id)).size).toBe(2);
    await apps[0].waitForOutput(new RegExp(`works as node ${nodes[0].id}, version 1`));
    one.kill('SIGTERM');
    expect(await one.exit).toEqual({ code: 0, signal: null });
    await apps[0].waitForOutput(/^no node id$/m);
    expect(await store.status(nodes[0].id)).toMatchObject({ state: 'released', version: 1 });
    apps[0].kill('SIGTERM');
    expect(await apps[0].exit).toEqual({ code: 0, signal: null });
    expect(apps[0].stdout()).toMatch(/no node id\nended\n$/);
  });

  it('sends the token of its file where the sidecar asks for one, and the new one when that was replaced', async () => {
    const tokenFile = join(newFolder(), 'token');
    writeFileSync(tokenFile, 'the-first-token-of-all\n');
    const guarded = runProcess(
      process.execPath,
      [cliFile, 'serve', '--http', '127.0.0.1:0', '--bearer-token-file', tokenFile, ...LEASE],
      {
        env: store.env,
      },
    );
    const url = await urlOf(guarded);
    const [app, stranger] = [start(url, { TOKEN_FILE: tokenFile }), start(url)];
    const { id } = await nodeOf(app);
    writeFileSync(tokenFile, 'another-token-than-before\n');
    const before = app.stdout().length;
    await until(
      () =>
        app
          .stdout()
          .slice(before)
          .match(/^works as node/gm)?.length ?? 0,
      (times) => times >= 10,
    );
    for (const { kill } of [app, stranger]) kill('SIGTERM');
    await Promise.all([app.exit, stranger.exit]);
    // An answer may be lost to the replacement itself; no other task got the node meanwhile.
    expect(app.stdout()).toMatch(new RegExp(`works as node ${id}, version 1\nended\n$`));
    expect(stranger.stdout()).toBe('ended\n');
  });

  it('takes every answer but 200 for a lease that is lost', async () => {
    const { url, asked } = await withoutLease();
    const app = start(url);
    await until(asked, (times) => times >= 3);
    app.kill('SIGTERM');
    await app.exit;
    expect(app.stdout()).toBe('ended\n');
  });

  it('takes a sidecar that does not answer for a lease that is lost, and another sidecar takes the node over', async () => {
    const killed = sidecar();
    const app = start(await urlOf(killed));
    const { id, version } = await nodeOf(app);
    killed.kill('SIGKILL');
    await app.waitForOutput(/^no node id$/m);
    await until(
      () => store.status(id),
      ({ state }) => state === 'expired',
    );
    expect(await nodeOf(start(await urlOf(sidecar())))).toEqual({ id, version: version + 1 });
  });
});
