import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { S3StandIn } from '../../../../test/support/s3-stand-in.js';
import { standInStore } from '../../../../test/support/stand-in-store.js';
import type { S3LeaseStore } from './s3-lease-store.js';

// Credentials in a file that a program of the user's rewrites: an agent of Vault, Roles Anywhere, `aws sso`.

let folder: string;
let server: S3StandIn;
let store: S3LeaseStore;
let close: () => Promise<void>;

const keep = (key: string) =>
  writeFile(
    join(folder, 'credentials'),
    `[default]\naws_access_key_id = ${key}\naws_secret_access_key = secret\naws_session_token = token\n`,
  );

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-credentials-'));
  ({ server, store, close } = await standInStore());
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_PROFILE'])
    vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'credentials'));
  vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'config'));
  await keep('FIRST');
  await store.create('0.json', 'new', {});
});

afterEach(async () => {
  await close();
  await rm(folder, { recursive: true });
});

const signers = () =>
  server.requests.map(({ headers }) => /Credential=(\w+)\//.exec(headers.authorization ?? '')?.[1]);

describe('credentials in a file', () => {
  const refusals = [
    'ExpiredToken',
    'InvalidToken',
    'InvalidTokenId',
    'TokenRefreshRequired',
    'InvalidAccessKeyId',
    'SignatureDoesNotMatch',
  ];
  it.each(refusals)('are read again on %s: the same call gets through with the new ones', async (code) => {
    await keep('SECOND');
    server.next({ status: 403, code });
    expect(await store.create('1.json', 'new', {})).toMatchObject({ status: 'written' });
    await store.read('1.json');
    expect(signers()).toEqual(['FIRST', 'FIRST', 'SECOND', 'SECOND']);
  });

  it('that are the old ones still are not tried again by the same call, and by the next one if they are new then', async () => {
    server.next({ status: 400, code: 'ExpiredToken' });
    await expect(store.create('1.json', 'new', {})).rejects.toMatchObject({
      fault: 'denied',
      outcome: 'not-applied',
    });
    await keep('SECOND');
    server.next({ status: 400, code: 'ExpiredToken' });
    expect(await store.create('1.json', 'new', {})).toMatchObject({ status: 'written' });
    expect(signers()).toEqual(['FIRST', 'FIRST', 'FIRST', 'SECOND']);
  });

  it('are read again once a call: new ones that are refused as well fail it', async () => {
    await keep('SECOND');
    server.next({ status: 400, code: 'ExpiredToken' }, { status: 400, code: 'ExpiredToken' });
    await expect(store.create('1.json', 'new', {})).rejects.toMatchObject({
      fault: 'denied',
      outcome: 'not-applied',
    });
    expect(signers()).toEqual(['FIRST', 'FIRST', 'SECOND']);
    expect(server.keys).toEqual(['p/0.json']);
  });

  it('are not asked for where a right is missing, and the store’s answer is reported where the file is gone', async () => {
    await keep('SECOND');
    server.next({ status: 403, code: 'AccessDenied' });
    await expect(store.read('0.json')).rejects.toMatchObject({ fault: 'denied' });
    await rm(join(folder, 'credentials'));
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    server.next({ status: 400, code: 'ExpiredToken' });
    await expect(store.read('0.json')).rejects.toThrow('access denied (ExpiredToken)');
    expect(signers()).toEqual(['FIRST', 'FIRST', 'FIRST']);
  });
});
