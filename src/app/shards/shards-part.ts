import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { SessionCall, StoreSession } from '../../core/lease/session/store-session.js';
import { readShards, shardCounts, shardsText } from '../../node/shards/read-shards.js';
import { SHARDS_KEY } from '../../node/shards/shard-map.js';
import { complain } from '../kit/answer.js';
import { finding, type PartReport } from '../kit/finding.js';
import type { Io } from '../kit/terminal/io.js';
import { someOf } from '../kit/terminal/text.js';

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
