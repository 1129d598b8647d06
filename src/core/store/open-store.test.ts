import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ConfigError } from '../base/errors.js';
import { systemClock, systemRandom } from '../base/system.js';
import { openStore } from './open-store.js';

const base = { clock: systemClock, random: systemRandom, requestTimeoutMs: 1_000 };

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const ACCOUNT =
  'DefaultEndpointsProtocol=https;AccountName=acct1;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net';

const withoutRegion = () => {
  for (const name of [
    'AWS_REGION',
    'AWS_DEFAULT_REGION',
    'AWS_PROFILE',
    'AWS_ENDPOINT_URL',
    'AWS_ENDPOINT_URL_S3',
  ])
    vi.stubEnv(name, '');
  vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent/config');
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent/credentials');
};

const WITHOUT_CONTAINER = 'the server’s URL without the container';

describe('opening a store', () => {
  it.each([
    ['s3://leases/prod', 's3://leases/prod', true],
    ['azblob://acct1/leases/prod', 'azblob://acct1/leases/prod', true],
    ['gs://leases/prod', 'gs://leases/prod', true],
    ['dynamodb://leases/prod', 'dynamodb://leases/prod', true],
    ['file:some/folder', 'file:some/folder', false],
    ['memory:', 'memory:', false],
  ])('%s gives the store of that URL', async (value, url, remote) => {
    const store = await openStore(value, { ...base, ...(remote ? { region: 'eu-west-1' } : {}) });
    expect(store).toMatchObject({ url, remote });
    await store.close();
  });

  it.each([
    ['file:leases', 'http://127.0.0.1:9000', 'no endpoint with the store file:leases'],
    ['memory:', 'http://127.0.0.1:9000', 'no endpoint with the store memory:'],
    ['s3://leases', 'ftp://127.0.0.1', 'an http or https URL'],
    ['s3://leases', '127.0.0.1:9000', 'an http or https URL'],
    ['s3://leases', 'http://127.0.0.1:9000/?x=1', 'an http or https URL'],
    ['s3://leases', '', 'an http or https URL'],
    ['azblob://acct1/leases/p', 'https://acct1.blob.core.windows.net/leases/', WITHOUT_CONTAINER],
    ['azblob://acct1/leases', 'https://127.0.0.1:10000/acct1/leases', WITHOUT_CONTAINER],
    ['gs://leases/p', 'http://127.0.0.1:4443/leases', 'the server’s URL without the bucket'],
  ])('%s with the endpoint %j is refused with the reason', async (value, endpoint, reason) => {
    const opening = openStore(value, { ...base, endpoint });
    await expect(opening).rejects.toThrow(ConfigError);
    await expect(opening).rejects.toThrow(`endpoint: expected ${reason}`);
  });

  it('requires the time of a request, without which none would be in time', async () => {
    const { requestTimeoutMs: _, ...rest } = base;
    await expect(openStore('s3://leases', rest as typeof base)).rejects.toThrow(
      'requestTimeoutMs: expected a number of milliseconds of at least 0, got undefined',
    );
  });

  it.each(['http://user:hunter2@127.0.0.1', 'http://user:hunter2@127.0.0.1/?x=1'])(
    'never prints a password in an endpoint: %s',
    async (endpoint) => {
      const error = await openStore('s3://leases', { ...base, endpoint }).catch(
        (failure: unknown) => failure,
      );
      expect(error).toBeInstanceOf(ConfigError);
      expect(JSON.stringify([error, String(error)])).not.toContain('hunter2');
    },
  );

  it.each([
    ['s3://leases', 'AWS_ENDPOINT_URL_S3', '127.0.0.1:9000', 'an http or https URL'],
    ['s3://leases', 'AWS_ENDPOINT_URL', 'http://user:hunter2@127.0.0.1', 'no credentials in the URL'],
    ['dynamodb://leases/p', 'AWS_ENDPOINT_URL_DYNAMODB', 'ftp://127.0.0.1', 'an http or https URL'],
    ['s3://leases', 'AWS_ACCESS_KEY_ID', 'hunter2\r', 'no carriage return in it'],
    ['s3://leases', 'AWS_SECRET_ACCESS_KEY', '"hunter2"', 'no quotes around it'],
    ['dynamodb://leases/p', 'AWS_SESSION_TOKEN', 'hunter2 ', 'no blank at its start or end'],
    ['s3://leases', 'AWS_PROFILE', 'hunter2\r', 'no carriage return in it'],
    ['s3://leases', 'AWS_REGION', 'eu-west-1\r', 'no carriage return in it'],
    ['dynamodb://leases/p', 'AWS_DEFAULT_REGION', '"eu-west-1"', 'no quotes around it'],
    ['gs://leases/p', 'STORAGE_EMULATOR_HOST', ' ', 'an http or https URL'],
    ['gs://leases/p', 'STORAGE_EMULATOR_HOST', 'user:hunter2@127.0.0.1', 'no credentials in the URL'],
  ])('%s with the variable %s=%s is refused with the reason', async (value, name, url, reason) => {
    withoutRegion();
    vi.stubEnv(name, url);
    const error = await openStore(value, base).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toContain(`${name}: expected ${reason}`);
    expect(String(error)).not.toContain('hunter2');
  });

  it('next to a profile the variables of a key do not count, as for the SDK', async () => {
    vi.stubEnv('AWS_PROFILE', 'prod');
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'old\r');
    const store = await openStore('s3://leases', { ...base, region: 'eu-west-1' });
    expect(store.url).toBe('s3://leases');
    await store.close();
  });

  it.each([
    [
      'azblob://other1/leases',
      ACCOUNT,
      'store: expected the account of AZURE_STORAGE_CONNECTION_STRING, acct1',
    ],
    [
      'azblob://acct1/leases',
      'AccountName=acct1;AccountKey',
      'AZURE_STORAGE_CONNECTION_STRING: expected a connection string',
    ],
    ['azblob://acct1/leases', 'hunter2', 'AZURE_STORAGE_CONNECTION_STRING: expected a connection string'],
  ])(
    '%s with the connection string %j is refused with the reason, and without the secret',
    async (value, connection, reason) => {
      vi.stubEnv('AZURE_STORAGE_CONNECTION_STRING', connection);
      const error = await openStore(value, base).catch((failure: unknown) => failure);
      expect(error).toBeInstanceOf(ConfigError);
      expect(String(error)).toContain(reason);
      expect(String(error)).not.toMatch(/hunter2|c2VjcmV0/);
    },
  );

  it('refuses a chain of credentials that Azure does not know, and does not show it', async () => {
    vi.stubEnv('AZURE_STORAGE_CONNECTION_STRING', '');
    vi.stubEnv('AZURE_TOKEN_CREDENTIALS', 'hunter2');
    const error = await openStore('azblob://acct1/leases', base).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toMatch(/AZURE_TOKEN_CREDENTIALS: expected dev, prod, or one .*, got "…"$/);
  });

  it('does not wait for a pipe in place of a file of PostgreSQL', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'nodelease-pipe-'));
    const pipe = join(folder, 'ca.pem');
    execFileSync('mkfifo', [pipe]);
    vi.stubEnv('PGSSLMODE', 'verify-full');
    vi.stubEnv('PGSSLROOTCERT', pipe);
    const opening = openStore('postgres://me@127.0.0.1/db/p', base);
    await expect(opening).rejects.toThrow('PGSSLROOTCERT: expected certificates in PEM');
    rmSync(folder, { recursive: true });
  });

  it('is missing where the folder is relative to one that has been removed', async () => {
    const removed = Object.assign(new Error('ENOENT: uv_cwd'), { code: 'ENOENT', syscall: 'uv_cwd' });
    vi.spyOn(process, 'cwd').mockImplementation(() => {
      throw removed;
    });
    await expect(openStore('file:leases', base)).rejects.toMatchObject({
      code: 'STORE_MISSING',
      message: 'file:leases: ENOENT: uv_cwd',
    });
  });

  it.each(['http', 'HTTP'])('sends no token of Azure over %s', async (scheme) => {
    vi.stubEnv('AZURE_STORAGE_CONNECTION_STRING', '');
    const opening = openStore('azblob://acct1/leases', { ...base, endpoint: `${scheme}://127.0.0.1:10000` });
    await expect(opening).rejects.toThrow(
      'endpoint: expected https, or AZURE_STORAGE_CONNECTION_STRING with it',
    );
  });

  it('takes HTTPS for https: Google wants a token', async () => {
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '/nonexistent/key.json');
    const store = await openStore('gs://leases/p', { ...base, endpoint: 'HTTPS://127.0.0.1:1' });
    await expect(store.read('0.json')).rejects.toMatchObject({ fault: 'denied', outcome: 'not-applied' });
    await store.close();
  });

  it('leaves the servers of variables that AWS is to ignore', async () => {
    withoutRegion();
    vi.stubEnv('AWS_ENDPOINT_URL', 'http://127.0.0.1:9000');
    vi.stubEnv('AWS_IGNORE_CONFIGURED_ENDPOINT_URLS', 'true');
    await expect(openStore('s3://leases', base)).rejects.toThrow('region: expected the region of the store');
  });

  it('asks for the region of an AWS bucket when no setting names it', async () => {
    withoutRegion();
    const opening = openStore('s3://leases', base);
    await expect(opening).rejects.toThrow(ConfigError);
    await expect(opening).rejects.toThrow(
      'region: expected the region of the store: set it, or AWS_REGION (for a server that is not AWS, set an endpoint)',
    );
  });

  it.each([
    ['an option', () => ({ region: 'eu-west-1' })],
    ['AWS_REGION', () => void vi.stubEnv('AWS_REGION', 'eu-west-1')],
    ['AWS_DEFAULT_REGION', () => void vi.stubEnv('AWS_DEFAULT_REGION', 'eu-west-1')],
    ['the fact that an endpoint needs none', () => ({ endpoint: 'http://127.0.0.1:9000' })],
  ])('takes the region from %s', async (_, arrange) => {
    withoutRegion();
    const options = arrange() ?? {};
    const store = await openStore('s3://leases', { ...base, ...options });
    await store.close();
  });
});
