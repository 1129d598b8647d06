import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import type { SessionState } from '../zookeeper/session-state.js';
import { FirstReads } from './first-reads.js';

const CONNECTED: SessionState = { status: 'connected', sessionId: '0000000000000001', timeoutMs: 10_000, server: '127.0.0.1:2181' };
const CONNECTING: SessionState = { status: 'connecting' };

function firstReads() {
  const clock = new VirtualClock();
  const zookeeper: { state: SessionState } = { state: CONNECTED };
  const seen = { whole: 0, givenUp: [] as string[] };
  const onWhole = () => {
    seen.whole += 1;
  };
  const reads = new FirstReads({ zookeeper, clock, onWhole });
  const begin = (path: string, goOn = true) =>
    reads.begin(path, () => {
      seen.givenUp.push(path);
      return goOn;
    });
  return { clock, zookeeper, seen, reads, begin };
}

describe('the first reads of a tree', () => {
  it('are complete when nothing is left to be read, and are so for good', () => {
    const { seen, reads, begin } = firstReads();
    begin('/a');
    begin('/a/b');
    reads.end('/a');
    expect([seen.whole, reads.whole]).toEqual([0, false]);
    reads.end('/a/b');
    expect([seen.whole, reads.whole]).toEqual([1, true]);
    begin('/a/c');
    expect(reads.whole).toBe(true);
    reads.end('/a/c');
    expect(seen.whole).toBe(1);
  });

  it('go on without a znode that has refused for 5 seconds', async () => {
    const { clock, seen, begin } = firstReads();
    begin('/secret');
    await clock.advance(4_999);
    expect(seen).toEqual({ whole: 0, givenUp: [] });
    await clock.advance(1);
    expect(seen).toEqual({ whole: 1, givenUp: ['/secret'] });
    expect(clock.sleepers).toBe(0);
  });

  it('do not lose patience for want of a connection', async () => {
    const { clock, zookeeper, seen, begin } = firstReads();
    zookeeper.state = CONNECTING;
    begin('/slow');
    await clock.advance(60_000);
    expect(seen.givenUp).toEqual([]);
    zookeeper.state = CONNECTED;
    await clock.advance(4_000);
    expect(seen.givenUp).toEqual([]);
    await clock.advance(1_000);
    expect(seen.givenUp).toEqual(['/slow']);
  });

  it('are not complete without what cannot be gone on without', async () => {
    const { clock, seen, reads, begin } = firstReads();
    begin('/root', false);
    await clock.advance(11_000);
    expect(seen).toEqual({ whole: 0, givenUp: ['/root', '/root'] });
    reads.end('/root');
    expect(seen.whole).toBe(1);
  });

  it('are never complete once they have been closed, and leave no timer', async () => {
    const { clock, seen, reads, begin } = firstReads();
    begin('/a');
    reads.close();
    reads.end('/a');
    await clock.advance(10_000);
    expect(seen).toEqual({ whole: 0, givenUp: [] });
    expect(clock.sleepers).toBe(0);
  });
});
