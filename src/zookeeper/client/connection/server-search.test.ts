import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { NameResolver } from './name-resolver.js';
import { type Candidate, ServerSearch } from './server-search.js';

const ADDRESSES: Record<string, string[]> = {
  both: ['::1', '127.0.0.1'],
  all: ['10.0.0.1', '10.0.0.2', '10.0.0.3'],
  one: ['10.0.1.1'],
};

function search(hosts: readonly string[], sessionTimeoutMs = 9_000, seed = 1) {
  const clock = new VirtualClock();
  const names = new NameResolver(async (host) => {
    const addresses = ADDRESSES[host];
    if (!addresses) throw new Error(`getaddrinfo ENOTFOUND ${host}`);
    return addresses;
  });
  const servers = hosts.map((host) => ({ host, port: 2181 }));
  const of = new ServerSearch({ servers, sessionTimeoutMs, names, clock, random: seededRandom(seed) });
  /** The next candidate, and how long it took. */
  const next = async () => {
    const since = clock.monotonic();
    let candidate: Candidate | undefined;
    void of.next(new AbortController().signal).then((value) => {
      candidate = value;
    });
    await clock.advance(0);
    while (!candidate) await clock.advance(1);
    return { candidate, tookMs: clock.monotonic() - since };
  };
  const address = async () => {
    const { candidate } = await next();
    return candidate.status === 'found' ? candidate.address : candidate.problem;
  };
  return { of, next, address };
}

describe('a server with several addresses', () => {
  it('is tried under one after the other, without a pause in between', async () => {
    const { next } = search(['both']);
    const [first, second, third] = [await next(), await next(), await next()];
    expect([first, second]).toEqual([
      {
        candidate: { status: 'found', server: { host: 'both', port: 2181 }, address: '::1', limitMs: 500 },
        tookMs: 0,
      },
      {
        candidate: {
          status: 'found',
          server: { host: 'both', port: 2181 },
          address: '127.0.0.1',
          limitMs: 500,
        },
        tookMs: 0,
      },
    ]);
    expect(third).toMatchObject({ candidate: { address: '::1' } });
    expect(third.tookMs).toBeGreaterThan(0);
  });

  it('is tried under another one first when a connection is lost', async () => {
    const { of, address } = search(['all']);
    const tried: string[] = [];
    for (let i = 0; i < 4; i += 1) {
      tried.push(await address());
      of.connected();
    }
    expect(tried).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.1']);
  });

  it('gives way to the next server once all of them have been tried', async () => {
    const { address } = search(['both', 'one']);
    const tried = [await address(), await address(), await address()].join();
    expect(['::1,127.0.0.1,10.0.1.1', '10.0.1.1,::1,127.0.0.1']).toContain(tried);
  });
});

describe('a server whose name is not found', () => {
  it('is reported as such, and skipped at once', async () => {
    const { next } = search(['missing', '10.0.2.1']);
    const both = [await next(), await next()];
    const unresolved = {
      status: 'unresolved',
      server: { host: 'missing', port: 2181 },
      problem: 'getaddrinfo ENOTFOUND missing',
    };
    expect(both).toContainEqual({ candidate: unresolved, tookMs: 0 });
    expect(both).toContainEqual({ candidate: expect.objectContaining({ address: '10.0.2.1' }), tookMs: 0 });
  });
});

describe('an attempt', () => {
  it.each([
    [['10.0.0.1'], 1_000, 500],
    [['10.0.0.1'], 9_000, 3_000],
    [['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'], 9_000, 1_000],
    [['10.0.0.1'], 600_000, 5_000],
  ])('at %j with a session of %i ms has %i ms at the most', async (hosts, sessionTimeoutMs, limitMs) => {
    const { of, next } = search(hosts, sessionTimeoutMs);
    const limits: number[] = [];
    for (let i = 0; i < 20; i += 1) {
      limits.push(((await next()).candidate as { limitMs: number }).limitMs);
      of.unanswered();
    }
    expect(Math.max(...limits)).toBe(limitMs);
    expect(limits.at(-1)).toBe(limitMs);
  });

  it('is given up soon at first, and has twice the time after each unanswered attempt, until there is a session', async () => {
    const { of, next } = search(['10.0.0.1'], 600_000);
    const limit = async () => ((await next()).candidate as { limitMs: number }).limitMs;
    // One that is refused says nothing of how slow they are.
    expect([await limit(), await limit()]).toEqual([500, 500]);
    of.unanswered();
    expect(await limit()).toBe(1_000);
    of.unanswered();
    expect(await limit()).toBe(2_000);
    of.connected();
    expect(await limit()).toBe(500);
  });
});

describe('the servers', () => {
  const SERVERS = ['10.0.0.1', '10.0.0.2', '10.0.0.3'];
  /** The next attempts: at which server, and after which pause. */
  const attempts = async ({ next }: ReturnType<typeof search>, count: number) => {
    const all: { host: string; pauseMs: number }[] = [];
    for (let i = 0; i < count; i += 1) {
      const { candidate, tookMs } = await next();
      all.push({ host: candidate.server.host, pauseMs: tookMs });
    }
    return all;
  };
  const hosts = (all: readonly { host: string }[]) => all.map(({ host }) => host).join();

  it('are tried in an order that differs from client to client', async () => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 100; seed += 1)
      orders.add(hosts(await attempts(search(SERVERS, 9_000, seed), 3)));
    expect(orders.size).toBe(6);
  });

  it('are all tried without a pause, then again and again after pauses that grow to a second at most', async () => {
    const all = await attempts(search(SERVERS), 30);
    expect(hosts(all)).toBe(Array.from({ length: 10 }, () => hosts(all.slice(0, 3))).join());
    const pauses = all.map(({ pauseMs }) => pauseMs);
    for (const [i, pauseMs] of pauses.entries()) expect(pauseMs > 0).toBe(i > 0 && i % 3 === 0);
    expect(pauses[3]).toBeGreaterThanOrEqual(50);
    expect(pauses[3]).toBeLessThanOrEqual(100);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_000);
    expect(pauses.at(-3)).toBeGreaterThanOrEqual(500);
  });

  it('are tried at once after a good connection, and the one that was lost comes last', async () => {
    const servers = search(SERVERS, 9_000, 2);
    const [, , , lost] = await attempts(servers, 4);
    servers.of.connected();
    servers.of.succeeded();
    const next = await attempts(servers, 3);
    expect(next.map(({ pauseMs }) => pauseMs)).toEqual([0, 0, 0]);
    expect(next.at(-1)?.host).toBe(lost?.host);
  });
});
