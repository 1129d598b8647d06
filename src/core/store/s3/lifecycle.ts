import type { StoreFact } from '../lease-store.js';
import type { LifecycleRule } from './bucket-sdk.js';

// What the lifecycle rules of a bucket do to lease objects.

/** Classes whose objects cannot be read at once. */
const ARCHIVES = ['GLACIER', 'DEEP_ARCHIVE'];

/** Whether a rule for keys that begin with `prefix` applies to some of the keys below `keyPrefix`. */
export function overlaps(prefix: string, keyPrefix: string): boolean {
  return keyPrefix.startsWith(prefix) || prefix.startsWith(keyPrefix);
}

/** A number of days. */
export function days(count: number): string {
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
export function noncurrentDays(rules: readonly LifecycleRule[], keyPrefix: string): number {
  const whole = applying(rules, keyPrefix).filter(({ Prefix, Filter }) =>
    keyPrefix.startsWith(Filter?.Prefix ?? Filter?.And?.Prefix ?? Prefix ?? ''),
  );
  const found = whole.flatMap(({ NoncurrentVersionExpiration: expiration }) =>
    expiration?.NoncurrentDays === undefined ? [] : [expiration.NoncurrentDays],
  );
  return Math.min(Number.POSITIVE_INFINITY, ...found);
}

/** What breaks. */
export function lifecycleFacts(
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
