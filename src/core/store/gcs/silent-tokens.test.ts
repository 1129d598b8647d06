import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { openGcsStore } from './open-gcs-store.js';

it('a service of tokens that leaves a request without an answer is asked again by the next call', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-tokens-'));
  const tokens = createServer().listen(0, '127.0.0.1');
  await once(tokens, 'listening');
  const file = join(folder, 'subject');
  const credentials = {
    ...{
      type: 'external_account',
      audience: 'tests',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    },
    token_url: `http://127.0.0.1:${(tokens.address() as AddressInfo).port}`,
    credential_source: { file },
  };
  await writeFile(file, 'subject');
  await writeFile(join(folder, 'credentials'), JSON.stringify(credentials));
  vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', join(folder, 'credentials'));
  const clock = new VirtualClock();
  const endpoint = 'https://127.0.0.1:1';
  const store = await openGcsStore({
    bucket: 'leases',
    prefix: 'p',
    endpoint,
    clock,
    requestTimeoutMs: 5_000,
  });
  const silent = store.read('0.json').catch(({ message }: Error) => message);
  await once(tokens, 'request');
  await clock.advance(5_000);
  expect(await silent).toContain('no answer within 5000 ms');
  const token = { access_token: 'token', token_type: 'Bearer', expires_in: 3_600 };
  tokens.on('request', (_, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(token)),
  );
  await expect(store.read('0.json')).rejects.toThrow('ECONNREFUSED');
  await store.close();
  vi.unstubAllEnvs();
  tokens.closeAllConnections();
  tokens.close();
  await rm(folder, { recursive: true });
});
