import { randomUUID } from 'node:crypto';
import { Snowflake as SapphireSnowflake } from '@sapphire/snowflake';
import FlakeId from 'flake-idgen';
import { Snowflake as WasmSnowflake } from 'nodejs-snowflake';
import { Worker as SnowflakeWorker } from 'snowflake-uuid';
import { v7 } from 'uuid';
import { systemClock } from '../src/core/base/system.js';
import {
  cluster16,
  type IdFormat,
  type IdLayout,
  snowflake,
  UniqueIdGenerator,
} from '../src/core/id/index.js';

/** One way to make ids. */
export interface Contestant {
  readonly name: string;
  readonly whose: 'floor' | 'ours' | "a peer's";
  /** What comes out. */
  readonly gives: string;
  /**
   * Whose generator it is, as the table of generators that are asked for too many ids calls it; undefined for
   * the floor.
   */
  readonly generator: string | undefined;
  /** How many ids one state of it may be asked for in a burst without being held up by its own layout. */
  readonly burst: number;
  /**
   * How many ids a round makes; more than a burst are made with several states, and only the making is timed.
   */
  readonly perRound: number;
  /** A state of its own, as new: what is returned makes `burst` ids. */
  fresh(): () => void;
}

/** Where the ids go, so that each of them is really made. Few enough to stay in the processor's cache. */
const KEPT = 256;
const kept: unknown[] = new Array(KEPT).fill(0n);

/** A time as a lease that never ends would give it. */
const endless = {
  now: () => systemClock.now(),
  after: 0,
  before: () => Number.POSITIVE_INFINITY,
  check: () => undefined,
};

/** One of ours, with all of its burst before it. */
export function ours(layout: IdLayout): UniqueIdGenerator {
  return new UniqueIdGenerator({ layout, node: 8, time: endless, clock: systemClock });
}

// Every contestant has a loop of its own, so that the compiler can make the best of each.

const OURS = 1_000_000;

const floor: Contestant = {
  ...{
    name: 'two 32-bit halves read as one BigInt',
    whose: 'floor',
    gives: 'bigint',
    generator: undefined,
    burst: OURS,
    perRound: OURS,
  },
  fresh: () => {
    const id = new BigUint64Array(1);
    const halves = new Uint32Array(id.buffer);
    return () => {
      for (let i = 0; i < OURS; i += 1) {
        halves[1] = 0x1234_5678;
        halves[0] = i;
        kept[i & (KEPT - 1)] = id[0];
      }
    };
  },
};

const next: Contestant = {
  ...{
    name: 'next()',
    whose: 'ours',
    gives: 'bigint',
    generator: 'nodelease, cluster16(8)',
    burst: OURS,
    perRound: OURS,
  },
  fresh: () => {
    const ids = ours(cluster16(8));
    return () => {
      for (let i = 0; i < OURS; i += 1) kept[i & (KEPT - 1)] = ids.next();
    };
  },
};

const nextSnowflake: Contestant = {
  ...{
    name: 'next(), layout snowflake',
    whose: 'ours',
    gives: 'bigint',
    generator: 'nodelease, snowflake()',
    burst: OURS,
    perRound: OURS,
  },
  fresh: () => {
    const ids = ours(snowflake());
    return () => {
      for (let i = 0; i < OURS; i += 1) kept[i & (KEPT - 1)] = ids.next();
    };
  },
};

const FILLED = 4_000;

const fill: Contestant = {
  ...{
    name: 'fill(), 4,000 at a time',
    whose: 'ours',
    gives: '64 bits in an array',
    generator: 'nodelease, cluster16(8)',
    burst: OURS,
    perRound: OURS,
  },
  fresh: () => {
    const ids = ours(cluster16(8));
    const target = new BigUint64Array(FILLED);
    return () => {
      for (let i = 0; i < OURS; i += FILLED) ids.fill(target);
      kept[0] = target[0];
    };
  },
};

function nextString(format: IdFormat): Contestant {
  const burst = 200_000;
  return {
    ...{
      name: `nextString('${format}')`,
      whose: 'ours',
      gives: 'string',
      generator: 'nodelease, cluster16(8)',
      burst,
      perRound: burst,
    },
    fresh: () => {
      const ids = ours(cluster16(8));
      return () => {
        for (let i = 0; i < burst; i += 1) kept[i & (KEPT - 1)] = ids.nextString(format);
      };
    },
  };
}

