import type { StoreServer } from '../../test/support/stores/store-server.js';
import { type Cell, cellOf, memoryCell, type Place, type SeedRange } from './cell.js';
import type { ClusterName } from './clusters.js';
import { CONTESTANTS, type ContestantName } from './contestants.js';
import { serverStorms } from './server-storm.js';
import { memorySurplus, type Surplus } from './surplus.js';

/** The clusters that storms come over. */
const STORMED: readonly ClusterName[] = ['empty', 'initialised', 'just-released', 'half-full'];
const STARTERS = {
  memory: [10, 100, 1_000],
  large: [10, 100, 1_000],
  s3: [10, 100, 300],
  servers: 100,
} as const;
const BOTH: readonly ContestantName[] = ['shipped', 'plain'];
const ALL: readonly ContestantName[] = ['shipped', 'proving', 'plain'];

/** A plain scan of 1,000 ids by 1,000 tasks is a million requests and more: one storm of those is enough. */
const ONCE_FROM = 1_000;

/** Says what is measured now. */
export type Progress = (text: string) => void;

/** Storms on the memory store, of all contestants. */
export async function memoryCells(seeds: SeedRange, progress: Progress): Promise<readonly Cell[]> {
  const places = STORMED.flatMap((cluster) =>
    STARTERS.memory.flatMap((starters) => ALL.map((contestant) => ({ contestant, cluster, starters }))),
  );
  return cellsOf(places, seeds, progress);
}

/**
 * Storms on the largest cluster that there can be. The plain scan would begin with 65,528 requests a task
 * there: it is left out.
 */
export async function largeCells({ from }: SeedRange, progress: Progress): Promise<readonly Cell[]> {
  const places = STARTERS.large.map(
    (starters) => ({ contestant: 'shipped', cluster: 'few-free', starters }) as const,
  );
  return cellsOf(places, { from, seeds: 1 }, progress);
}

async function cellsOf(
  places: readonly Place[],
  { from, seeds }: SeedRange,
  progress: Progress,
): Promise<readonly Cell[]> {
  const cells: Cell[] = [];
  for (const place of places) {
    progress(`memory, ${place.cluster}, ${place.starters} tasks, ${CONTESTANTS[place.contestant].title}`);
    const once = place.contestant === 'plain' && place.starters >= ONCE_FROM;
    cells.push(await memoryCell(place, { from, seeds: once ? 1 : seeds }));
  }
  return cells;
}

/** More tasks than ids. A plain scan of waiting tasks never ends: fewer of them, and each event once. */
export async function surplusRows({ from }: SeedRange, progress: Progress): Promise<readonly Surplus[]> {
  const rows: Surplus[] = [];
  for (const [contestant, waiting] of [
    ['shipped', 1],
    ['shipped', 10],
    ['shipped', 100],
    ['shipped', 1_000],
    ['plain', 1],
    ['plain', 10],
    ['plain', 100],
  ] as const) {
    progress(`memory, ${waiting} waiting tasks, ${CONTESTANTS[contestant].title}`);
    rows.push(
      await memorySurplus({ contestant, waiting, seed: from, ...(contestant === 'plain' && { rounds: 1 }) }),
    );
  }
  return rows;
}

/**
 * Storms on a real S3 server, of both contestants: in an empty bucket, and then where all ids were just
 * released.
 */
export async function s3Cells(server: StoreServer, progress: Progress): Promise<readonly Cell[]> {
  const cells: Cell[] = [];
  for (const starters of STARTERS.s3) {
    for (const contestant of BOTH) {
      progress(`S3, ${starters} tasks, ${CONTESTANTS[contestant].title}`);
      const { first, released } = await serverStorms({
        server,
        contestant: CONTESTANTS[contestant],
        starters,
      });
      cells.push(cellOf({ contestant, cluster: 'empty', starters }, [first]));
      cells.push(cellOf({ contestant, cluster: 'just-released', starters }, [released]));
    }
  }
  // By cluster, like those on the memory store.
  return (['empty', 'just-released'] as const).flatMap((cluster) =>
    cells.filter((cell) => cell.cluster === cluster),
  );
}

/** What a storm on one server came to. */
export interface ServerCell {
  readonly server: string;
  readonly cell: Cell;
}

/** Storms of nodelease on a real server: in an empty place, and then where all ids were just released. */
export async function serverCells(server: StoreServer, progress: Progress): Promise<readonly ServerCell[]> {
  const starters = STARTERS.servers;
  progress(`${server.description}, ${starters} tasks`);
  const { first, released } = await serverStorms({ server, contestant: CONTESTANTS.shipped, starters });
  const cells = [
    cellOf({ contestant: 'shipped', cluster: 'empty', starters }, [first]),
    cellOf({ contestant: 'shipped', cluster: 'just-released', starters }, [released]),
  ];
  return cells.map((cell) => ({ server: server.kind, cell }));
}
