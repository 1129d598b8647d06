import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { explain } from '../../../../src/core/base/errors.js';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { TestAuthority } from '../../../support/certificates.js';
import { complaintOf } from '../../../support/fleet.js';
import { killAll, runCli } from '../../../support/processes.js';

// Stores of Azure and Google that cannot be used, and where their credentials come from. What hands out
// tokens, and what refuses them, stands in.

const AZURE = 'azblob://acct1/leases/x';
const GOOGLE = 'gs://leases-of-a-test/x';

let authority: TestAuthority;
let tokens: Server;
let service: Server;
/** What the service has been sent. */
const authorizations = new Set<string | undefined>();
/** How far the clock of the service is ahead, in milliseconds. */
let aheadMs = 0;
let home: string;

const portOf = (server: Server) => (server.address() as AddressInfo).port;

async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

beforeAll(async () => {
  authority = new TestAuthority();
  const { cert, key } = authority.issue({ name: 'localhost', hosts: 'DNS:localhost,IP:127.0.0.1' });
  // The token services of an instance of Compute Engine and of App Service.
  let given = 0;
  tokens = await listening(
    createHttpServer((_, response) => {
      given += 1;
      response.setHeader('metadata-flavor', 'Google').setHeader('content-type', 'application/json');
      const token = {
        access_token: `TOKEN${given}`,
        expires_in: 3_600,
        expires_on: Math.floor(Date.now() / 1_000) + 3_600,
        token_type: 'Bearer',
      };
      response.end(JSON.stringify({ ...token, resource: 'https://storage.azure.com' }));
    }),
  );
  service = await listening(
    createHttpsServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
      const { authorization } = request.headers;
      authorizations.add(authorization);
      response.setHeader('date', new Date(Date.now() + aheadMs).toUTCString());
      if (request.url?.startsWith('/acct1')) {
        const [status, code] = authorization?.startsWith('Bearer')
          ? [401, 'InvalidAuthenticationInfo']
          : [403, 'AuthenticationFailed'];
        response.writeHead(status, { 'x-ms-error-code': code, 'content-type': 'application/xml' });
        response.end(
          `<?xml version="1.0"?><Error><Code>${code}</Code><Message>Lifetime validation failed. The token is expired.</Message></Error>`,
        );
      } else {
        response.writeHead(401, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify({
            error: { code: 401, message: 'Invalid Credentials', errors: [{ reason: 'authError' }] },
          }),
        );
      }
    }),
  );
  home = await mkdtemp(join(tmpdir(), 'nodelease-cloud-'));
  await writeFile(join(home, 'file'), '');
});

afterEach(() => {
  vi.unstubAllEnvs();
  aheadMs = 0;
  return killAll();
});

afterAll(async () => {
  for (const server of [tokens, service]) {
    server?.closeAllConnections();
    server?.close();
  }
  authority?.dispose();
  await rm(home, { recursive: true, force: true });
});

const endpoint = () => ['--endpoint', `https://localhost:${portOf(service)}`];
const google = () => ({
  GCE_METADATA_HOST: `127.0.0.1:${portOf(tokens)}`,
  METADATA_SERVER_DETECTION: 'assume-present',
});
const azure = () => ({
  IDENTITY_ENDPOINT: `http://127.0.0.1:${portOf(tokens)}/token`,
  IDENTITY_HEADER: 'header',
});
const connection = (address: string) => ({
  AZURE_STORAGE_CONNECTION_STRING: `DefaultEndpointsProtocol=https;AccountName=acct1;AccountKey=c2VjcmV0;BlobEndpoint=${address}/acct1;`,
});

/** Runs a task that cannot get anywhere; the one line that it says. */
async function complaint(
  store: string,
  options: readonly string[],
  env: Record<string, string>,
): Promise<{ code: number | null; line: string }> {
  authorizations.clear();
  const task = runCli(['run', '--nodes', '2', '--store', store, ...options, '--', 'true'], {
    env: { HOME: home, NODE_EXTRA_CA_CERTS: authority.ca, METADATA_SERVER_DETECTION: 'none', ...env },
  });
  const { code } = await task.exit;
  expect(task.stdout()).toBe('');
  expect(task.stderr()).not.toMatch(/stack|\\n\s+at |c2VjcmV0/);
  return { code, line: complaintOf(task.stderr(), store) };
}

describe('a store that cannot be used ends a task with 69 and says why in one line', () => {
  it.each<
    [what: string, store: string, options: () => string[], env: () => Record<string, string>, says: RegExp]
  >([
    [
      'no credentials of Azure',
      AZURE,
      () => [],
      () => ({}),
      /no Azure credentials found: not by AZURE_STORAGE_CONNECTION_STRING/,
    ],
    [
      'no credentials of Google',
      GOOGLE,
      () => [],
      () => ({}),
      /no Google credentials found: Could not load the default credentials/,
    ],
    [
      'an expired token of Azure',
      AZURE,
      endpoint,
      azure,
      /access denied \(InvalidAuthenticationInfo\): Lifetime validation failed/,
    ],
    [
      'an expired token of Google',
      GOOGLE,
      endpoint,
      google,
      /access denied \(HTTP 401, authError: Invalid Credentials/,
    ],
  ])('%s', async (what, store, options, env, says) => {
    expect(await complaint(store, options(), env())).toEqual({ code: 69, line: expect.stringMatching(says) });
    // The default chain was asked for the token, and it was sent; Google's again after the refusal.
    const sent = [...authorizations].join();
    if (what.includes('token')) expect(sent).toMatch(/^Bearer TOKEN\d+(,Bearer TOKEN\d+)*$/);
    expect(authorizations.size > 1).toBe(what === 'an expired token of Google');
  });

  it('no server at Azure’s address', async () => {
    // What a task does then is in unusable-stores.test.ts.
    vi.stubEnv(
      'AZURE_STORAGE_CONNECTION_STRING',
      connection('http://127.0.0.1:1').AZURE_STORAGE_CONNECTION_STRING,
    );
    const store = await openStore(AZURE, { clock, random, requestTimeoutMs: 10_000 });
    const failure = await store.read('cluster.json').catch((error: unknown) => error);
    expect(failure).toMatchObject({ fault: 'unreachable', outcome: 'not-applied' });
    expect(explain(failure)).toMatch(/^azblob:[^\n]* cannot connect: connect ECONNREFUSED/);
    await store.close();
  });

  it('a clock that is hours behind that of Azure', async () => {
    aheadMs = 3 * 3_600_000;
    const { code, line } = await complaint(AZURE, [], connection(`https://localhost:${portOf(service)}`));
    expect(code).toBe(69);
    expect(line).toMatch(/access denied \(AuthenticationFailed\): the clock of this host is wrong$/);
  });
});

it.each([
  ['azblob://acct1', 'a container'],
  ['azblob://My_Account/leases', 'a storage account'],
  ['gs://ab', 'a bucket name'],
])('%s ends a task with 64, and says what was expected', async (store, expected) => {
  const task = runCli(['run', '--store', store, '--', 'true']);
  expect((await task.exit).code).toBe(64);
  expect(task.stderr()).toContain(`--store: expected ${expected}`);
});
