import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, vi } from 'vitest';
import { systemClock, systemRandom } from '../../src/core/base/system.js';
import { openStore } from '../../src/core/store/open-store.js';
import type { StatusReport } from '../../src/node/wire/status-report.js';
import { awsEnvironment, createBucket } from './bucket.js';
import { runInProcess } from './in-process.js';
import { runCli, type TestProcess } from './processes.js';
import type { S3Access } from './servers/minio.js';
import type { ServerKind, StoreServer } from './stores/store-server.js';

/** A store for the tasks of one test, as options and environment of the command line. */
export interface FleetStore {
  readonly name: 'file' | ServerKind;
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The keys of all objects in it, the driver's own left out. */
  keys(): Promise<string[]>;
  read(key: string): Promise<string | undefined>;
  /** Writes an object without a condition, as a careless hand would. */
  spoil(key: string, body: string): Promise<void>;
  remove(): Promise<void>;
}

/** A store that no other test uses: a temporary folder, or a bucket on the test server. */
export async function fleetStore(
  kind: 'file' | 's3',
  s3: S3Access,
  endpoint = s3.endpoint,
): Promise<FleetStore> {
  if (kind === 's3') {
    const bucket = await createBucket(s3);
    return {
      name: 's3',
      options: ['--store', `s3://${bucket.name}/fleet`, '--endpoint', endpoint],
      env: awsEnvironment(s3),
      keys: async () => (await bucket.listKeys('fleet/')).map((key) => key.slice('fleet/'.length)),
      read: async (key) => (await bucket.getRaw(`fleet/${key}`))?.body,
      spoil: (key, body) => bucket.putRaw(`fleet/${key}`, body),
      remove: async () => undefined,
    };
  }
  const directory = await mkdtemp(join(tmpdir(), 'nodelease-fleet-'));
  const fs = await import('node:fs/promises');
  return {
    name: 'file',
    options: ['--store', `file:${directory}`],
    env: {},
    keys: async () => (await fs.readdir(directory)).filter((name) => !name.startsWith('.')).sort(),
    read: (key) => fs.readFile(join(directory, key), 'utf8').catch(() => undefined),
    spoil: (key, body) => fs.writeFile(join(directory, key), body),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

/**
 * A store that no other test uses on a server of any kind, looked into through its driver, which finds the
 * server's credentials in this process.
 */
export async function storeOn(server: StoreServer, through?: string): Promise<FleetStore> {
  const access = await server.newPlace();
  const { url, endpoint, env } = access(through);
  const direct = access();
  for (const [name, value] of Object.entries(direct.env)) vi.stubEnv(name, value);
  const own = { clock: systemClock, random: systemRandom, requestTimeoutMs: 10_000 };
  const store = await openStore(direct.url, { ...own, endpoint: direct.endpoint });
  return {
    name: server.kind,
    options: ['--store', url, ...(endpoint === undefined ? [] : ['--endpoint', endpoint])],
    env,
    keys: async () => (await store.list()).objects.map(({ key }) => key).sort(),
    read: async (key) => (await store.read(key))?.body,
    spoil: async (key, body) => {
      const etag = (await store.read(key))?.etag;
      const written =
        etag === undefined ? await store.create(key, body, {}) : await store.replace(key, body, {}, etag);
      if (written.status !== 'written') throw new Error(`${url}: ${key} was not written`);
    },
    remove: () => store.close(),
  };
}

const stores: FleetStore[] = [];

/** A {@link fleetStore} on the S3 server of this run, gone after {@link removeStores}. */
export async function newStore(kind: 'file' | 's3' = 'file', endpoint?: string): Promise<FleetStore> {
  const store = await fleetStore(kind, inject('s3'), endpoint);
  stores.push(store);
  return store;
}

/** For `afterEach`. */
export async function removeStores(): Promise<void> {
  for (const store of stores.splice(0)) await store.remove();
}

/** What `nodelease status --json` says. */
export async function statusOf(store: FleetStore): Promise<StatusReport> {
  const { answer } = await runInProcess(['status', '--json', ...store.options], { env: store.env });
  return JSON.parse(answer) as StatusReport;
}

/** Takes node id 0 from its holder. */
export async function evict(store: FleetStore): Promise<void> {
  const release = ['release', '0', '--force', ...store.options];
  const { code, complaints } = await runInProcess(release, { env: store.env });
  if (code !== 0) throw new Error(`release failed: ${complaints}`);
}

/**
 * Makes the cluster before its tasks: while the first one still makes the objects, the second may get any
 * free id.
 */
export async function initCluster(store: FleetStore, ...options: string[]): Promise<void> {
  const { code, complaints } = await runInProcess(['init', ...options, ...store.options], { env: store.env });
  if (code !== 0) throw new Error(`init failed: ${complaints}`);
}

/** One line of a task's log. */
export interface LogLine {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly msg: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A task: `nodelease run` with a command that says what it was given, and what becomes of it. */
export interface Task extends TestProcess {
  /** Resolves to the id and version that its command was started with. */
  started(ms?: number): Promise<{ id: number; version: number }>;
  /** Its log so far; every line has to be JSON. */
  log(): LogLine[];
}

/** Starts a task; its command prints `id N version V` and then runs `script`. */
export function startTask(store: FleetStore, options: readonly string[], script = 'sleep 300'): Task {
  const command = ['sh', '-c', `echo "id $NODE_ID version $NODE_ID_VERSION"; ${script}`];
  const process = runCli(['run', ...store.options, ...options, '--', ...command], { env: store.env });
  return {
    ...process,
    started: async (ms) => {
      const [, id, version] = await process.waitForOutput(/^id (\d+) version (\d+)$/m, ms);
      return { id: Number(id), version: Number(version) };
    },
    log: () => parseLog(process.stderr()),
  };
}

/** The lines of a log, as far as they are complete. */
export function parseLog(text: string): LogLine[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const fields = JSON.parse(line) as Record<string, unknown>;
      return { at: Date.parse(String(fields.time)), msg: String(fields.msg), fields };
    });
}

/**
 * What a task says that cannot get anywhere: one line, after the one that names its store.
 * @throws Error where it says anything else
 */
export function complaintOf(log: string, store: string): string {
  const [source, complaint, ...others] = parseLog(log).map(({ msg }) => msg);
  if (source !== `node ids come from ${store}` || complaint === undefined || others.length > 0)
    throw new Error(log);
  return complaint;
}

/** When a message was first logged, or last, in milliseconds since the Unix epoch. */
export function loggedAt(log: readonly LogLine[], msg: RegExp, which: 'first' | 'last' = 'first'): number {
  const lines = log.filter((line) => msg.test(line.msg));
  const line = which === 'first' ? lines[0] : lines.at(-1);
  if (line === undefined)
    throw new Error(`nothing like ${msg} was logged:\n${log.map(({ msg }) => msg).join('\n')}`);
  return line.at;
}
