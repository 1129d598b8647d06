import { checked, FUNCTION, MS } from '../../base/arguments.js';
import type { LeaseStore } from '../lease-store.js';
import { CONDITIONAL_WRITES } from './conditional-writes.js';
import type { Checks } from './handles.js';
import { READING, TIMES, WATCHING_AND_ENDING } from './reading-and-watching.js';

/** What the checks have to know of a store. */
export interface LeaseStoreContractOptions {
  /** Opens a store that holds no object. Called once a check, which closes what it opened. */
  open(): Promise<LeaseStore>;

  /**
   * Opens a second handle on the objects of a store that `open` gave, as another process would. Without it
   * one handle is used twice.
   */
  readonly reopen?: ((store: LeaseStore) => Promise<LeaseStore>) | undefined;

  /** How coarse the store's ages are, in milliseconds: 1000 for whole seconds. Observed ages are exact. */
  readonly ageResolutionMs: number;
}

/** A promise of the contract. */
export interface ContractCheck {
  /** The promise: `conditional writes: refuses a stale etag, and leaves the object untouched`. */
  readonly name: string;
  /**
   * Tries it, in seconds at the most on a store that answers quickly. Rejects where the store does not keep
   * it.
   *
   * @throws {AssertionError} of `node:assert`, or what the store throws
   */
  run(): Promise<void>;
}

const GROUPS: Readonly<Record<string, Checks>> = {
  'conditional writes': CONDITIONAL_WRITES,
  'reading and listing': READING,
  time: TIMES,
  'watching and ending': WATCHING_AND_ENDING,
};

/**
 * The promises of {@link LeaseStore}, each as a check on a new store. They take real time, since the
 * clock of a server cannot be moved, and may run side by side.
 *
 * ```ts
 * for (const { name, run } of leaseStoreContract({ open, ageResolutionMs: 1000 })) test(name, run);
 * ```
 *
 * Not shown: that conditions hold under load and while servers fail, which `nodelease doctor` and faults
 * show; nor durability. Nor, since it takes faults that only the store's own tests can make: that a write
 * which failed as `not-applied` was not applied, and that a signal ends a call that is under way.
 */
export function leaseStoreContract(options: LeaseStoreContractOptions): readonly ContractCheck[] {
  checked(options, { open: FUNCTION, ageResolutionMs: MS });
  return Object.entries(GROUPS).flatMap(([group, checks]) =>
    Object.entries(checks).map(([name, check]) => ({
      name: `${group}: ${name}`,
      run: () => onNewStore(options, check),
    })),
  );
}

async function onNewStore(
  { open, reopen, ageResolutionMs }: LeaseStoreContractOptions,
  check: Checks[string],
) {
  const store = await open();
  const handles = [store];
  try {
    const other = await reopen?.(store);
    if (other !== undefined) handles.push(other);
    await check(store, other ?? store, ageResolutionMs);
  } finally {
    for (const handle of handles) await handle.close();
  }
}
