import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import type { ReconcileState } from '../../zookeeper/client/reconcile-loop.js';
import type { CheckSettings } from '../settings/zookeeper-settings.js';
import { RoutingEntries } from './routing-entries.js';

/** No program listens there. */
const CHECK: CheckSettings = {
  target: { kind: 'tcp', host: '127.0.0.1', port: 1 },
  intervalMs: 1_000,
  threshold: 1,
};

function scene({ check, gone = true }: { check?: CheckSettings; gone?: boolean } = {}) {
  const clock = new VirtualClock();
  const acts: string[] = [];
  const discovery = {
    state: { status: 'synced' } as ReconcileState,
    announceService: () => void acts.push('announces'),
    withdrawService: async (timeoutMs: number) => {
      acts.push(`withdraws within ${timeoutMs}`);
      return gone;
    },
  };
  const log = {
    info: (...line: unknown[]) => void acts.push(`info ${line.at(-1)}`),
    warn: (...line: unknown[]) => void acts.push(`warn ${line.at(-1)}`),
  };
  return { clock, acts, discovery, entries: new RoutingEntries({ discovery, check, clock, log }) };
}

describe('what sends work to a command', () => {
  it('is taken out once, and the log says that it is out', async () => {
    const { acts, entries } = scene();
    entries.begin();
    await Promise.all([entries.withdraw(), entries.withdraw()]);
    expect(acts).toEqual(['withdraws within 1000', 'info discovery: the service is taken out']);
  });

  it('is not waited for where it takes too long, which the log says', async () => {
    const { acts, entries } = scene({ gone: false });
    await entries.withdraw();
    expect(acts.at(-1)).toMatch(/^warn discovery: the service is not known to be out yet/);
  });

  it('is not logged where it never was there, nor where the session has been ended with the lease', async () => {
    const never = scene({ check: CHECK });
    await never.entries.withdraw();
    const ended = scene({ gone: false });
    ended.discovery.state = { status: 'closed' };
    await ended.entries.withdraw();
    expect([...never.acts, ...ended.acts]).toEqual(['withdraws within 1000', 'withdraws within 1000']);
  });

  it('is asked for from the beginning on, and not any more once it has been taken out', async () => {
    let asked = 0;
    const server = createServer((socket) => {
      asked += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const target = { kind: 'tcp', host: '127.0.0.1', port } as const;
      const { clock, acts, entries } = scene({ check: { ...CHECK, target } });
      entries.begin();
      await expect
        .poll(() => acts)
        .toEqual([expect.stringMatching(/^info .* answers: the service is announced$/), 'announces']);
      // The end of an announcement is logged when it is out.
      await entries.withdraw();
      expect(acts.slice(2)).toEqual(['withdraws within 1000', 'info discovery: the service is taken out']);
      entries.begin();
      const before = asked;
      await clock.advance(10_000);
      expect([asked, acts.length, clock.sleepers]).toEqual([before, 4, 0]);
    } finally {
      server.close();
    }
  });

  it('comes back with the next start after a restart, and at a good answer where there is a check', async () => {
    const { acts, entries } = scene();
    const healthy = () => void acts.push('healthy');
    entries.begin(healthy);
    await entries.suspend();
    entries.begin(healthy);
    expect(acts).toEqual(['healthy', 'withdraws within 1000', 'announces', 'healthy']);

    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const checked = scene({ check: { ...CHECK, target: { kind: 'tcp', host: '127.0.0.1', port } } });
      for (const times of [1, 2]) {
        checked.entries.begin(() => checked.acts.push('healthy'));
        await expect.poll(() => checked.acts.filter((act) => act === 'healthy').length).toBe(times);
        await checked.entries.suspend();
      }
      const once = [
        expect.stringContaining('the service is announced'),
        'announces',
        'healthy',
        'withdraws within 1000',
      ];
      expect(checked.acts).toEqual([...once, ...once]);
      expect(checked.clock.sleepers).toBe(0);
    } finally {
      server.close();
    }
  });

  it('does not come back once it has been taken out for good', async () => {
    const { acts, entries } = scene();
    await entries.suspend();
    await entries.withdraw();
    entries.begin();
    expect(acts).not.toContain('announces');
  });
});
