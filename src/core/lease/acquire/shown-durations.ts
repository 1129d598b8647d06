import type { Clock } from '../../base/clock.js';
import type { StoredObject } from '../../store/lease-store.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { takenAfterMs } from '../model/lease-state.js';

/**
 * The durations in leases that GETs have shown. A listing shows none, and the settings may have another one. A
 * hint, for as long as such a duration: within that time a holder follows the settings (rule 14).
 */
export class ShownDurations {
  readonly #shown = new Map<string, { readonly durationMs: number; readonly until: number }>();

  constructor(private readonly clock: Clock) {}

  note({ key, body, metadata }: StoredObject): void {
    try {
      const lease = nativeCodec.decode(body, metadata);
      if (lease.kind !== 'held') return;
      const { durationMs } = lease;
      this.#shown.set(key, { durationMs, until: this.clock.monotonic() + durationMs });
    } catch {
      // Damage, which is found when the task tries it.
    }
  }

  /** The age above which the lease with this key may be expired, in milliseconds. */
  takenAfterMs(key: string, { durationMs, graceMs }: ClusterConfig): number {
    const shown = this.#shown.get(key);
    const isCurrent = shown !== undefined && this.clock.monotonic() < shown.until;
    return takenAfterMs(isCurrent ? shown.durationMs : durationMs, graceMs);
  }
}
