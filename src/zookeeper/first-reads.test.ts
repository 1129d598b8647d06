import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import { FirstReads } from './first-reads.js';
import type { SessionState } from './session-state.js';
import type { CallOptions } from './zookeeper.js';
import { ZooKeeperError, type ZooKeeperFault } from './zookeeper-error.js';

const CONNECTED: SessionState = {
  status: 'connected',
  sessionId: '0000000000000001',
  timeoutMs: 10_000,
  server: '127.0.0.1:2181',
};
const CONNECTING: SessionState = { status: 'connecting' };

function firstReads() {
  const clock = new VirtualClock();
  const seen = { whole: 0, givenUp: [] as string[] };
  const asked: string[] = [];
  /** What the servers answer when they are asked. */
  const answers: { fault: ZooKeeperFault | 'none' | 'never' } = { fault: 'no-auth' };
  const onWhole = () => {
    seen.whole += 1;
  };
  const zookeeper = {
    state: CONNECTED as SessionState,
    children: async (path: string, { signal }: CallOptions = {}) => {
      asked.push(path);
      const { fault } = answers;
      if (fault === 'never') await clock.sleep(Number.MAX_SAFE_INTEGER, signal);
      else if (fault !== 'none') throw new ZooKeeperError(fault, { fault, outcome: 'not-applied' });
      return [];
    },
  };
  const onRefused = (path: string) => {
    seen.givenUp.push(path);
    return path !== '/root';
  };
  const reads = new FirstReads({ zookeeper, clock, onWhole, onRefused });
  const begin = (path: string) => reads.begin(path);
  return { clock, zookeeper, seen, asked, answers, reads, begin };
}

describe('the first reads of a tree', () => {
  it('are complete when nothing is left to be read, and are so for good', () => {
    const { seen, reads, begin } = firstReads();
    begin('/a');
    begin('/a/b');
    reads.end('/a');
    expect(seen.whole).toBe(0);
    reads.end('/a/b');
    expect(seen.whole).toBe(1);
    begin('/a/c');
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

  it.each<ZooKeeperFault | 'none'>(['none', 'timeout', 'connection-loss', 'session-expired'])(
    'never go on without what is only slow: the servers, asked, do not refuse it (%s)',
    async (fault) => {
      const { clock, seen, asked, answers, reads, begin } = firstReads();
      answers.fault = fault;
      for (let i = 0; i < 100; i += 1) begin(`/${i}`);
      await clock.advance(60_000);
      expect(seen).toEqual({ whole: 0, givenUp: [] });
      // They are asked for little beside the reads themselves.
      expect(asked).toHaveLength(12 * 100);
      answers.fault = 'no-auth';
      for (let i = 1; i < 100; i += 1) reads.end(`/${i}`);
      await clock.advance(5_000);
      expect(seen).toEqual({ whole: 1, givenUp: ['/0'] });
    },
  );

  it('ask for a few at a time, and for none that has been read meanwhile', async () => {
    const { clock, seen, asked, answers, reads, begin } = firstReads();
    answers.fault = 'never';
    for (let i = 0; i < 20; i += 1) begin(`/${i}`);
    await clock.advance(30_000);
    expect(asked).toHaveLength(8);
    for (let i = 0; i < 20; i += 1) reads.end(`/${i}`);
    expect(seen.whole).toBe(1);
    reads.close();
    await clock.advance(30_000);
    expect([asked.length, clock.sleepers]).toEqual([8, 0]);
  });

  it('are not ended by a refusal of what has been read meanwhile, or begun anew', async () => {
    const { clock, zookeeper, seen, begin } = firstReads();
    let refuse: (error: Error) => void = () => undefined;
    zookeeper.children = () =>
      new Promise((_, reject) => {
        refuse = reject;
      });
    begin('/a');
    await clock.advance(5_000);
    begin('/a');
    refuse(new ZooKeeperError('no', { fault: 'no-auth', outcome: 'not-applied' }));
    await clock.advance(0);
    expect(seen).toEqual({ whole: 0, givenUp: [] });
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
    begin('/root');
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
