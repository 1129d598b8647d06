import { describe, expect, it } from 'vitest';
import { checkStopTiming } from '../lib/stop-timing.js';
import { seconds, service } from './stacks.js';

const timing = (stop: number, lease: number, drain: number) => () =>
  checkStopTiming({
    stopTimeout: seconds(stop),
    leaseDuration: seconds(lease),
    drainTimeout: seconds(drain),
  });

describe('the stop time-out', () => {
  it('has to outlast the end of the work and the release after it, to the second', () => {
    expect(timing(40, 15, 30)).not.toThrow();
    expect(timing(39, 15, 30)).toThrow(
      'stopTimeout: expected at least 40 seconds: the work may take 30 seconds to end, and nodelease 10 seconds beside that, most of it for the release of the lease ' +
        '(a task killed before keeps its node id taken until the lease has run out), got "39 seconds"',
    );
  });

  it('has to outlast a lease that cannot be renewed while the task stops, to the second', () => {
    expect(timing(70, 60, 20)).not.toThrow();
    expect(timing(69, 60, 20)).toThrow(
      'stopTimeout: expected at least 1 minute 10 seconds: when the store cannot be reached during the stop, nodelease ends the work by the end of ' +
        'its lease, 1 minute after the last renewal, and then tidies up for up to 10 seconds (ECS would kill everything in the middle), got "1 minute 9 seconds"',
    );
  });

  it('is at most what Fargate allows', () => {
    expect(timing(120, 15, 20)).not.toThrow();
    expect(timing(121, 15, 20)).toThrow(
      'stopTimeout: expected at most 2 minutes, the most that Fargate allows',
    );
  });

  it('is checked before a service is made', () => {
    expect(() => service({ leaseDuration: seconds(40) })).toThrow(
      /^stopTimeout: expected at least 50 seconds/,
    );
    expect(() => service({ drainTimeout: seconds(60) })).toThrow(
      /^stopTimeout: expected at least 1 minute 10 seconds/,
    );
  });
});
