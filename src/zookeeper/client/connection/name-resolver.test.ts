import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { NameResolver } from './name-resolver.js';

/** A resolver whose lookups are answered by hand. */
function scripted() {
  const clock = new VirtualClock();
  const underWay: { host: string; answer: (addresses: string[]) => void; fail: (error: Error) => void }[] =
    [];
  const begun: string[] = [];
  let most = 0;
  const names = new NameResolver((host) => {
    begun.push(host);
    return new Promise((answer, fail) => {
      underWay.push({ host, answer, fail });
      most = Math.max(most, underWay.length);
    });
  });
  const alive = new AbortController();
  const resolve = (host: string, limitMs = 1_000, { signal } = alive) =>
    names.resolve(host, { clock, limitMs, signal });
  const settle = async (end: (lookup: (typeof underWay)[number]) => void) => {
    const lookup = underWay.shift();
    if (lookup) end(lookup);
    await settled();
  };
  return { clock, begun, resolve, settle, most: () => most };
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const found = (...addresses: string[]) => ({ status: 'found', addresses });

describe('the addresses of a host', () => {
  it.each(['127.0.0.1', '::1', 'fe80::1%eth0'])(
    'are known without asking where it is one: %s',
    async (host) => {
      const { resolve, begun } = scripted();
      expect(await resolve(host)).toEqual(found(host));
      expect(begun).toEqual([]);
    },
  );

  it('are looked up once at a time in the whole process, for any number of callers, however long no answer comes', async () => {
    const { clock, resolve, begun, most } = scripted();
    const outcomes = new Set<string>();
    let asked = 0;
    const ask = async (i: number) => {
      for (; clock.monotonic() < 60_000; asked += 1) {
        const resolution = await resolve(`zk${(asked + i) % 3}.test`, 1_111);
        outcomes.add(resolution.status === 'failed' ? resolution.problem : 'found');
      }
    };
    const all = Promise.all(Array.from({ length: 5 }, (_, i) => ask(i)));
    await clock.advance(62_000);
    await all;
    expect(asked).toBeGreaterThan(200);
    expect([begun.length, most()]).toEqual([1, 1]);
    expect([...outcomes]).toEqual(['the name was not resolved within 1111 ms']);
  });

  it('are found for a waiting caller as soon as the earlier lookups have ended', async () => {
    const { resolve, settle, begun } = scripted();
    const [first, second, again] = [resolve('a.test'), resolve('b.test'), resolve('a.test')];
    await settle(({ fail }) => fail(new Error('getaddrinfo ENOTFOUND a.test')));
    const failed = { status: 'failed', problem: 'getaddrinfo ENOTFOUND a.test' };
    expect(await Promise.all([first, again])).toEqual([failed, failed]);
    await settle(({ answer }) => answer(['10.0.0.1', '10.0.0.2']));
    expect(await second).toEqual(found('10.0.0.1', '10.0.0.2'));
    expect(begun).toEqual(['a.test', 'b.test']);
  });

  it('that came too late are there for the next caller, and are looked up again after a while', async () => {
    const { clock, resolve, settle, begun } = scripted();
    const late = resolve('a.test');
    await clock.advance(1_000);
    expect((await late).status).toBe('failed');
    await settle(({ answer }) => answer(['10.0.0.1']));
    await clock.advance(4_999);
    expect(await resolve('a.test')).toEqual(found('10.0.0.1'));
    await clock.advance(1);
    const retried = resolve('a.test');
    await settle(({ answer }) => answer(['10.0.0.2']));
    expect(await retried).toEqual(found('10.0.0.2'));
    expect(begun).toEqual(['a.test', 'a.test']);
  });

  it('are not looked up for a caller that has gone, which gets no answer and leaves no timer behind', async () => {
    const { clock, resolve, settle, begun } = scripted();
    const stays = resolve('a.test');
    const leaving = new AbortController();
    const gone = resolve('b.test', 1_000, leaving);
    leaving.abort(new Error('enough'));
    await expect(gone).rejects.toThrow('enough');
    await expect(resolve('c.test', 1_000, leaving)).rejects.toThrow('enough');
    await settle(({ answer }) => answer(['10.0.0.1']));
    await stays;
    expect([begun, clock.sleepers]).toEqual([['a.test'], 0]);
  });

  it('are forgotten once they are no longer valid, at the next lookup', async () => {
    const { clock, resolve, settle } = scripted();
    const lookUp = async (host: string) => {
      const resolving = resolve(host);
      await settle(({ answer }) => answer(['10.0.0.1']));
      return new WeakRef(await resolving);
    };
    const [old, recent] = [await lookUp('a.test'), await clock.advance(1).then(() => lookUp('b.test'))];
    await clock.advance(4_999);
    await lookUp('c.test');
    collectGarbage();
    expect([old.deref(), recent.deref()]).toEqual([undefined, found('10.0.0.1')]);
  });

  it('are missing if the answer contains none', async () => {
    const { resolve, settle } = scripted();
    const empty = resolve('a.test');
    await settle(({ answer }) => answer([]));
    expect(await empty).toEqual({ status: 'failed', problem: 'the name has no address' });
  });
});