const sapphire: Contestant = {
  // It never looks whether a millisecond is used up.
  ...{
    name: '@sapphire/snowflake',
    whose: "a peer's",
    gives: 'bigint',
    generator: '@sapphire/snowflake',
    burst: 200_000,
    perRound: 200_000,
  },
  fresh: () => {
    const ids = new SapphireSnowflake(0n);
    return () => {
      for (let i = 0; i < 200_000; i += 1) kept[i & (KEPT - 1)] = ids.generate();
    };
  },
};

const flake: Contestant = {
  ...{
    name: 'flake-idgen',
    whose: "a peer's",
    gives: 'Buffer',
    generator: 'flake-idgen',
    burst: 4_000,
    perRound: 80_000,
  },
  fresh: () => {
    const ids = new FlakeId({ id: 8 });
    return () => {
      for (let i = 0; i < 4_000; i += 1) kept[i & (KEPT - 1)] = ids.next();
    };
  },
};

const flakeRead: Contestant = {
  ...{
    name: 'flake-idgen, read as BigInt',
    whose: "a peer's",
    gives: 'bigint',
    generator: 'flake-idgen',
    burst: 4_000,
    perRound: 80_000,
  },
  fresh: () => {
    const ids = new FlakeId({ id: 8 });
    return () => {
      for (let i = 0; i < 4_000; i += 1) kept[i & (KEPT - 1)] = ids.next().readBigUInt64BE();
    };
  },
};

const wasm: Contestant = {
  ...{
    name: 'nodejs-snowflake',
    whose: "a peer's",
    gives: 'bigint',
    generator: 'nodejs-snowflake',
    burst: 1_000,
    perRound: 20_000,
  },
  fresh: () => {
    const ids = new WasmSnowflake({ instance_id: 8 });
    return () => {
      for (let i = 0; i < 1_000; i += 1) kept[i & (KEPT - 1)] = ids.getUniqueID();
    };
  },
};

const snowflakeUuid: Contestant = {
  ...{
    name: 'snowflake-uuid',
    whose: "a peer's",
    gives: 'bigint',
    generator: 'snowflake-uuid',
    burst: 4_000,
    perRound: 80_000,
  },
  fresh: () => {
    const ids = new SnowflakeWorker(8n);
    return () => {
      for (let i = 0; i < 4_000; i += 1) kept[i & (KEPT - 1)] = ids.nextId();
    };
  },
};

const uuidText: Contestant = {
  ...{
    name: 'uuid v7',
    whose: "a peer's",
    gives: 'string',
    generator: 'uuid v7',
    burst: 100_000,
    perRound: 100_000,
  },
  fresh: () => () => {
    for (let i = 0; i < 100_000; i += 1) kept[i & (KEPT - 1)] = v7();
  },
};

const uuidBytes: Contestant = {
  ...{
    name: 'uuid v7, into an array',
    whose: "a peer's",
    gives: '16 bytes in an array',
    generator: 'uuid v7',
    burst: 100_000,
    perRound: 100_000,
  },
  fresh: () => {
    const target = new Uint8Array(16 * KEPT);
    return () => {
      for (let i = 0; i < 100_000; i += 1) v7(undefined, target, 16 * (i & (KEPT - 1)));
      kept[0] = target[0];
    };
  },
};

const nodeUuid: Contestant = {
  ...{
    name: 'crypto.randomUUID',
    whose: "a peer's",
    gives: 'string',
    generator: 'crypto.randomUUID',
    burst: 100_000,
    perRound: 100_000,
  },
  fresh: () => () => {
    for (let i = 0; i < 100_000; i += 1) kept[i & (KEPT - 1)] = randomUUID();
  },
};

/** The contestants that the assertions are about. */
export const baseline = { floor, next, fill } as const;

/** All of them, in the order of the table. */
export const contestants: readonly Contestant[] = [
  floor,
  next,
  nextSnowflake,
  fill,
  nextString('decimal'),
  nextString('base32'),
  nextString('hex'),
  sapphire,
  flake,
  flakeRead,
  wasm,
  snowflakeUuid,
  uuidText,
  uuidBytes,
  nodeUuid,
];
