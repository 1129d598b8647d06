import type { Clock, RandomSource } from '../../base/clock.js';
import type { NarrowHolder } from '../acquire/width-adoption.js';
import type { StoreSession } from '../session/store-session.js';

/** A holder of a node id that the cluster gives up. */
export interface RetiringHolder {
  readonly id: number;
  readonly taskId: string;
  readonly version: number;
}

/** A lease object that is left as it is: absent although it existed once, or unreadable. */
export interface DamagedLease {
  readonly id: number;
  /** What is wrong, as the rest of the sentence "the object …". */
  readonly problem: string;
}

/** What happens while a cluster grows or shrinks. Listeners must not throw. */
export type ScaleEvent =
  /** These holders make unique ids that are too narrow for the new size; they learn of it at their next renewals. */
  | { readonly type: 'waiting'; readonly idWidth: number; readonly holders: readonly NarrowHolder[] }
  /** None of them does any more. */
  | { readonly type: 'adopted'; readonly idWidth: number; readonly tookMs: number }
  /** The settings tell of fewer node ids now: no task that knows them takes one beyond, and the holders of those learn of it beside their renewals. */
  | { readonly type: 'shrunk'; readonly from: number; readonly to: number }
  /** Of `total` lease objects beyond the size, so many are retired; told while that goes on, a few times a second at most. */
  | { readonly type: 'retired'; readonly retired: number; readonly total: number }
  /**
   * These holders of ids beyond the size are waited for, until they release them or lose them; after `leftMs` at the longest, in milliseconds.
   * Told when the waiting begins, and again whenever it is for others.
   */
  | { readonly type: 'draining'; readonly holders: readonly RetiringHolder[]; readonly leftMs: number }
  /** Time was up: the id was taken from this holder, which finds out at its next renewal. */
  | { readonly type: 'forced'; readonly holder: RetiringHolder }
  /** Left as it is; told once each. */
  | ({ readonly type: 'damaged' } & DamagedLease);

/** What `scaleCluster` came to. */
export type ScaleOutcome =
  | { readonly kind: 'no-cluster' }
  /** The cluster has the size. `from` is what it had before; the same where it had been changed already. */
  | {
      readonly kind: 'scaled';
      readonly from: number;
      readonly to: number;
      /** How many bits a node id takes in unique ids. */
      readonly idWidth: number;
      /** Whether the new size takes more of them than any that the cluster ever had. */
      readonly widened: boolean;
      /** How many lease objects this call created. */
      readonly created: number;
      /**
       * How many lease objects of ids that the cluster had already this call made acquirable again: retired, by what settings that were lost
       * had said. 0 unless `from` and `to` are the same.
       */
      readonly reopened: number;
      /** How many lease objects beyond the size this call retired. */
      readonly retired: number;
      /** Those of their holders that did not give them back in time, in ascending order of the ids. */
      readonly forced: readonly RetiringHolder[];
      /** Of the node ids that the cluster got or gave up, those whose objects are damaged; left as they are, for a repair. In ascending order. */
      readonly damaged: readonly DamagedLease[];
    }
  /** Not all holders use the width, which stays published. Nothing else was changed; called again, it goes on. */
  | { readonly kind: 'not-adopted'; readonly size: number; readonly idWidth: number; readonly holders: readonly NarrowHolder[] }
  /** Another task has given the cluster another size meanwhile, which stands. Called again, it is changed once more. */
  | { readonly kind: 'superseded'; readonly size: number };

/** How many node ids a cluster is to have, and what `scaleCluster` works with. */
export interface ScaleOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** How many node ids the cluster is to have, 1 … 65528. */
  readonly size: number;
  /** How long to wait in all for the holders to use a wider width, in milliseconds. @default 60000 */
  readonly waitTimeoutMs?: number | undefined;
  /**
   * How long holders of ids that the cluster gives up have until those are taken from them, in milliseconds; 0 for not at all.
   * @default 600000
   */
  readonly drainTimeoutMs?: number | undefined;
  /** Gives up; whatever is done already stays consistent. */
  readonly signal?: AbortSignal | undefined;
  /** Receives what is done on the way. Must not throw. */
  readonly onEvent?: ((event: ScaleEvent) => void) | undefined;
}
