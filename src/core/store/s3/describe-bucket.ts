import { orAborted } from '../../base/abort.js';
import { fieldOf, textOf } from '../../base/fields.js';
import type { StoreFact } from '../lease-store.js';
import {
  GetBucketLifecycleConfigurationCommand,
  GetBucketReplicationCommand,
  GetBucketVersioningCommand,
  GetObjectLockConfigurationCommand,
  type LifecycleRule,
} from './bucket-sdk.js';
import type { S3Client } from './sdk.js';

/** Which bucket is looked at, and how. */
interface BucketLook {
  readonly bucket: string;
  /** With a slash at its end; empty for the whole bucket. */
  readonly keyPrefix: string;
  readonly client: Pick<S3Client, 'send'>;
  readonly signal: AbortSignal;
}

const DAYS_PER_YEAR = 365;

/**
 * Looks at the configuration of a bucket: versioning, Object Lock, lifecycle and replication. What it costs
 * or breaks is a fact each. No lease needs these rights: what may not be read is one line, and what a server
 * does not know is none.
 */
export async function describeBucket({
  bucket,
  keyPrefix,
  client,
  signal,
}: BucketLook): Promise<readonly StoreFact[]> {
  const input = { Bucket: bucket };
  const options = { abortSignal: signal };
  const denied: string[] = [];
  const asked = async <T>(work: Promise<T>, right: string): Promise<T | undefined> => {
    try {
      return await orAborted(work, signal);
    } catch (error) {
      // Servers say in several ways that there is no such configuration, or that they know none.
      if (fieldOf(fieldOf(error, '$metadata'), 'httpStatusCode') === 403) denied.push(right);
      return undefined;
    }
  };
  const [versioning, lock, lifecycle, replication] = await Promise.all([
    asked(client.send(new GetBucketVersioningCommand(input), options), 's3:GetBucketVersioning'),
    asked(
      client.send(new GetObjectLockConfigurationCommand(input), options),
      's3:GetBucketObjectLockConfiguration',
    ),
    asked(
      client.send(new GetBucketLifecycleConfigurationCommand(input), options),
      's3:GetLifecycleConfiguration',
    ),
    asked(client.send(new GetBucketReplicationCommand(input), options), 's3:GetReplicationConfiguration'),
  ]);

  const facts: StoreFact[] = [];
  const found = (status: StoreFact['status'], id: string, detail: string, more: Partial<StoreFact> = {}) =>
    facts.push({ id: `bucket-${id}`, status, detail, ...more });
  const rules = lifecycle?.Rules ?? [];
  const {
    Days: lockDays,
    Years: lockYears,
    Mode: mode,
  } = lock?.ObjectLockConfiguration?.Rule?.DefaultRetention ?? {};
  const retentionDays = lockDays ?? (lockYears ?? 0) * DAYS_PER_YEAR;
  if (versioning?.Status === 'Enabled') {
    const removedAfter = noncurrentDays(rules, keyPrefix);
    const keptDays = Math.max(removedAfter, retentionDays);
    const unbounded = removedAfter === Number.POSITIVE_INFINITY;
    found(
      unbounded ? 'warning' : 'ok',
      'versioning',
      unbounded
        ? 'on: each renewal keeps a version for ever; a lifecycle rule for noncurrent versions removes them'
        : `on: each renewal keeps a version, and a lifecycle rule removes it after ${days(removedAfter)}`,
      { keptDays },
    );
  }
  if (retentionDays > 0)
    found(
      'warning',
      'object-lock',
      `a default retention of ${days(retentionDays)} (${mode}): the version of each renewal cannot be removed for so long`,
    );
  for (const { status, detail } of lifecycleFacts(rules, keyPrefix)) found(status, 'lifecycle', detail);
  const copies = (replication?.ReplicationConfiguration?.Rules ?? []).filter(
    ({ Status, Prefix, Filter }) =>
      Status === 'Enabled' && overlaps(Filter?.Prefix ?? Filter?.And?.Prefix ?? Prefix ?? '', keyPrefix),
  );
  if (copies.length > 0) {
    const targets = copies.map(({ Destination }) =>
      textOf(Destination, 'Bucket')?.replace(/^arn:[^/]*:::/, ''),
    );
    found(
      'warning',
      'replication',
      `copies each renewal to ${[...new Set(targets)].join(', ')}, at the price of a PUT and the transfer: never use the copy as a store, also not in a failover; it is behind, and node ids would be held twice`,
    );
  }
  if (denied.length > 0)
    found(
      'ok',
      'configuration',
      `not looked at for want of ${denied.join(', ')}; no lease needs these rights`,
    );
  return facts;
}

