import { type AcquireLeaseOptions, acquireLease } from '../../src/core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../src/core/lease/model/lease.js';
import { nativeForm, type ObjectForm, plainForm } from './object-form.js';
import { plainScan } from './plain-scan.js';

/** A way to get a node id. */
export interface Contestant {
  /** In tables and in the chart. */
  readonly title: string;
  acquire(options: AcquireLeaseOptions): Promise<Lease>;
  /** What the objects look like that it finds and leaves. */
  readonly form: ObjectForm;
  /** Whether the store in memory is one whose conditions are put to the test first, as those of S3 are. */
  readonly remote: boolean;
}

export const CONTESTANTS = {
  shipped: { title: 'nodelease', acquire: acquireLease, form: nativeForm, remote: false },
  proving: { title: 'nodelease, with the proof', acquire: acquireLease, form: nativeForm, remote: true },
  plain: { title: 'plain scan', acquire: plainScan.acquire, form: plainForm, remote: false },
} as const satisfies Readonly<Record<string, Contestant>>;

export type ContestantName = keyof typeof CONTESTANTS;
