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
  describe.concurrent(name, () => {
    it.each(checks.map((check) => [check.name, check.run] as const))('%s', (_, run) => run());
  });
}

/**
 * Those in which keys and prefixes matter: for a store whose objects lie elsewhere in a bucket of which all
 * others were shown.
 */
export const ofKeys = (name: string) => /^(reading and listing|watching and ending): /.test(name);
