import { describe, expect, it } from 'vitest';
import { drawConditions, EPOCH_MS } from '../world/conditions.js';
import { World } from '../world/world.js';
import { IdObserver, type MadeIds } from './id-observer.js';

/** An id of the layout `cluster16`. */
const id = (ms: number, sequence: number, width: number, nodeId: number) =>
  (BigInt(EPOCH_MS + ms) << 16n) | (BigInt(sequence) << BigInt(width)) | BigInt(nodeId + 8);

interface Maker {
  readonly nodeId: number;
  readonly version?: number;
  readonly width?: number;
  readonly fixed?: boolean;
  readonly fresh?: boolean;
}

/**
 * A world at its beginning, in which 4 s of lag and 8 s of advance are allowed, and what its observer says.
 */
function observed() {
  const complaints: string[] = [];
  const world = new World(drawConditions(1, {}, new Set()));
  const observer = new IdObserver(world, (text) => complaints.push(text));
  const make = (
    { nodeId, version = 1, width = 8, fixed = false, fresh = true }: Maker,
    stamps: readonly (readonly [ms: number, sequence: number])[],
  ) => {
    const made: MadeIds = {
      ...{
        name: `task ${nodeId}.${version}`,
        nodeId,
        version,
        width,
        fixed,
        fresh,
        lagMs: 4_000,
        advanceMs: 8_000,
      },
      ids: BigUint64Array.from(stamps, ([ms, sequence]) => id(ms, sequence, width, nodeId)),
      count: stamps.length,
    };
    observer.onMade(made);
    return complaints.splice(0);
  };
  return { world, make };
}

describe('the observer of unique ids', () => {
  it('has nothing against ids that increase, of several nodes and tenures', () => {
    const { world, make } = observed();
    expect(
      make({ nodeId: 0 }, [
        [1, 0],
        [1, 1],
        [2, 0],
      ]),
    ).toEqual([]);
    expect(
      make({ nodeId: 1 }, [
        [1, 0],
        [1, 1],
      ]),
    ).toEqual([]);
    expect(make({ nodeId: 0 }, [[2, 1]])).toEqual([]);
    expect(make({ nodeId: 0, version: 3 }, [[3, 0]])).toEqual([]);
    expect(world.counts.ids).toBe(7);
  });

  it('sees an id that comes twice, though the two were made under different node ids', () => {
    const { make } = observed();
    make({ nodeId: 0, width: 8 }, [[1, 3]]);
    expect(make({ nodeId: 256, width: 9 }, [[1, 1]]).join()).toMatch(/node id 256, which exists already/);
  });

  it('distinguishes ids of a separate width from those of the cluster', () => {
    const { make } = observed();
    make({ nodeId: 0, width: 8 }, [[1, 0]]);
    expect(make({ nodeId: 1, width: 16, fixed: true }, [[1, 0]])).toEqual([]);
    expect(make({ nodeId: 256, width: 16, fixed: true }, [[1, 0]])).toEqual([]);
  });

  it('sees an id that is not greater than the one before', () => {
    const { make } = observed();
    expect(
      make({ nodeId: 0 }, [
        [5, 1],
        [5, 0],
      ]).join(),
    ).toMatch(/after a greater one/);
  });

  it('sees tenures of a node id that stamp within the same millisecond, in whichever order they are made', () => {
    const { make } = observed();
    make({ nodeId: 0, version: 1 }, [[5, 0]]);
    expect(make({ nodeId: 0, version: 3 }, [[5, 1]]).join()).toMatch(
      /version 3 with 0\.005 s.* version 1 with 0\.005 s/,
    );
    const late = observed();
    late.make({ nodeId: 0, version: 3 }, [[9, 0]]);
    expect(late.make({ nodeId: 0, version: 2 }, [[8, 0]])).toEqual([]);
    expect(late.make({ nodeId: 0, version: 2 }, [[9, 1]]).join()).toMatch(/version 2 .* version 3/);
    expect(late.make({ nodeId: 0, version: 1 }, [[8, 1]]).join()).toMatch(/version 1 .* version 2/);
  });

  it('sees an id of a new node in a millisecond in which ids were narrow, and a narrow one where new nodes were', () => {
    const { make } = observed();
    make({ nodeId: 0, width: 8 }, [[100, 0]]);
    expect(make({ nodeId: 1, width: 9 }, [[50, 0]])).toEqual([]);
    expect(make({ nodeId: 256, width: 9 }, [[100, 7]]).join()).toMatch(/node id 256 .*one of 8 bits/);
    const other = observed();
    other.make({ nodeId: 256, width: 9 }, [[100, 0]]);
    expect(other.make({ nodeId: 0, width: 8 }, [[99, 0]])).toEqual([]);
    expect(other.make({ nodeId: 0, width: 8 }, [[100, 4]]).join()).toMatch(/node id 0 .*needs 9/);
  });

  it("sees another node's number", () => {
    const complaints: string[] = [];
    const observer = new IdObserver(new World(drawConditions(1, {}, new Set())), (text) =>
      complaints.push(text),
    );
    const ids = BigUint64Array.of(id(1, 0, 8, 3));
    const made = {
      name: 'task',
      nodeId: 2,
      version: 1,
      width: 8,
      fixed: false,
      fresh: true,
      lagMs: 4_000,
      advanceMs: 8_000,
      ids,
      count: 1,
    };
    observer.onMade(made);
    expect(complaints.join()).toMatch(/for node 11 under node id 2/);
  });

  it('sees stamps that are not of the time, unless they were begun before the maker was stopped', () => {
    const { make } = observed();
    expect(make({ nodeId: 0 }, [[4_000, 0]])).toEqual([]);
    expect(make({ nodeId: 0 }, [[4_010, 0]]).join()).toMatch(/further from the store's time/);
    expect(make({ nodeId: 1 }, [[-60_000, 0]]).join()).toMatch(/further from the store's time/);
    expect(make({ nodeId: 2, fresh: false }, [[-60_000, 0]])).toEqual([]);
  });
});