// What the lifecycle rules of a bucket do to lease objects.

/** Classes whose objects cannot be read at once. */
const ARCHIVES = ['GLACIER', 'DEEP_ARCHIVE'];

/** Scratch objects of a probe, for leases or for locks, which a rule should remove. */
const SCRATCH = /^(locks\/)?probe-/;

/** Whether a rule for keys that begin with `prefix` applies to some lease objects below `keyPrefix`. */
function overlaps(prefix: string, keyPrefix: string): boolean {
  if (keyPrefix.startsWith(prefix)) return true;
  return prefix.startsWith(keyPrefix) && !SCRATCH.test(prefix.slice(keyPrefix.length));
}

/** A number of days. */
function days(count: number): string {
  return count === 1 ? '1 day' : `${count} days`;
}

/** The rules that apply to lease objects. They have no tags, and less than a kilobyte. */
function applying(rules: readonly LifecycleRule[], keyPrefix: string): readonly LifecycleRule[] {
  return rules.filter(({ Status, Prefix, Filter }) => {
    const { And, Tag } = Filter ?? {};
    const isTagged = Tag !== undefined || (And?.Tags ?? []).length > 0;
    const min = Filter?.ObjectSizeGreaterThan ?? And?.ObjectSizeGreaterThan ?? 0;
    const prefix = Filter?.Prefix ?? And?.Prefix ?? Prefix ?? '';
    return Status === 'Enabled' && !isTagged && min < 1_024 && overlaps(prefix, keyPrefix);
  });
}

/** After how many days versions are removed that a write has replaced; infinity for never. */
function noncurrentDays(rules: readonly LifecycleRule[], keyPrefix: string): number {
  const whole = applying(rules, keyPrefix).filter(({ Prefix, Filter }) =>
    keyPrefix.startsWith(Filter?.Prefix ?? Filter?.And?.Prefix ?? Prefix ?? ''),
  );
  const found = whole.flatMap(({ NoncurrentVersionExpiration: expiration }) =>
    expiration?.NoncurrentDays === undefined ? [] : [expiration.NoncurrentDays],
  );
  return Math.min(Number.POSITIVE_INFINITY, ...found);
}

/** What breaks. */
function lifecycleFacts(
  rules: readonly LifecycleRule[],
  keyPrefix: string,
): readonly Pick<StoreFact, 'status' | 'detail'>[] {
  return applying(rules, keyPrefix).flatMap(({ ID, Expiration, Transitions = [] }) => {
    const rule = ID ? `rule ${ID}` : 'a rule';
    const when = (on: { readonly Days?: number | undefined; readonly Date?: Date | undefined }) =>
      on.Days === undefined ? `on ${on.Date?.toISOString().slice(0, 10)}` : `after ${days(on.Days)}`;
    const archived = Transitions.find(({ StorageClass }) => ARCHIVES.includes(StorageClass ?? ''));
    const removes = Expiration?.Days !== undefined || Expiration?.Date !== undefined;
    return [
      ...(removes
        ? [
            {
              status: 'fault' as const,
              detail: `${rule} removes lease objects and cluster.json ${when(Expiration)} without a write, and with them the versions that were used: limit it to other prefixes, or to noncurrent versions`,
            },
          ]
        : []),
      ...(archived
        ? [
            {
              status: 'warning' as const,
              detail: `${rule} moves objects to ${archived.StorageClass} ${when(archived)}, where no task can read them: limit it to other prefixes`,
            },
          ]
        : []),
    ];
  });
}
