import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  generateAccountSASQueryParameters,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest';
import { TestAuthority } from '../../../support/certificates.js';
import { enableEtcdUsers } from '../../../support/etcd-admin.js';
import { type Listening, listening } from '../../../support/network/listening.js';
import { killAll, runCli } from '../../../support/processes.js';
import { restrictedEnvironment } from '../../../support/restricted-access.js';
import { DEVELOPMENT_KEY } from '../../../support/servers/azurite-bucket.js';
import { startEtcdProcess } from '../../../support/servers/etcd-process.js';
import { startObjectStoreServer } from '../../../support/stores/object-store-servers.js';
import { s3StoreServer } from '../../../support/stores/s3-store-server.js';

// Who may not in, and who asks in a wrong way: each store says so in one line, with the same exit codes.

/**
 * A store is given eight seconds to answer; the rest is for the start of a process on a machine that has much
 * else to do.
 */
const LIMIT_MS = 60_000;

/** How a task asks for a store, and the answer that it should get. */
interface Refusal {
  readonly store: string;
  readonly options?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly says: RegExp;
}

/** The surroundings of a process that has been given nothing. */
const NO_HOME = { HOME: '/nonexistent' };

function connectionString(endpoint: string, access = `AccountKey=${DEVELOPMENT_KEY}`): string {
  return `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;${access};BlobEndpoint=${endpoint}/devstoreaccount1;`;
}

const authority = new TestAuthority();
let impostor: Listening;

beforeAll(async () => {
  const { cert, key } = authority.issue({ name: 'localhost', hosts: 'DNS:localhost,IP:127.0.0.1' });
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_, response) =>
    response.end(),
  );
  const { url, close } = await listening(server);
  impostor = { url: url.replace('http:', 'https:'), close };
});
afterAll(() => {
  impostor.close();
  authority.dispose();
});
afterEach(killAll);

