import { describe, it } from 'vitest';
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
    const epochs = 'time: tells each handle the same epoch, and again the same, where it tells any';
    if (!isMeant(epochs)) return;
    it(epochs, async ({ expect }) => {
      const store = await options.open();
      const other = await options.reopen?.(store);
      const told = [await store.epoch?.(), await (other ?? store).epoch?.(), await store.epoch?.()];
      expect(told).toEqual(Array(3).fill(told[0]));
      for (const handle of [store, other]) await handle?.close();
    });
  });
}

/**
 * Those in which keys and prefixes matter: for a store whose objects lie elsewhere in a bucket of which all
 * others were shown.
 */
export const ofKeys = (name: string) => /^(reading and listing|watching and ending): /.test(name);
