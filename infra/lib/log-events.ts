import { FilterPattern, type JsonPattern } from 'aws-cdk-lib/aws-logs';

/**
 * The state changes in nodelease's log that somebody should look into: the values of the field `event` of its
 * JSON lines.
 */
export type LogEvent = 'lost' | 'renewal-failed' | 'store-failed' | 'waiting' | 'damaged';

/**
 * A pattern of CloudWatch Logs for the lines of nodelease that report any of these events. The lines of the
 * work, which stand in the same log stream, do not match: they have another `name`, or none. Nor does the wait for a
 * lock, of a job or under the work: that is what locks are for.
 */
export function logEvents(...events: readonly [LogEvent, ...LogEvent[]]): JsonPattern {
  const named = events.map((event) => {
    const pattern = FilterPattern.stringValue('$.event', '=', event);
    return event === 'waiting' ? FilterPattern.all(pattern, FilterPattern.notExists('$.lock')) : pattern;
  });
  return FilterPattern.all(
    FilterPattern.stringValue('$.name', '=', 'nodelease'),
    named.length === 1 ? (named[0] as JsonPattern) : FilterPattern.any(...named),
  );
}
