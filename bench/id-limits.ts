import { setTimeout as sleep } from 'node:timers/promises';
import { cluster16, type IdLayout, IdsExhaustedError, idsPerMs, snowflake } from '../src/core/id/index.js';
import { ours } from './id-contestants.js';

/** What one node can make of a layout for ever. */
export interface SustainedLimit {
  readonly name: string;
  /** Ids in the first moment, before the limit is felt. */
  readonly burst: number;
  /** Ids a second, by the layout's bits. */
  readonly perSecond: number;
  /** Ids a second that were made, once the burst was used up. */
  readonly measured: number;
}

const LAYOUTS: readonly (readonly [string, IdLayout])[] = [
  ['cluster16(8)', cluster16(8)],
  ['cluster16(10)', cluster16(10)],
  ['cluster16(12)', cluster16(12)],
  ['cluster16(16)', cluster16(16)],
  ['snowflake()', snowflake()],
];
/** The generator's own default. */
const ADVANCE_MS = 8_000;
const MEASURED_MS = 1_000;

/** Measures the limits, one layout after the other. */
export async function sustainedLimits(): Promise<SustainedLimit[]> {
  const limits: SustainedLimit[] = [];
  for (const [name, layout] of LAYOUTS) {
    const perMs = idsPerMs(layout);
    const measured = await perSecond(layout);
    limits.push({ name, burst: ADVANCE_MS * perMs, perSecond: 1_000 * perMs, measured });
  }
  return limits;
}

async function perSecond(layout: IdLayout): Promise<number> {
  const ids = ours(layout);
  const target = new BigUint64Array(4_096);
  const drain = () => {
    let made = 0;
    try {
      for (;;) {
        ids.fill(target);
        made += target.length;
      }
    } catch (error) {
      if (!(error instanceof IdsExhaustedError)) throw error;
      return { made: made + error.filled, waitMs: error.waitMs };
    }
  };
  drain();
  const begun = performance.now();
  let made = 0;
  let endedAt = begun;
  while (endedAt - begun < MEASURED_MS) {
    const drained = drain();
    made += drained.made;
    endedAt = performance.now();
    await sleep(drained.waitMs);
  }
  return (made / (endedAt - begun)) * 1_000;
}
