import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { parse } from 'yaml';
import { ContainerEngine } from '../support/containers/container-engine.js';
import { TEST_IMAGE } from '../support/containers/container-setup.js';
import { packageRoot } from '../support/package-root.js';
import { freePort } from '../support/servers/free-ports.js';
import { MINIO_IMAGE } from '../support/servers/minio-container.js';
import { ZOOKEEPER_IMAGE } from '../support/servers/zookeeper-container.js';

const FILE = join(packageRoot, 'infra/docker/compose.yaml');
const UP_WITHIN_MS = 180_000;

describe('the compose file', () => {
  const engine = new ContainerEngine(inject('containers'));
  let environment: Record<string, string>;
  let url: string;
  const compose = (...args: string[]) => engine.compose(FILE, engine.prefix, args, environment);
  const tasks = async () => names(engine, 'task');

  beforeAll(async () => {
    const port = await freePort();
    environment = { NODELEASE_IMAGE: TEST_IMAGE, NODELEASE_CONSOLE_PORT: String(port) };
    url = `http://127.0.0.1:${port}`;
    await compose('up', '--detach', '--no-build');
  }, UP_WITHIN_MS);

  afterAll(async () => {
    await compose('down', '--volumes', '--timeout', '5').catch((error: unknown) =>
      process.stderr.write(`${String(error)}\n`),
    );
  });

  it('has three tasks that are alike, and each gets its own id', {
    timeout: UP_WITHIN_MS,
  }, async () => {
    expect(await tasks()).toHaveLength(3);
    const nodes = await untilHolders(3);
    expect(new Set(nodes.map(({ id }) => id)).size).toBe(3);
    for (const name of await tasks()) {
      await engine.untilLogged(name, 'I am node ');
      await engine.untilHealth(name, 'healthy');
    }
  });

  it('has a console that this machine can reach, and nothing else that it can', async () => {
    const page = await fetch(`${url}/`);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toContain('text/html');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const { services } = parse(await readFile(FILE, 'utf8'), { merge: true }) as {
      services: Record<string, { ports?: string[] }>;
    };
    const published = Object.entries(services).flatMap(([name, { ports = [] }]) =>
      ports.map((port) => [name, port]),
    );
    expect(published).toEqual([['console', expect.stringMatching(/^127\.0\.0\.1:/)]]);
  });

  it('shows the tasks in the discovery tree', async () => {
    const [name = ''] = await tasks();
    // Tasks that start together take any free ids: the loser of a race draws one by chance.
    const held = (await untilHolders(3)).map(({ id }) => id);
    for (const begun = performance.now(); ; await sleep(500)) {
      const { stdout, stderr } = await engine.attempt([
        'exec',
        name,
        'nodelease',
        'discovery',
        'ls',
        '--json',
      ]);
      const announced = /^\{/.test(stdout)
        ? (JSON.parse(stdout) as { nodes: { nodeId: number }[] }).nodes.map(({ nodeId }) => nodeId)
        : [];
      if (announced.length === 3) return expect(announced.sort()).toEqual(held.sort());
      if (performance.now() - begun > 60_000) throw new Error(`the tree shows ${stdout}${stderr}`);
    }
  });

  it('starts a task again that has lost its lease', { timeout: UP_WITHIN_MS }, async () => {
    const before = await leases();
    const [evicted] = before.filter(({ state }) => state === 'held');
    const [name = ''] = await tasks();
    await engine.command('exec', name, 'nodelease', 'release', String(evicted?.id), '--force');
    const after = await until(async () => {
      const held = (await leases()).filter(({ state }) => state === 'held');
      const others = new Set(before.map(({ taskId }) => taskId));
      return held.length === 3 && held.some(({ taskId }) => !others.has(taskId)) ? held : undefined;
    }, 'a new task has taken the place of the evicted one');
    expect(new Set(after.map(({ taskId }) => taskId)).size).toBe(3);
  });

  it('releases all leases when its tasks are stopped', { timeout: UP_WITHIN_MS }, async () => {
    for (const name of await tasks()) await engine.command('stop', '--time', '20', name);
    // One that had to run out would be there as expired.
    await until(async () => {
      const left = (await leases()).filter(({ state }) => state === 'held' || state === 'expired');
      return left.length === 0 ? left : undefined;
    }, 'no lease is held or expired');
  });

  it('uses the images that the tests of the store and of discovery use', async () => {
    const { services } = parse(await readFile(FILE, 'utf8'), { merge: true }) as {
      services: Record<string, { image: string }>;
    };
    expect(services.minio?.image).toBe(MINIO_IMAGE);
    expect(services.zookeeper?.image).toBe(ZOOKEEPER_IMAGE);
  });

  async function leases(): Promise<Lease[]> {
    const response = await fetch(`${url}/api/leases`);
    expect(response.status, await response.clone().text()).toBe(200);
    return ((await response.json()) as { nodes: Lease[] }).nodes;
  }

  async function untilHolders(count: number): Promise<Lease[]> {
    return until(async () => {
      const held = (await leases()).filter(({ state }) => state === 'held');
      return held.length === count ? held : undefined;
    }, `${count} ids are held`);
  }

  async function until<T>(look: () => Promise<T | undefined>, what: string): Promise<T> {
    let last: unknown;
    for (
      const begun = performance.now();
      performance.now() - begun < UP_WITHIN_MS - 20_000;
      await sleep(500)
    ) {
      const found = await look().catch((error: unknown) => {
        last = error;
        return undefined;
      });
      if (found !== undefined) return found;
    }
    const logs = await compose('logs').catch(String);
    throw new Error(`not so in time: ${what} (${String(last)})\n${logs.slice(-8_000)}`);
  }
});

interface Lease {
  readonly id: number;
  readonly state: string;
  readonly taskId?: string;
}

/**
 * The containers of a service of this run's project; both tools name them so, apart from the character
 * between the words.
 */
async function names(engine: ContainerEngine, service: string): Promise<string[]> {
  const all = await engine.command(
    'ps',
    '--all',
    '--format',
    '{{.Names}}',
    '--filter',
    `name=${engine.prefix}`,
  );
  return all
    .split('\n')
    .filter((name) => new RegExp(`[-_]${service}[-_]\\d+$`).test(name))
    .sort();
}
