import { describe, it } from 'vitest';
import { leaseStoreContract as checksOf, type LeaseStoreContractOptions } from '../../src/store/testing/contract.js';

export type { LeaseStoreContractOptions };

/**
 * The promises that every driver keeps, as one suite.
 *
 * @param name the driver, for the report
 */
export function leaseStoreContract(name: string, options: LeaseStoreContractOptions): void {
  describe(name, { timeout: 30_000 }, () => {
    it.each(checksOf(options).map((check) => [check.name, check.run] as const))('%s', (_, run) => run());
  });
}
