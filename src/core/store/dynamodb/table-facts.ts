import type { DescribeTableOutput, DescribeTimeToLiveOutput } from '@aws-sdk/client-dynamodb';
import type { StoreFact } from '../lease-store.js';

/** The attributes of an item. */
const OURS = ['prefix', 'object', 'etag', 'body', 'metadata', 'bytes'];

/**
 * What the configuration of a table breaks or costs, a fact each: time to live, replicas in other regions, a
 * restored table.
 *
 * @param denied the rights that were missing
 */
export function tableFacts(
  { Table: table }: DescribeTableOutput = {},
  { TimeToLiveDescription: timeToLive }: DescribeTimeToLiveOutput = {},
  denied: readonly string[] = [],
): readonly StoreFact[] {
  const facts: StoreFact[] = [];
  const found = (status: StoreFact['status'], id: string, detail: string) =>
    facts.push({ id: `table-${id}`, title: id.replaceAll('-', ' '), status, detail });
  if (table !== undefined) {
    const { BillingModeSummary: billing, ProvisionedThroughput: units } = table;
    const isOnDemand = billing?.BillingMode === 'PAY_PER_REQUEST';
    const capacity = `${units?.WriteCapacityUnits} write and ${units?.ReadCapacityUnits} read units`;
    const id = `id ${table.TableId ?? 'unknown'}`;
    found('ok', 'table', `${id}, ${isOnDemand ? 'on demand' : capacity}`);
  }
  const { AttributeName: expiry = '', TimeToLiveStatus: status = '' } = timeToLive ?? {};
  if (/^ENABL/.test(status)) {
    const isOurs = OURS.includes(expiry);
    found(
      isOurs ? 'fault' : 'warning',
      'time-to-live',
      isOurs
        ? `by ${expiry}, an attribute of leases: DynamoDB removes them, and with them the versions that were used; turn it off`
        : `by ${expiry}, which no lease has: an item that gets it is removed, and its version with it; use another table`,
    );
  }
  const regions = (table?.Replicas ?? []).map(({ RegionName }) => RegionName).join(', ');
  if (regions !== '' || table?.GlobalTableVersion === '2017.11.29') {
    const isStrong = table?.MultiRegionConsistency === 'STRONG';
    const where = `a global table${regions && `, with replicas in ${regions}`}`;
    found(
      isStrong ? 'warning' : 'fault',
      'replicas',
      isStrong
        ? `${where}, with strong consistency: each write waits for another region`
        : `${where}, with eventual consistency: a condition sees the item of its own region, and the last writer wins, so two tasks would hold one node id; use a table without replicas, or strong consistency`,
    );
  }
  const { RestoreDateTime: restored, SourceTableArn: source } = table?.RestoreSummary ?? {};
  if (restored !== undefined)
    found(
      'warning',
      'restore',
      `this table was restored${source ? ` from ${source}` : ''}, as of ${restored.toISOString()}: leases that it had then have older versions than those that were given out`,
    );
  if (denied.length > 0)
    found(
      'ok',
      'configuration',
      `not looked at for want of ${denied.join(', ')}; no lease needs these rights`,
    );
  return facts;
}
