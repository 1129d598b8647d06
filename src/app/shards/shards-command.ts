import { concurrently, REQUESTS_AT_ONCE } from '../../core/base/concurrently.js';
import { StoreUnusableError } from '../../core/base/errors.js';
import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import { inspectNode } from '../../core/lease/operate/inspect.js';
import { readCluster } from '../../core/lease/session/cluster-store.js';
import type { SessionCall, StoreSession } from '../../core/lease/session/store-session.js';
import { readShards, shardCounts, shardsText } from '../../node/shards/read-shards.js';
import { MAX_FAILED, type MapMember, SHARDS_KEY } from '../../node/shards/shard-map.js';
import { complain, tableLines } from '../kit/answer.js';
import { type Call, onStore } from '../kit/call.js';
import { finding, type PartReport } from '../kit/finding.js';
import type { Io } from '../kit/io.js';
import { type ShowOptions, type StatusView, show } from '../kit/show.js';
import { formatDuration, someOf } from '../kit/terminal/text.js';

const NODES = [
  ['NODE', 'right'],
  ['VERSION', 'right'],
  ['TASK', 12],
  ['ADDRESS', 12],
  ['SHARDS', 'right'],
  'STATE',
] as const;
const SHARDS = [['SHARD', 'right'], 'OWNER', ['TOKEN', 'right'], 'NEXT', 'WAITS FOR'] as const;

/** `nodelease shards`: who owns which shard, and what is waited for. */
export function shardsCommand(call: Call<ShowOptions>): Promise<number> {
  return onStore(call, (session) => showShards(session, call.options, call.io));
}

/** Shows the map, once or every second. */
export function showShards(session: StoreSession, options: ShowOptions, io: Io): Promise<number> {
  return show(() => reading(session), { ...options, all: true }, io);
}

async function reading(session: StoreSession): Promise<StatusView> {
  const { url } = session.store;
  const cluster = await readCluster(session);
  const found = cluster && (await readShards(session, cluster.config));
  if (cluster === undefined || found === undefined) {
    const line = cluster
      ? `The cluster at ${url} has no shards.`
      : `There is no cluster at ${url}. [CLUSTER_MISSING]`;
    return {
      none: !cluster,
      report: () => ({ count: 0, epoch: 0, shards: [], limits: [] }),
      lines: () => [line],
    };
  }
  const { map, object, problem } = found;
  if (problem !== undefined && !map.frozen)
    throw new StoreUnusableError('CLUSTER_DAMAGED', `${url}: ${shardsText(found)}`);
  const nodes = await concurrently(map.members, REQUESTS_AT_ONCE, async (member) => {
    const { state, version, taskId = '' } = await inspectNode(session, member.id, cluster.config);
    const isReplaced = state === 'held' && version > member.version;
    return { member, taskId, state: isReplaced ? 'replaced' : state };
  });
  const shards = map.shards.map(({ owner, token, next, failed = 0 }, shard) => ({
    shard,
    owner: tenureOf(owner),
    token,
    next: tenureOf(next),
    failed,
  }));
  const limits = [...(map.limits ?? [])].map(([member, limit]) => ({ ...tenureOf(member), limit }));
  return {
    report: () => ({ count: shards.length, epoch: map.epoch, shards, limits }),
    lines: (screen, maxLines) => {
      const states = new Map(nodes.map(({ member, state }) => [member, state]));
      const rows = map.shards.map(({ owner, token, next, failed }, at) => {
        const state = owner && states.get(owner);
        const proof = `the proof that node ${owner?.id} is over: its lease is ${state}`;
        const start = failed ? `node ${owner?.id} to start it: ${failedText(failed)}` : '';
        const move = next ? `node ${owner?.id} to stop it` : start;
        const wait = owner === undefined ? 'a node that takes it' : state === 'held' ? move : proof;
        return [`${at}`, nameOf(owner), `${token}`, nameOf(next), wait];
      });
      const ofNodes = nodes.map(({ member: { id, version, address = '' }, taskId, state }, at) => {
        const count = map.shards.filter(({ owner }) => owner === map.members[at]).length;
        const limit = map.limits?.get(map.members[at] as MapMember);
        const takes = limit === undefined ? '' : `, takes at most ${limit} since starts have failed`;
        return [`${id}`, `${version}`, taskId, address, `${count}`, `${state}${takes}`];
      });
      const age = object ? `, written ${formatDuration(object.age.min)} ago` : '';
      const head = tableLines([[NODES, ofNodes]], [`epoch ${map.epoch}${age}; ${shardsText(found)}`], screen);
      // What waits comes first: a watch shows what fits.
      rows.sort((a, b) => Number(a[4] === '') - Number(b[4] === ''));
      return [...head, '', ...tableLines([[SHARDS, rows]], [], screen)].slice(0, maxLines);
    },
  };
}

const failedText = (failed: number) =>
  `${failed === MAX_FAILED ? `${failed} or more` : failed} ${failed === 1 ? 'start has' : 'starts in a row have'} failed`;
const tenureOf = (member?: MapMember) => (member ? { nodeId: member.id, version: member.version } : null);
const nameOf = (member?: MapMember) => (member ? `${member.id} (version ${member.version})` : '');

/** Reads the map of shards; undefined for a cluster without it. @throws {StoreError} */
export async function readPart(
  session: StoreSession,
  config: ClusterConfig,
  call: SessionCall,
): Promise<PartReport | undefined> {
  const found = await readShards(session, config, call);
  if (found === undefined) return undefined;
  const { map, problem = null } = found;
  const counts = shardCounts(map);
  const report = { count: map.shards.length, epoch: map.epoch, ...counts, problem };
  const status = problem ? 'fault' : counts.failing > 0 ? 'warning' : 'ok';
  return { finding: finding('shards', status, shardsText(found)), report };
}

/** Mends the map, once all leases are sound; undefined where that is not due. @throws {StoreError} */
export async function repairPart(session: StoreSession, io: Io): Promise<PartReport | undefined> {
  const { repairShards } = await import('../../node/shards/repair-shards.js');
  const onWait = (ids: readonly number[]) =>
    complain(
      io,
      `${SHARDS_KEY}: no shard runs until all nodes have stopped theirs: waiting for node id ${someOf(ids.map(String))}; ` +
        'nodelease release ID --force ends the wait for a node that hangs',
    );
  const report = await repairShards({ session, ...io, onWait });
  if (report === undefined) return undefined;
  const text = `${SHARDS_KEY} ${report.problem}: mended, from epoch ${report.epoch} on`;
  return { finding: finding('shards', 'ok', text), report };
}
