import type { TableDescription, TimeToLiveDescription } from '@aws-sdk/client-dynamodb';
import type { StoreFact } from '../lease-store.js';

/** The attributes of an item. */
const OURS = ['prefix', 'object', 'etag', 'body', 'metadata', 'bytes'];

/**
 * What the configuration of a table breaks or costs, a fact each: time to live, replicas in other regions.
 *
 * @param timeToLive why it is unknown, where it is
 */
export function tableFacts(
  table: TableDescription = {},
  timeToLive: TimeToLiveDescription | Error = {},
): readonly StoreFact[] {
  const facts: StoreFact[] = [];
  const found = (status: StoreFact['status'], id: string, detail: string) =>
    facts.push({ id: `table-${id}`, status, detail });
  if (table.TableId) found('ok', 'id', table.TableId);
  if (timeToLive instanceof Error) found('ok', 'time-to-live', `not looked at: ${timeToLive.message}`);
  else if (timeToLive.TimeToLiveStatus?.startsWith('ENABL')) {
    const { AttributeName: expiry = '' } = timeToLive;
    if (OURS.includes(expiry))
      found(
        'fault',
        'time-to-live',
        `on ${expiry}, which every lease has: DynamoDB removes them, and with them the versions that were used; turn it off`,
      );
    else
      found(
        'warning',
        'time-to-live',
        `on ${expiry}, which no lease has: do not add it to one, or DynamoDB removes it with its version`,
      );
  }
  const regions = table.Replicas?.map(({ RegionName }) => RegionName).join(', ');
  if (regions || table.GlobalTableVersion === '2017.11.29') {
    const where = `in ${regions || 'other regions'}`;
    if (table.MultiRegionConsistency === 'STRONG')
      found('warning', 'replicas', `${where}, with strong consistency: each write waits for another region`);
    else
      found(
        'fault',
        'replicas',
        `${where}, with eventual consistency: conditions see their own region, and the last writer wins, so two tasks hold one node id; use strong consistency, or a table without replicas`,
      );
  }
  return facts;
}
