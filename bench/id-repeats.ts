import { randomUUID } from 'node:crypto';
import { Snowflake as SapphireSnowflake } from '@sapphire/snowflake';
import FlakeId from 'flake-idgen';
import { Snowflake as WasmSnowflake } from 'nodejs-snowflake';
import { Worker as SnowflakeWorker } from 'snowflake-uuid';
import { v7 } from 'uuid';
import { cluster16, type IdLayout, IdsExhaustedError, idsPerMs, snowflake } from '../src/core/id/index.js';
import { ours } from './id-contestants.js';

/** Somebody who is asked for more ids than a millisecond of its layout holds. */
export interface Candidate {
  readonly name: string;
  readonly layout: string;
  /** How many ids the layout has for each millisecond of one node's; undefined where that is no limit. */
  readonly perMs: number | undefined;
  /** A state of its own, as new: what is returned makes an id. */
  fresh(): () => bigint | string;
}

/** What came of asking. */
export interface Asked {
  readonly candidate: Candidate;
  /** How often it was asked; less than was meant where it let its caller wait for too long. */
  readonly asked: number;
  readonly made: number;
  /** How many of the ids had been made before. */
  readonly repeated: number;
  /** How many calls threw. */
  readonly refused: number;
  /** How long a call took at the most, in milliseconds of the clock that it was given. */
  readonly longestMs: number;
}

export const candidates: readonly Candidate[] = [
  own('nodelease, cluster16(8)', '48/8/8', cluster16(8)),
  own('nodelease, snowflake()', '41/10/12', snowflake()),
  {
    ...{ name: '@sapphire/snowflake', layout: '42/10/12', perMs: 4_096 },
    fresh: () => {
      const ids = new SapphireSnowflake(0n);
      return () => ids.generate();
    },
  },
  {
    ...{ name: 'flake-idgen', layout: '42/10/12', perMs: 4_096 },
    fresh: () => {
      const ids = new FlakeId({ id: 8 });
      return () => ids.next().readBigUInt64BE();
    },
  },
  {
    ...{ name: 'nodejs-snowflake', layout: '41/12/10', perMs: 1_024 },
    fresh: () => {
      const ids = new WasmSnowflake({ instance_id: 8 });
      return () => BigInt.asUintN(64, ids.getUniqueID() as bigint);
    },
  },
  {
    ...{ name: 'snowflake-uuid', layout: '42/10/12', perMs: 4_096 },
    fresh: () => {
      const ids = new SnowflakeWorker(8n);
      return () => ids.nextId();
    },
  },
  {
    name: 'uuid v7',
    layout: '128 bits, 74 of them chance or a counter',
    perMs: undefined,
    fresh: () => () => v7(),
  },
  {
    name: 'crypto.randomUUID',
    layout: '128 bits, 122 of them chance',
    perMs: undefined,
    fresh: () => () => randomUUID(),
  },
];

function own(name: string, layout: string, bits: IdLayout): Candidate {
  return {
    ...{ name, layout, perMs: idsPerMs(bits) },
    fresh: () => {
      const ids = ours(bits);
      // The burst is for later: what is looked for here is what happens when there is nothing left.
      const spare = new BigUint64Array(100_000);
      try {
        for (;;) ids.fill(spare);
      } catch (error) {
        if (!(error instanceof IdsExhaustedError)) throw error;
      }
      return () => ids.next();
    },
  };
}

/** How many times slower than the machine's the clock goes that everybody is given. */
export const SLOWED = 20;
/** How long one of them is asked at the most, in milliseconds of real time. */
const PATIENCE_MS = 4_000;

/**
 * Asks for ids as fast as it can, under a clock that goes slowly: as a faster machine would, or one whose
 * clock is being slewed. So everybody comes to the end of a millisecond, however slow it is itself.
 */
export function ask(candidate: Candidate, count: number): Asked {
  return underSlowClock((now) => {
    const make = candidate.fresh();
    const ids: (bigint | string)[] = [];
    let [asked, refused, longestMs] = [0, 0, 0];
    const begun = now();
    for (; asked < count && now() - begun < PATIENCE_MS / SLOWED; asked += 1) {
      const askedAt = now();
      try {
        ids.push(make());
      } catch {
        // Whatever it throws: there is no id.
        refused += 1;
      }
      longestMs = Math.max(longestMs, now() - askedAt);
    }
    return {
      candidate,
      asked,
      made: ids.length,
      repeated: ids.length - new Set(ids).size,
      refused,
      longestMs,
    };
  });
}

/** Replaces the process's clock for the while: the peers take none as a parameter. */
function underSlowClock<T>(run: (now: () => number) => T): T {
  const real = Date.now;
  const [wallBegun, begun] = [real(), performance.now()];
  const now = () => (performance.now() - begun) / SLOWED;
  Date.now = () => Math.floor(wallBegun + now());
  try {
    return run(now);
  } finally {
    Date.now = real;
  }
}