/** Runs a task and the doctor. Resolves to the exit code of both, and the one line that the task says. */
async function refused({
  store,
  options = [],
  env = {},
}: Refusal): Promise<{ code: number | null; line: string }> {
  const access = ['--store', store, ...options];
  const begun = performance.now();
  const task = runCli(['run', '--nodes', '2', ...access, '--', 'true'], { env });
  const doctor = runCli(['doctor', ...access], { env });
  const [{ code }, examined] = await Promise.all([task.exit, doctor.exit]);
  expect(performance.now() - begun).toBeLessThan(LIMIT_MS);
  expect(examined.code, doctor.stdout()).toBe(code);
  expect(task.stdout()).toBe('');
  // A task names its store first, once that is known to be one.
  const line = task.stderr().replace(/^[^\n]*"msg":"node ids come from [^\n]*\n/, '');
  for (const text of [line, doctor.stderr()]) expect(text).toMatch(/^[^\n]+\n$/);
  for (const { stderr } of [task, doctor]) expect(stderr()).not.toMatch(/stack|\bat [\w.<>]+ \(|secret|sig=/);
  return { code, line };
}

async function expectRefusals(code: number, refusals: Readonly<Record<string, Refusal>>): Promise<void> {
  for (const [what, refusal] of Object.entries(refusals)) {
    const said = await refused(refusal);
    expect([what, said]).toEqual([what, { code, line: expect.stringMatching(refusal.says) }]);
  }
}

it('a store that is written wrongly: 64', async () => {
  await expectRefusals(64, {
    'no bucket': { store: 's3://', says: /^nodelease: --store: expected a bucket name/ },
    'no server': {
      store: 'etcd:///prefix',
      says: /^nodelease: --store: expected etcd:.*\(a server is empty\)/,
    },
    'no prefix in etcd': { store: 'etcd://127.0.0.1:2379', says: /^nodelease: --store: expected a prefix/ },
    'a password in the URL': {
      store: 'etcd://me:secret@127.0.0.1:2379/p',
      says: /^nodelease: --store: expected no user and password/,
    },
    'a CA without TLS': {
      store: 'etcd://127.0.0.1:2379/p',
      options: ['--etcd-ca', authority.ca],
      says: /^nodelease: --etcd-ca: expected a store of etcds:/,
    },
    'no such CA': {
      store: 'etcds://127.0.0.1:2379/p',
      options: ['--etcd-ca', '/nonexistent/ca.pem'],
      says: /^nodelease: --etcd-ca: .*ca\.pem/,
    },
    'no account': { store: 'azblob://', says: /^nodelease: --store: expected a storage account/ },
    'no container': { store: 'azblob://account', says: /^nodelease: --store: expected a container/ },
    'a connection string that is none': {
      store: 'azblob://account/container',
      env: { AZURE_STORAGE_CONNECTION_STRING: 'of the secret kind' },
      says: /AZURE_STORAGE_CONNECTION_STRING: expected a connection string/,
    },
    'a connection string of another account': {
      store: 'azblob://account/container',
      env: { AZURE_STORAGE_CONNECTION_STRING: connectionString('http://127.0.0.1:1') },
      says: /--store: expected the account of AZURE_STORAGE_CONNECTION_STRING, devstoreaccount1/,
    },
    'no bucket of Google': { store: 'gs://', says: /^nodelease: --store: expected a bucket name/ },
    'an endpoint of etcd': {
      store: 'etcd://127.0.0.1:2379/p',
      options: ['--endpoint', 'http://127.0.0.1:1'],
      says: /^nodelease: --endpoint: expected no endpoint with the store etcd:/,
    },
  });
});

it('S3 that does not let a task in: 69', async () => {
  const s3 = inject('s3');
  const { url, endpoint = '', env } = (await s3StoreServer(s3).newPlace())();
  const bucket = new URL(url).host;
  const known = { store: url, options: ['--endpoint', endpoint], env };
  await expectRefusals(69, {
    'no bucket': { ...known, store: 's3://nodelease-no-such-bucket/x', says: /bucket does not exist/ },
    'a wrong key': {
      ...known,
      env: { ...env, AWS_SECRET_ACCESS_KEY: 'wrong-wrong-wrong' },
      says: /access denied/,
    },
    'a token that is over': {
      ...known,
      env: { ...env, AWS_SESSION_TOKEN: 'of-yesterday' },
      says: /access denied/,
    },
    'no right to write': {
      ...known,
      env: await restrictedEnvironment(s3, { 's3:ListBucket': bucket, 's3:GetObject': `${bucket}/*` }),
      says: /access denied .*needs s3:PutObject/,
    },
    'a certificate of another CA': { ...known, options: ['--endpoint', impostor.url], says: /certificate/ },
  });
});

it('etcd that does not let a task in: 69', async () => {
  const etcd = await startEtcdProcess();
  try {
    await enableEtcdUsers(etcd.endpoint, 'orders', 'prod');
    const as = (auth: string) => ({
      store: `etcd://${etcd.address}/prod/fleet`,
      env: { NODELEASE_ETCD_AUTH: auth },
    });
    await expectRefusals(69, {
      'no user': {
        store: `etcd://${etcd.address}/prod/fleet`,
        says: /set etcd\.auth \(--etcd-auth\): .*user name is empty/,
      },
      'an unknown user': { ...as('nobody:secret'), says: /wrong user or password/ },
      'a wrong password': { ...as('orders:wrong'), says: /wrong user or password/ },
      'no right to the prefix': {
        ...as('orders:secret'),
        store: `etcd://${etcd.address}/staging`,
        says: /access denied .*readwrite/,
      },
      'a certificate of another CA': {
        store: `etcds://${new URL(impostor.url).host}/p`,
        says: /certificate/,
      },
      'TLS where there is none': {
        store: `etcds://${etcd.address}/p`,
        // Which one Node reports depends on when the connection is reset.
        says: /secure TLS connection|protocol of the URL|ECONNRESET/,
      },
      'a server with TLS without it': {
        store: `etcd://${new URL(impostor.url).host}/p`,
        says: /etcd:\/\/127\.0\.0\.1/,
      },
    });
  } finally {
    await etcd.dispose();
  }
});

it('Azure Blob Storage that does not let a task in: 69', async () => {
  const azurite = await startObjectStoreServer('azblob');
  try {
    const { url, env } = (await azurite.newPlace())();
    const signed = (permissions: string, minutes: number) => {
      const rights = {
        permissions: AccountSASPermissions.parse(permissions),
        expiresOn: new Date(Date.now() + minutes * 60_000),
        resourceTypes: AccountSASResourceTypes.parse('sco').toString(),
        services: 'b',
      };
      const signature = generateAccountSASQueryParameters(
        rights,
        new StorageSharedKeyCredential('devstoreaccount1', DEVELOPMENT_KEY),
      );
      return connectionString(azurite.endpoint, `SharedAccessSignature=${signature.toString()}`);
    };
    const as = (given: string) => ({ store: url, env: { AZURE_STORAGE_CONNECTION_STRING: given } });
    await expectRefusals(69, {
      'no container': {
        store: 'azblob://devstoreaccount1/nodelease-no-such-container/x',
        env,
        says: /container does not exist/,
      },
      'a wrong key': {
        ...as(connectionString(azurite.endpoint, `AccountKey=${btoa('wrong')}`)),
        says: /access denied/,
      },
      'a signature that is over': { ...as(signed('rwdl', -60)), says: /access denied/ },
      'no right to write': { ...as(signed('rl', 60)), says: /access denied .*needs blobs\/write/ },
      'a certificate of another CA': {
        store: url,
        env,
        options: ['--endpoint', impostor.url],
        says: /certificate/,
      },
      'no credentials': { store: url, env: NO_HOME, says: /no Azure credentials found|no answer/ },
    });
  } finally {
    await azurite.stop();
  }
}, 600_000);

it('Google Cloud Storage that does not let a task in: 69', async () => {
  const server = await startObjectStoreServer('gs');
  try {
    const { url, env } = (await server.newPlace())();
    await expectRefusals(69, {
      'no bucket': { store: 'gs://nodelease-no-such-bucket/x', env, says: /bucket does not exist/ },
      'no credentials': { store: url, env: NO_HOME, says: /no Google credentials found|no answer/ },
    });
  } finally {
    await server.stop();
  }
}, 600_000);
