import { checkKnown } from '../base/arguments.js';
import { ConfigError } from '../base/errors.js';
import type { TenureTime } from '../lease/hold/tenure-time.js';
import type { Lease } from '../lease/model/lease.js';
import { CLUSTER_NODE_ID_OFFSET, clusterNodeIdOf } from './cluster-node-id.js';
import { checkedLayout, cluster16, type IdLayout } from './id-layout.js';
import { UniqueIdGenerator, type UniqueIdGeneratorOptions } from './unique-id-generator.js';

/** Options of {@link uniqueIds}. */
export interface UniqueIdsOptions extends Pick<UniqueIdGeneratorOptions, 'lagMs' | 'advanceMs'> {
  /**
   * The same for all nodes of a system. A given layout never changes: choose one with room for the greatest
   * number of node ids, such as `snowflake(epoch)` for 1,016.
   *
   * @default `cluster16` with the bits that the cluster has for a node id, more as it grows
   */
  readonly layout?: IdLayout | undefined;
  /** Gives up waiting for the store. */
  readonly signal?: AbortSignal | undefined;
}

/** The options that affect the ids. */
const OPTION_NAMES = ['layout', 'lagMs', 'advanceMs'] as const satisfies (keyof UniqueIdsOptions)[];

const NEVER = new Promise<void>(() => undefined);

const MADE: unique symbol = Symbol.for('nodelease.uniqueIds');

/**
 * It has its one generator: two would make the same ids. A second copy of this package in the process finds it,
 * too.
 */
interface Tenure extends TenureTime {
  [MADE]?: { readonly generator: UniqueIdGenerator; readonly options: UniqueIdsOptions };
}

/**
 * The generator of unique 64-bit ids of a lease. No two tenures of a node id, and no two nodes, make the same
 * id, whatever the hosts' clocks say: ids contain store time, and only from this tenure's part of it.
 *
 * ```ts
 * const ids = await uniqueIds(lease);
 * const id = ids.next();
 * ```
 *
 * Resolves after one short request, which reads the width of ids. Every call for a lease resolves to the same
 * generator. Use it in the thread that has the lease's handle.
 *
 * Not guaranteed: uniqueness after leases were deleted or emptied in the bucket or ZooKeeper, which restarts
 * the versions, too.
 *
 * @throws {ConfigError} when an option is out of range, the node id has no room in the layout, the lease has
 * a generator with other options already, or is none (a static node id)
 * @throws {LeaseLostError} when the lease is lost
 * @throws {LeaseReleasedError} when it was released
 * @throws {StoreError} or {ZooKeeperError} when the width of ids cannot be read
 * @throws `signal.reason` when `signal` aborts first
 */
export async function uniqueIds(
  lease: Pick<Lease, 'id' | 'tenureTime'>,
  options: UniqueIdsOptions = {},
): Promise<UniqueIdGenerator> {
  checkKnown(options, [...OPTION_NAMES, 'signal']);
  const { id, tenureTime: time }: Readonly<{ id: number; tenureTime: Tenure | undefined }> = Object(lease);
  if (time === undefined) {
    const expected = 'a leased node id (standaloneIds makes ids for a fixed one, by the wall clock)';
    throw new ConfigError('lease', id === undefined ? lease : `the fixed node id ${id}`, expected);
  }
  const { layout, lagMs, advanceMs, signal } = options;
  if (layout !== undefined) checkRoom(id, checkedLayout(layout));
  await time.prepare(signal);
  // No await from here on: no other call can make a generator in between.
  const before = time[MADE];
  if (before !== undefined) {
    checkSame(before.options, options);
    return before.generator;
  }
  if (layout !== undefined && isTooNarrow(layout, time.idWidth)) {
    throw new ConfigError(
      'layout',
      `cluster16(${layout.nodeBits})`,
      `cluster16(${time.idWidth}) at least, as the cluster has it`,
    );
  }
  const generator = new UniqueIdGenerator({
    layout: layout ?? cluster16(time.idWidth),
    node: clusterNodeIdOf(id),
    time,
    clock: time.clock,
    lagMs,
    advanceMs,
  });
  // A fixed layout that is too narrow never adopts the width, so the new node ids are not given out.
  time.onWidth((idWidth) =>
    layout === undefined
      ? generator.adopt(cluster16(idWidth))
      : isTooNarrow(layout, idWidth)
        ? NEVER
        : undefined,
  );
  time[MADE] = { generator, options };
  return generator;
}

/** How many ids the generator of a lease has made so far; 0 without a generator. */
export function issuedIds({ tenureTime }: { readonly tenureTime: Tenure | undefined }): number {
  return tenureTime?.[MADE]?.generator.issued ?? 0;
}

function checkRoom(nodeId: number, { name, nodeBits }: IdLayout): void {
  const max = 2 ** nodeBits - 1 - CLUSTER_NODE_ID_OFFSET;
  if (nodeId <= max) return;
  throw new ConfigError(
    'node id',
    nodeId,
    `a node id from 0 to ${max}, since layout ${name} has ${nodeBits} bits for it (8 are reserved)`,
  );
}

/** Only with `cluster16` the ids of other nodes are known. A custom layout is the same for all nodes. */
function isTooNarrow({ name, nodeBits }: IdLayout, idWidth: number): boolean {
  return name === 'cluster16' && nodeBits < idWidth;
}

function checkSame(before: UniqueIdsOptions, now: UniqueIdsOptions): void {
  for (const name of OPTION_NAMES) {
    if (JSON.stringify(before[name]) === JSON.stringify(now[name])) continue;
    throw new ConfigError(
      name,
      JSON.stringify(now[name]),
      `what the lease's generator was made with, ${JSON.stringify(before[name])}`,
    );
  }
}
