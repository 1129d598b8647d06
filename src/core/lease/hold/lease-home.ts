import type { Clock, RandomSource } from '../../base/clock.js';
import type { LeaseMark } from '../model/lease-state.js';
import type { StoreSession } from '../session/store-session.js';

/** Work that relies on a lease. */
interface LeaseWork {
  /** What it adds to the metrics now: the value of each gauge, by its name. */
  readonly gauges?: () => Readonly<Record<string, number>>;
  /**
   * Ends the work while the lease is still renewed (rule 8). Resolves to whether all of it has ended: otherwise
   * the lease is not given back, and expires. It may be called again, and must not reject.
   */
  end(): Promise<boolean>;
}

/** What a lease in a store offers to the work that is attached to it. */
export class LeaseHome {
  #work: LeaseWork | undefined;

  constructor(
    readonly clock: Clock,
    readonly random: RandomSource,
    /** A session with the store of the lease, closed with the lease: its own, where that is in this thread. */
    readonly session: () => Promise<StoreSession>,
    /**
     * Sets what further renewals write in addition: the first mark at once. Resolves when the lease shows it,
     * unless another one has replaced it.
     */
    readonly mark: (mark: LeaseMark) => Promise<void>,
  ) {}

  get work(): LeaseWork | undefined {
    return this.#work;
  }

  /** From now on `release()` ends this work first. It replaces the work before; undefined for none. */
  attach(work: LeaseWork | undefined): void {
    this.#work = work;
  }
}

/** Ends the work that is attached to the lease, if there is any, and then the lease (rule 8). */
export function afterWork(
  home: LeaseHome | undefined,
  end: (workEnded: boolean) => Promise<void>,
): Promise<void> {
  return home?.work === undefined ? end(true) : home.work.end().then(end);
}
