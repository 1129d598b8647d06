import type { newPipeline } from '@azure/storage-blob';
import { callWithTimeout } from '../../base/abort.js';
import type { ObjectStoreOptions } from '../store-driver.js';

type TokenCredential = Extract<Parameters<typeof newPipeline>[0], { getToken: unknown }>;

/**
 * A credential for the SDK, which renews a token in advance. It waits for ever for an answer, so each request has
 * a timeout. It ends the process where the renewal fails beyond the token's end, so the first failure after that
 * gives the old token, which the service refuses.
 */
export function renewable(
  credential: TokenCredential,
  { clock, requestTimeoutMs }: Pick<ObjectStoreOptions, 'clock' | 'requestTimeoutMs'>,
): TokenCredential {
  // Programs such as `az` are slow.
  const limit = { clock, timeoutMs: 4 * requestTimeoutMs };
  let last: Awaited<ReturnType<TokenCredential['getToken']>> = null;
  return {
    getToken: async (...call) => {
      const old = last;
      try {
        last = await callWithTimeout(limit, () => credential.getToken(...call));
        return last;
      } catch (error) {
        if (old === null || clock.now() < old.expiresOnTimestamp) throw error;
        last = null;
        return old;
      }
    },
  };
}
