import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { type CredentialChain, credentialSource, RepeatedCredentials } from './credentials.js';

type Source = () => Promise<string>;

let clock: VirtualClock;
/** When each request to the source was made. */
let asked: number[];

beforeEach(() => {
  clock = new VirtualClock();
  asked = [];
  vi.stubEnv('AWS_PROFILE', undefined);
});

afterEach(() => void vi.unstubAllEnvs());

const hangs: Source = () => new Promise(() => undefined);
const gives =
  (key: string): Source =>
  async () =>
    key;
const failure = (name: string) => Object.assign(new Error(name), { name });
const fails =
  (name: string, afterMs = 0): Source =>
  async () => {
    await clock.sleep(afterMs);
    throw failure(name);
  };

/** Credentials whose source does this at each request, the last one for ever. Chains keep them, as the SDK's. */
function credentialsFrom(...source: readonly Source[]) {
  const newChain = (): CredentialChain => {
    let kept: string | undefined;
    return async (options) => {
      if (kept === undefined || options?.forceRefresh) {
        asked.push(clock.monotonic());
        kept = await (source[asked.length - 1] ?? source.at(-1) ?? hangs)();
      }
      return { accessKeyId: kept, secretAccessKey: 'secret' };
    };
  };
  const credentials = new RepeatedCredentials(newChain, clock);
  const key = (forceRefresh = false) =>
    credentials.provide({ forceRefresh }).then(
      ({ accessKeyId }) => accessKeyId,
      (error: Error) => error.name,
    );
  return { credentials, key };
}

describe('credentials whose source hangs', () => {
  it('are there after a third request, in less time than a request to the store has', async () => {
    const { credentials, key } = credentialsFrom(hangs, hangs, gives('KEY'));
    const keys = Promise.all([key(), key()]);
    expect(credentials.isAwaited).toBe(true);
    await clock.advance(3_000);
    expect(await keys).toEqual(['KEY', 'KEY']);
    expect([credentials.isAwaited, clock.sleepers]).toEqual([false, 0]);
    expect(await key()).toBe('KEY');
    expect(asked).toEqual([0, 1_000, 3_000]);
  });

  it('are those of a slow first answer, and are kept', async () => {
    const slow = async () => {
      await clock.sleep(2_500);
      return 'SLOW';
    };
    const { key } = credentialsFrom(slow, hangs);
    const first = key();
    await clock.advance(2_500);
    expect([await first, await key()]).toEqual(['SLOW', 'SLOW']);
    expect(asked).toEqual([0, 1_000]);
  });

  it('are given up after half a minute, and at once where the store is closed', async () => {
    const { credentials, key } = credentialsFrom(hangs);
    const first = key();
    await clock.advance(31_000);
    expect(await first).toBe('TimeoutError');
    expect(asked).toHaveLength(9);
    const second = key();
    credentials.close();
    expect(await second).toBe('Error');
    expect(clock.sleepers).toBe(0);
  });

  it('are still the ones that are kept while others are asked for in vain', async () => {
    const { key } = credentialsFrom(gives('KEPT'), hangs);
    await key();
    const forced = key(true);
    await clock.advance(5_000);
    expect(await key()).toBe('KEPT');
    await clock.advance(30_000);
    expect([await forced, await key()]).toEqual(['TimeoutError', 'KEPT']);
  });
});

describe('credentials whose source the SDK gives up', () => {
  it('are asked for again where it took its timeout', async () => {
    const { key } = credentialsFrom(fails('CredentialsProviderError', 2_000), hangs, gives('KEY'));
    const first = key();
    await clock.advance(3_000);
    expect(await first).toBe('KEY');
  });

  it('are refused at once where that is an answer', async () => {
    for (const source of [fails('CredentialsProviderError'), fails('AccessDenied', 2_000)]) {
      const { key } = credentialsFrom(source);
      const first = key();
      await clock.advance(2_000);
      expect(await first).not.toBe('KEY');
    }
    expect(asked).toEqual([0, 2_000, 3_000]);
  });

  it('are those of a profile, whose failure is no timeout, however long it took', async () => {
    vi.stubEnv('AWS_PROFILE', 'prod');
    const { key } = credentialsFrom(fails('CredentialsProviderError', 2_000), hangs);
    const first = key();
    await clock.advance(2_000);
    expect(await first).toBe('CredentialsProviderError');
  });
});

it('messages name the source that is asked, without what gives access to it', () => {
  const full = 'http://169.254.170.23/v1/credentials';
  expect(credentialSource({ AWS_PROFILE: 'prod' })).toBe('profile prod');
  expect(credentialSource({ AWS_WEB_IDENTITY_TOKEN_FILE: '/token' })).toContain('AWS STS');
  expect(credentialSource({ AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/credentials/secret' })).toBe(
    'the AWS_CONTAINER_CREDENTIALS_RELATIVE_URI at 169.254.170.2',
  );
  expect(credentialSource({ AWS_CONTAINER_CREDENTIALS_FULL_URI: full })).toBe(
    'the AWS_CONTAINER_CREDENTIALS_FULL_URI at 169.254.170.23',
  );
  expect(credentialSource({ AWS_CONTAINER_CREDENTIALS_FULL_URI: 'nonsense' })).toContain('FULL_URI');
  expect(credentialSource({})).toMatch(
    /IMDS, .* a hop limit of 2; or give the task a role, or set AWS_PROFILE/,
  );
  expect(credentialSource({ AWS_EC2_METADATA_DISABLED: 'true' })).toBe('the default profile');
});
