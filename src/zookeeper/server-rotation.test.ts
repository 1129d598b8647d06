import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../test/support/virtual-clock.js';
import { ServerRotation } from './server-search.js';

const SERVERS = ['a', 'b', 'c'].map((host) => ({ host, port: 2181 }));

function rotation(seed: number, servers = SERVERS) {
  const servers_ = new ServerRotation(servers, seededRandom(seed));
  const attempt = () => ({ pauseMs: servers_.pauseMs(), host: servers_.next().host });
  return { attempt, succeeded: () => servers_.succeeded() };
}

describe('the servers', () => {
  it('are tried in an order that differs from client to client', () => {
    const orders = new Set(
      Array.from({ length: 200 }, (_, seed) =>
        [1, 2, 3]
          .map(rotation(seed).attempt)
          .map(({ host }) => host)
          .join(''),
      ),
    );
    expect([...orders].sort()).toEqual(['abc', 'acb', 'bac', 'bca', 'cab', 'cba']);
  });

  it('are all tried without a pause, then again and again after pauses that grow to a second at most', () => {
    const { attempt } = rotation(1);
    const attempts = Array.from({ length: 30 }, attempt);
    expect(attempts.map(({ host }) => host).join('')).toBe(
      attempts
        .slice(0, 3)
        .map(({ host }) => host)
        .join('')
        .repeat(10),
    );
    const pauses = attempts.map(({ pauseMs }) => pauseMs);
    for (const [i, pauseMs] of pauses.entries()) expect(pauseMs > 0).toBe(i > 0 && i % 3 === 0);
    expect(pauses[3]).toBeGreaterThanOrEqual(50);
    expect(pauses[3]).toBeLessThanOrEqual(100);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_000);
    expect(pauses.at(-3)).toBeGreaterThanOrEqual(500);
  });

  it('are tried at once after a good connection, the one that was lost last of all', () => {
    const { attempt, succeeded } = rotation(2);
    const { host: lost } = attempt();
    for (let i = 0; i < 3; i += 1) attempt();
    succeeded();
    const next = Array.from({ length: 3 }, attempt);
    expect(next.map(({ pauseMs }) => pauseMs)).toEqual([0, 0, 0]);
    expect(next.at(-1)?.host).toBe(lost);
  });
});
