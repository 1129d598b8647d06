import { ContainerClient, newPipeline } from '@azure/storage-blob';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock as clock } from '../../base/system.js';
import { AzureLeaseStore } from './azure-lease-store.js';
import { renewable } from './renewable-credential.js';

// A token of one minute, which the SDK renews at once.

const getToken = vi.fn(async () => ({ token: 'token', expiresOnTimestamp: clock.now() + 60_000 }));
const unhandled = vi.fn();
const limits = { clock, requestTimeoutMs: 5_000 };
let others: NodeJS.UnhandledRejectionListener[];
let store: AzureLeaseStore;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', unhandled);
  const pipeline = newPipeline(renewable({ getToken }, limits), { retryOptions: { maxTries: 1 } });
  const client = new ContainerClient('https://127.0.0.1:1/acct1/leases', pipeline);
  store = new AzureLeaseStore({ account: 'acct1', container: 'leases', prefix: 'p', client, ...limits });
});

afterEach(() => {
  vi.useRealTimers();
  vi.clearAllMocks();
  process.removeAllListeners('unhandledRejection');
  for (const each of others) process.on('unhandledRejection', each);
});

/** How a read fails: with a token for want of a server. */
const read = () => store.read('0.json').catch(({ message }: Error) => message);

it('a source of tokens that fails beyond the end of the last one fails the calls, and not the process', async () => {
  expect(await read()).toContain('ECONNREFUSED');
  const down = async () => Promise.reject(new Error('the source is down'));
  getToken.mockImplementation(down);
  expect(await read()).toContain('ECONNREFUSED');
  await vi.advanceTimersByTimeAsync(70_000);
  await new Promise(setImmediate);
  expect(await read()).toContain('the source is down');
  expect(unhandled).not.toHaveBeenCalled();
  getToken.mockReset();
});

it('a source of tokens that does not answer is asked again', async () => {
  expect(await read()).toContain('ECONNREFUSED');
  getToken.mockImplementationOnce(() => new Promise(() => undefined));
  expect(await read()).toContain('ECONNREFUSED');
  await vi.advanceTimersByTimeAsync(25_000);
  expect(getToken).toHaveBeenCalledTimes(3);
});
