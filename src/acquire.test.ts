import { describe, expect, it } from 'vitest';
import { type AcquireOptions, acquire } from './acquire.js';

describe('acquire', () => {
  it.each<[string, object]>([
    ['options', { nods: 3 }],
    ['options', { duration: '15s' }],
    ['keeper', { keeper: 'bogus' }],
    ['onLost', { onLost: 'bogus' }],
    ['acquireTimeoutMs', { acquireTimeoutMs: '0s' }],
    ['durationMs', { durationMs: 10 }],
    ['nodes', { nodes: 0 }],
    ['store', { store: 'ftp://x' }],
    ['store', { store: 'memory:', keeper: 'worker' }],
  ])('names the option that is wrong: %s in %j', async (setting, options) => {
    await expect(acquire({ store: 'memory:', ...options } as AcquireOptions)).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting });
  });

  it('gives a lease on a store that lives in this process, and gives it back', async () => {
    const lease = await acquire({ store: 'memory:', nodes: 2, taskId: 'me' });
    expect([lease.id, lease.version, lease.taskId, lease.isValid()]).toEqual([0, 1, 'me', true]);
    await lease.release();
    expect([lease.isValid(), lease.signal.aborted]).toEqual([false, false]);
  });
});
