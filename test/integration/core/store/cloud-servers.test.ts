import { createServer } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { explain } from '../../../../src/core/base/errors.js';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import type { LeaseStore, WriteResult } from '../../../../src/core/store/lease-store.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { probeStore } from '../../../../src/core/store/probe/probe.js';
import { listening } from '../../../support/network/listening.js';
import {
  type StoreBucket,
  type StoreServer,
  startStoreServer,
} from '../../../support/servers/store-servers.js';

// Real servers, reached as a user would: by URL, with what the environment says.

const base = { clock, random, requestTimeoutMs: 10_000 };
const WRITERS = 50;
const opened: LeaseStore[] = [];

async function open(url: string, endpoint?: string): Promise<LeaseStore> {
  const store = await openStore(url, { ...base, endpoint });
  opened.push(store);
  return store;
}

const causeOf = (call: Promise<unknown>) => call.then(() => 'no failure', explain);

const NAMES = ['azurite', 'fake-gcs-server', 'dynalite'] as const;
const servers = {} as Record<(typeof NAMES)[number], StoreServer>;

beforeAll(async () => {
  const started = NAMES.map(async (name) => {
    servers[name] = await startStoreServer(name);
  });
  const failed = (await Promise.allSettled(started)).find((start) => start.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}, 600_000);

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  vi.unstubAllEnvs();
});

afterAll(() => Promise.all(Object.values(servers).map((server) => server.stop())));

/** Lets the stores of a group of tests find that server. */
function on(name: keyof typeof servers): () => StoreServer {
  beforeEach(() => {
    for (const [variable, value] of Object.entries(servers[name].env)) vi.stubEnv(variable, value);
  });
  return () => servers[name];
}

function winnersOf(results: readonly WriteResult[]): string[] {
  return results.flatMap((result) => (result.status === 'written' ? [result.etag] : []));
}

describe.each([
  { name: 'azurite', missing: 'azblob://devstoreaccount1/no-such-container/p', what: 'container' },
  { name: 'fake-gcs-server', missing: 'gs://no-such-bucket/p', what: 'bucket' },
  { name: 'dynalite', missing: 'dynamodb://no-such-table/p', what: 'table' },
] as const)('a store on $name', ({ name, missing, what }) => {
  const server = on(name);
  let bucket: StoreBucket;

  beforeEach(async () => {
    bucket = await server().createBucket();
  });

  it('keeps its objects where its URL says, with the facts in their metadata', async () => {
    const store = await open(`${bucket.url}/prod/orders/`);
    expect(store.url).toBe(`${bucket.url}/prod/orders`);
    await store.create('7.json', '{"taskId":"é"}', { taskid: 'task-a', version: '1' });
    await bucket.putRaw('prod/orders/deeper/0.json', 'x');
    await bucket.putRaw('prod/orders2/0.json', 'x');
    expect(await bucket.listKeys('prod/orders/7')).toEqual(['prod/orders/7.json']);
    expect(await bucket.getRaw('prod/orders/7.json')).toMatchObject({
      body: '{"taskId":"é"}',
      metadata: { taskid: 'task-a', version: '1' },
    });
    expect((await store.list()).objects.map(({ key }) => key)).toEqual(['7.json']);
  });

  it(`is proven by a probe, and lets one of ${WRITERS} racing writers win each time`, async () => {
    const stores = await Promise.all(Array.from({ length: WRITERS }, () => open(`${bucket.url}/p`)));
    const [store] = stores as [LeaseStore];
    const { checks } = await probeStore(store, { ...base, watchAgeMs: 0 });
    expect(checks.filter(({ status }) => status !== 'ok')).toEqual([]);
    for (const key of ['0.json', '1.json', '2.json']) {
      const creators = winnersOf(
        await Promise.all(stores.map((each, index) => each.create(key, `writer ${index}`, {}))),
      );
      expect(creators).toHaveLength(1);
      const replaced = winnersOf(
        await Promise.all(
          stores.map((each, index) => each.replace(key, `again ${index}`, {}, creators[0] ?? '')),
        ),
      );
      expect(replaced).toHaveLength(1);
      expect(await store.read(key)).toMatchObject({
        etag: replaced[0],
        body: expect.stringMatching(/^again /),
      });
    }
  });

  it(`says in one line that the ${what} does not exist`, async () => {
    const store = await open(missing);
    for (const call of [
      () => store.read('0.json'),
      () => store.list(),
      () => store.create('0.json', '', {}),
    ]) {
      expect(await causeOf(call())).toMatch(new RegExp(`^${missing}: ${what} does not exist`));
    }
    await expect(store.replace('0.json', 'x', {}, '1')).rejects.toMatchObject({
      fault: 'missing',
      outcome: 'not-applied',
    });
    await expect(probeStore(store, base)).rejects.toMatchObject({ fault: 'missing' });
  });
});

describe('Azurite', () => {
  const server = on('azurite');
  const connection = () => server().env.AZURE_STORAGE_CONNECTION_STRING ?? '';

  it('is found by an endpoint as well as by the connection string, with and without the account in its path', async () => {
    const { url } = await server().createBucket();
    vi.stubEnv(
      'AZURE_STORAGE_CONNECTION_STRING',
      connection().replace(/BlobEndpoint=[^;]*/, 'EndpointSuffix=core.windows.net'),
    );
    for (const path of ['', '/', '/devstoreaccount1']) {
      expect((await (await open(url, server().endpoint + path)).list()).objects).toEqual([]);
    }
  });

  it('says in one line that access is denied with a wrong key', async () => {
    const { url } = await server().createBucket();
    vi.stubEnv(
      'AZURE_STORAGE_CONNECTION_STRING',
      connection().replace(/AccountKey=[^;]*/, 'AccountKey=d3Jvbmc='),
    );
    const store = await open(url);
    expect(await causeOf(store.read('0.json'))).toMatch(
      /^azblob:\S+: reading 0\.json: access denied \(AuthorizationFailure[^\n]*$/,
    );
    await expect(store.create('0.json', '', {})).rejects.toMatchObject({
      fault: 'denied',
      outcome: 'not-applied',
    });
  });
});

describe('fake-gcs-server', () => {
  const server = on('fake-gcs-server');

  it('is found by an endpoint', async () => {
    const { url } = await server().createBucket();
    vi.stubEnv('STORAGE_EMULATOR_HOST', '127.0.0.1:1');
    expect((await (await open(url, `${server().endpoint}/`)).list()).objects).toEqual([]);
  });
});

it('a server that is not one of Google is refused: it reports no generation', async () => {
  const other = await listening(
    createServer((request, response) => {
      request.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{}'));
    }),
  );
  const store = await open('gs://bucket/p', other.url);
  await expect(store.create('0.json', 'x', {})).rejects.toMatchObject({
    fault: 'rejected',
    message: expect.stringContaining('is this Cloud Storage?'),
  });
  other.close();
});
