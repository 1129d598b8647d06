import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { afterEach, expect, it, vi } from 'vitest';
import { standInStore } from '../../../../test/support/stand-in-store.js';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  syncBuiltinESMExports();
});

it('a user without a home directory, as in a container with a number for its user, reaches the store', async () => {
  vi.stubEnv('HOME', undefined);
  vi.spyOn(os, 'homedir').mockImplementation(() => {
    throw new Error('A system error occurred: uv_os_homedir returned ENOENT');
  });
  syncBuiltinESMExports();
  const { store, close } = await standInStore();
  try {
    // The SDK has its own binding of the function by now: with a variable, it does not call it.
    expect(process.env.HOME).toBe('/');
    expect((await store.create('0.json', 'x', {})).status).toBe('written');
  } finally {
    await close();
  }
});
