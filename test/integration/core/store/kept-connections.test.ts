import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { LeaseStore } from '../../../../src/core/store/lease-store.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { DEVELOPMENT_KEY } from '../../../support/servers/azurite-bucket.js';

// A connection that the server closes just when a request is sent costs the outcome of that request: it has
// to be closed here before.

let server: Server;
let endpoint: string;
let keepAlive: string | undefined;
/** For each connection: its end, by the other side. */
let closings: Promise<unknown>[];
let stores: LeaseStore[];

beforeEach(async () => {
  [keepAlive, closings, stores] = [undefined, [], []];
  // Whatever it says, it never closes what is idle.
  server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    request.resume();
    response
      .writeHead(403, { connection: 'keep-alive', ...(keepAlive && { 'keep-alive': keepAlive }) })
      .end();
  });
  server.on('connection', (socket) => closings.push(once(socket, 'end')));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'])
    for (const each of [name, name.toLowerCase()]) vi.stubEnv(each, undefined);
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  const account = `AccountName=devstoreaccount1;AccountKey=${DEVELOPMENT_KEY}`;
  vi.stubEnv(
    'AZURE_STORAGE_CONNECTION_STRING',
    `DefaultEndpointsProtocol=http;${account};BlobEndpoint=${endpoint}/devstoreaccount1;`,
  );
});

afterEach(async () => {
  for (const store of stores) await store.close();
  vi.unstubAllEnvs();
  server.closeAllConnections();
  server.close();
});

/** The drivers that keep connections, and whether the endpoint is an option. */
const STORES: readonly [url: string, takesEndpoint: boolean][] = [
  ['s3://bucket/p', true],
  ['azblob://devstoreaccount1/leases/p', false],
  ['gs://bucket/p', true],
  ['dynamodb://leases/p', true],
  ['etcd://HOST/p', false],
];

async function request([url, takesEndpoint]: (typeof STORES)[number]): Promise<void> {
  const store = await openStore(url.replace('HOST', new URL(endpoint).host), {
    ...{ clock: systemClock, random: systemRandom, requestTimeoutMs: 60_000 },
    ...(takesEndpoint && { endpoint }),
  });
  stores.push(store);
  await expect(store.read('0.json')).rejects.toMatchObject({ fault: expect.any(String) });
}

it.each(STORES)(
  '%s closes an idle connection before the server does, which says when it will',
  async (...store) => {
    keepAlive = 'timeout=2';
    await request(store);
    expect(closings).toHaveLength(1);
    await Promise.all(closings);
  },
);

it('a connection that is idle for some seconds is closed, whatever the server says', async () => {
  await Promise.all(STORES.map(request));
  expect(closings).toHaveLength(STORES.length);
  await Promise.all(closings);
});
