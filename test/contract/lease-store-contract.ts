import { describe, expect, it } from 'vitest';
import {
  leaseStoreContract as checksOf,
  type LeaseStoreContractOptions,
} from '../../src/core/store/testing/contract.js';

export type { LeaseStoreContractOptions };

/**
 * The promises that every driver keeps, as one suite. Its checks run side by side: those of ages spend their
 * time waiting.
 *
 * @param name the driver, for the report
 * @param isMeant which of them, by name; all by default
 */
export function leaseStoreContract(
  name: string,
  options: LeaseStoreContractOptions,
  isMeant = (_: string) => true,
): void {
  const checks = checksOf(options).filter((check) => isMeant(check.name));
  describe.concurrent(name, { timeout: 30_000 }, () => {
    it.each(checks.map((check) => [check.name, check.run] as const))('%s', (_, run) => run());

    it('tells the same epoch again, if it tells one', async () => {
      const store = await options.open();
      expect(await store.epoch?.()).toBe(await store.epoch?.());
      await store.close();
    });
  });
}

/**
 * Those in which keys and prefixes matter: for a store whose objects lie elsewhere in a bucket of which all
 * others were shown.
 */
export const ofKeys = (name: string) => /^(reading and listing|watching and ending): /.test(name);
