import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, vi } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { openGcsStore } from './open-gcs-store.js';

it('a metadata server that was not there at the first call, as in a new pod, is asked again by the next one', async () => {
  let isThere = false;
  const server = createServer((_, response) => {
    response.setHeader('metadata-flavor', 'Google').setHeader('content-type', 'application/json');
    const token = { access_token: 'token', token_type: 'Bearer', expires_in: 3_600 };
    response.writeHead(isThere ? 200 : 404).end(JSON.stringify(token));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  vi.stubEnv('GCE_METADATA_HOST', `127.0.0.1:${(server.address() as AddressInfo).port}`);
  vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '');
  vi.stubEnv('METADATA_SERVER_DETECTION', '');
  vi.stubEnv('HOME', '/nonexistent');
  const store = await openGcsStore({
    ...{ bucket: 'leases', prefix: 'p', endpoint: 'https://127.0.0.1:1' },
    ...{ clock: new VirtualClock(), requestTimeoutMs: 5_000 },
  });
  await expect(store.read('0.json')).rejects.toThrow('no Google credentials found');
  isThere = true;
  await expect(store.read('0.json')).rejects.toThrow('ECONNREFUSED');
  await store.close();
  vi.unstubAllEnvs();
  server.closeAllConnections();
  server.close();
});
