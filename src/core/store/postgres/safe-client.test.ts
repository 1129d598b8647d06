import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it, vi } from 'vitest';
import { systemClock as clock } from '../../base/system.js';
import { openPostgresStore } from './open-postgres-store.js';

it('a server that asks for Kerberos is refused, and does not end the process', async () => {
  vi.stubEnv('PGSSLMODE', undefined);
  const server = createServer((socket) =>
    socket.once('data', () => socket.write('R\0\0\0\x08\0\0\0\x07', 'latin1')),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const store = await openPostgresStore({
    ...{ url: 'postgres://me@host/db/p', servers: [{ host: '127.0.0.1', port }], user: 'me', database: 'db' },
    ...{ prefix: 'p', clock, requestTimeoutMs: 2_000 },
  });
  await expect(store.read('0.json')).rejects.toMatchObject({
    fault: 'rejected',
    message: expect.stringMatching(/^postgres:\/\/me@host\/db\/p: the server wants .* Kerberos/),
  });
  await store.close();
  server.close();
  vi.unstubAllEnvs();
});
