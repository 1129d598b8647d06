import { concurrently } from '../../base/concurrently.js';
import { StoreUnusableError } from '../../base/errors.js';
import { inspectNode, type NodeStatus } from '../../lease/operate/inspect.js';
import { readCluster } from '../../lease/session/cluster-store.js';
import type { StoreSession } from '../../lease/session/store-session.js';
import { readShards, type ShardsReading, shardCounts } from '../../shards/read-shards.js';
import { type Member, SHARDS_KEY, type Shard, type ShardMap } from '../../shards/shard-map.js';
import { type Table, tableLines } from '../kit/answer.js';
import type { Call } from '../kit/command-row.js';
import { onStore } from '../kit/reported.js';
import type { Io } from '../terminal/io.js';
import type { Cell, Column } from '../terminal/table.js';
import { formatDuration, pluralize } from '../terminal/text.js';
import { type Reading, show } from './status-command.js';

interface ShardsOptions {
  readonly json?: boolean;
  readonly watch?: boolean;
}

/** Leases read at the same time. */
const READS = 16;

/** `nodelease shards`: who owns which shard, and what is waited for. */
export function shardsCommand({ options, ...call }: Call<ShardsOptions>): Promise<number> {
  return onStore({ options, ...call }, (session) => showShards(session, options, call.io));
}

/** Shows the map, once or every second, as `showStatus` does. */
export function showShards(session: StoreSession, options: ShardsOptions, io: Io): Promise<number> {
  return show((signal) => reading(session, signal), { ...options, all: true }, io);
}

async function reading(session: StoreSession, signal: AbortSignal): Promise<Reading> {
  const { url } = session.store;
  const cluster = await readCluster(session, { signal });
  const found = cluster && (await readShards(session, cluster.config, { signal }));
  if (cluster === undefined || found === undefined) {
    const none = cluster === undefined;
    const line = none ? `There is no cluster at ${url}.` : `The cluster at ${url} has no shards.`;
    return { none, report: () => ({ count: 0, epoch: 0, shards: [] }), lines: () => [line] };
  }
  const { map, object, problem } = found;
  if (problem !== undefined && !map.frozen)
    throw new StoreUnusableError(`${url}: ${SHARDS_KEY} ${problem}: nodelease init --repair mends it`);
  const states = await concurrently(
    map.members,
    READS,
    ({ id }, own) => inspectNode(session, id, cluster.config, undefined, { signal: own }),
    signal,
  );
  return {
    report: () => ({
      ...{ count: map.shards.length, epoch: map.epoch },
      shards: map.shards.map(({ owner, since: token, next }, shard) => ({
        ...{ shard, owner: tenureOf(owner), token, next: tenureOf(next) },
      })),
    }),
    lines: (screen, maxLines = Number.POSITIVE_INFINITY) => {
      const nodes = nodeTable(map, states);
      const shards = map.shards.map((shard, at) => rowOf(at, shard, waitOf(shard, map, states)));
      // The rest are titles, blank lines and the summary. What waits comes first where not all fits.
      const room = Math.max(1, maxLines - nodes[1].length - 6);
      const first = shards.length > room ? shards.sort((a, b) => (a[4] ? 0 : 1) - (b[4] ? 0 : 1)) : shards;
      const left = shards.length - room;
      const more = left > 0 ? [`… and ${pluralize(left, 'more shard')}`] : [];
      const table: Table = [SHARD_COLUMNS, first.slice(0, room)];
      const age = object === undefined ? '' : `, written ${formatDuration(object.age.min)} ago`;
      const summary = `epoch ${map.epoch}${age}; ${shardsText(found)}`;
      return tableLines([nodes, table], [...more, summary], screen).slice(0, maxLines);
    },
  };
}

/** The counts of the shards, or what is wrong with their map. */
export function shardsText({ map, problem }: ShardsReading): string {
  const { owned, moving, orphaned } = shardCounts(map);
  const advice = problem && `; ${SHARDS_KEY} ${problem}: nodelease init --repair mends it`;
  return `${pluralize(map.shards.length, 'shard')}: ${owned} owned, ${moving} moving, ${orphaned} orphaned${advice ?? ''}`;
}

const SHARD_COLUMNS: readonly Column[] = [
  ['SHARD', 'right'],
  'OWNER',
  ['TOKEN', 'right'],
  'NEXT',
  ['WAITS FOR', 12],
];

const tenureOf = (member: Member | undefined) =>
  member === undefined ? null : { nodeId: member.id, version: member.version };
const nameOf = (member: Member | undefined) => (member ? `${member.id} (version ${member.version})` : '');

function rowOf(at: number, { owner, since, next }: Shard, wait: string): Cell[] {
  return [`${at}`, nameOf(owner), `${since}`, nameOf(next), wait];
}

function nodeTable({ members, shards }: ShardMap, states: readonly NodeStatus[]): Table {
  const count = (isCounted: (shard: Shard) => boolean) => `${shards.filter(isCounted).length}`;
  const rows = members.map((member, at): Cell[] => [
    `${member.id}`,
    `${member.version}`,
    states[at]?.taskId ?? '',
    member.address ?? '',
    count(({ owner }) => owner === member),
    count(({ next }) => next === member),
    count(({ owner, next }) => owner === member && next !== undefined),
    stateOf(member, states[at]),
  ]);
  const counts: readonly Column[] = [
    ['SHARDS', 'right'],
    ['COMING', 'right'],
    ['LEAVING', 'right'],
  ];
  return [[['NODE', 'right'], ['VERSION', 'right'], ['TASK', 12], ['ADDRESS', 12], ...counts, 'STATE'], rows];
}

/** `held`, while the tenure of the member may go on. */
function stateOf({ version }: Member, status: NodeStatus | undefined): string {
  return status?.state === 'held' && status.version > version ? 'replaced' : (status?.state ?? '');
}

/** What has to happen before an owner of the plan runs the shard; empty if its owner does. */
function waitOf(
  { owner, next }: Shard,
  { frozen, members }: ShardMap,
  states: readonly NodeStatus[],
): string {
  if (frozen) return 'the end of the repair';
  if (owner === undefined) return 'a member that takes it';
  const state = stateOf(owner, states[members.indexOf(owner)]);
  if (state !== 'held') return `the proof that node ${owner.id} is over: its lease is ${state}`;
  return next === undefined ? '' : `node ${owner.id} to stop it`;
}
