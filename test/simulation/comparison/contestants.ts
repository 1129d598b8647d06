import type { FaultKind } from '../world/conditions.js';

/** One column of the comparison. */
export interface Contestant {
  readonly title: string;
  /** A name out of `ENGINES`. */
  readonly engine: string;
  /** The bug that is planted into it, by name. */
  readonly plant?: string;
  /** What its users cannot do, and so cannot suffer from. */
  readonly lacks: readonly FaultKind[];
}

/**
 * A lease without store time: all that the shipped engine does, except that a contender compares its own wall
 * clock with the `timestamp` that the holder wrote by its own. It is the shipped engine with this bug
 * planted, so that there is no second engine to keep right.
 */
const UNCLOCKED_PLANT = 'wall-clock-expiry';

/** Who is compared: the shipped engine last. */
export const CONTESTANTS: readonly Contestant[] = [
  { title: 'plain protocol, to the letter', engine: 'plain', lacks: ['forced-release', 'scale', 'tune'] },
  {
    title: 'plain protocol, version kept on release',
    engine: 'plain-kept-version',
    lacks: ['forced-release', 'scale', 'tune'],
  },
  { title: 'this engine without store time', engine: 'shipped', plant: UNCLOCKED_PLANT, lacks: [] },
  { title: 'this engine', engine: 'shipped', lacks: [] },
];
