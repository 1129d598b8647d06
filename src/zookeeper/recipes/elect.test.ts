import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { AnySession, fails, ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { type ElectOptions, elect, participants, watchLeader } from './elect.js';
import type { LockHandle } from './lock-handle.js';

const PATH = '/leader';
const FIRST = `${PATH}/_c_x-latch-0000000000`;

function scene() {
  const clock = new VirtualClock();
  const zookeeper = new AnySession(clock);
  zookeeper.put(PATH, '', undefined);
  zookeeper.put(FIRST, 'one', 'a');
  return { clock, zookeeper, options: { clock, random: seededRandom(1) } };
}

describe('a participant of an election', () => {
  function candidate(options: ElectOptions = {}) {
    const clock = new VirtualClock();
    const zookeeper = new ScriptedZooKeeper(clock);
    const own = elect(zookeeper, PATH, { clock, random: seededRandom(1), ...options });
    return { clock, zookeeper, own, ids: () => [...zookeeper.znodes.values()].map(({ data }) => `${data}`) };
  }

  it('leads term after term, until its signal aborts', async () => {
    const over = new AbortController();
    const { clock, zookeeper, own, ids } = candidate({ id: 'me', signal: over.signal });
    const terms: LockHandle[] = [];
    const campaign = async () => {
      for await (const term of own) {
        terms.push(term);
        expect(ids()).toEqual(['me']);
        await clock.sleep(10);
      }
    };
    const ended = campaign();
    await clock.advance(15);
    expect(terms.map((term) => term.isValid())).toEqual([false, true]);
    expect(terms[1]?.path).toMatch(/-latch-0000000002$/);
    zookeeper.fault = () => new Promise(() => undefined);
    over.abort();
    await clock.advance(10_000);
    await ended;
    expect(terms).toHaveLength(2);
  });

  it('gives up in silence while it waits, and reports any other failure', async () => {
    const over = new AbortController();
    const { clock, zookeeper, own, ids } = candidate({ signal: over.signal });
    const next = () => own[Symbol.asyncIterator]().next();
    zookeeper.fault = async () => {
      throw fails('no-auth', 'not-applied');
    };
    await expect(next()).rejects.toMatchObject({ fault: 'no-auth' });
    zookeeper.fault = undefined;
    zookeeper.put(FIRST, 'other', 'b');
    const waiting = next();
    await clock.advance(100);
    over.abort();
    await clock.advance(0);
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(ids()).toEqual(['other']);
    zookeeper.calls.length = 0;
    expect([await next(), zookeeper.calls]).toEqual([{ done: true, value: undefined }, []]);
  });

  it.each(['candidacy', 'wait'])('can wait for one term, until the %s is over', async (which) => {
    const over = { candidacy: new AbortController(), wait: new AbortController() };
    const { clock, zookeeper, own } = candidate({ signal: over.candidacy.signal });
    const acquiring = own.acquire({ signal: over.wait.signal });
    await clock.advance(0);
    const held = await acquiring;
    expect(getEventListeners(over.wait.signal, 'abort')).toEqual([]);
    expect(held.isValid()).toBe(true);
    await held.release();
    await (await own.acquire()).release();
    zookeeper.put(FIRST, 'other', 'b');
    await expect(own.acquire({ timeoutMs: 0 })).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' });
    const waiting = own.acquire({ signal: over.wait.signal });
    await clock.advance(0);
    over[which as keyof typeof over].abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });

  it('needs neither a name nor a signal', async () => {
    const { clock, zookeeper, own, ids } = candidate();
    const terms = own[Symbol.asyncIterator]();
    const leading = terms.next();
    await clock.advance(0);
    expect([(await leading).value?.isValid(), ids()]).toEqual([true, ['']]);
    zookeeper.put(FIRST, 'other', 'b');
    const over = terms.return?.();
    await clock.advance(0);
    expect([await over, ids()]).toEqual([{ done: true, value: undefined }, ['other']]);
    zookeeper.fault = () => Promise.reject(fails('no-auth', 'not-applied'));
    await expect(own[Symbol.asyncIterator]().next()).rejects.toMatchObject({ fault: 'no-auth' });
  });

  it('says what is wrong in its options', async () => {
    expect(() => candidate({ id: 5 as never })).toThrow('id: expected a text');
    await expect(candidate().own.acquire('soon' as never)).rejects.toThrow('options: expected an object');
  });
});

describe('watchers of an election', () => {
  it('see all that take part, the leader first', async () => {
    const { zookeeper, options } = scene();
    zookeeper.put(`${PATH}/_c_a-latch-0000000002`, 'three', 'c');
    zookeeper.put(`${PATH}/_c_b-latch-0000000001`, 'two', 'b');
    const [one, three, two] = [...zookeeper.znodes.values()].slice(1).map(({ stat }) => stat.createdZxid);
    expect(await participants(zookeeper, PATH, options)).toEqual([
      { id: 'one', isLeader: true, token: one },
      { id: 'two', isLeader: false, token: two },
      { id: 'three', isLeader: false, token: three },
    ]);
    zookeeper.fault = async (operation) => {
      if (operation === 'read') zookeeper.znodes.delete(FIRST);
    };
    const left = await participants(zookeeper, PATH, options);
    expect(left.map(({ id, isLeader }) => [id, isLeader])).toEqual([
      ['two', true],
      ['three', false],
    ]);
    zookeeper.put(`${PATH}/other`, '', undefined);
    await expect(participants(zookeeper, PATH, options)).rejects.toMatchObject({ fault: 'foreign-znode' });
  });

  it('see none where the path is absent', async () => {
    const { clock, zookeeper, options } = scene();
    zookeeper.children = async () => undefined;
    zookeeper.watchChildren = (path, listener) => zookeeper.watchData(path, () => listener(undefined, path));
    expect(await participants(zookeeper, PATH, options)).toEqual([]);
    const leaders: unknown[] = [];
    watchLeader(zookeeper, PATH, (leader) => leaders.push(leader), options);
    zookeeper.fireWatches();
    await clock.advance(0);
    expect([leaders, zookeeper.calls]).toEqual([[undefined], []]);
    expect(() => watchLeader(zookeeper, PATH, 'me' as never)).toThrow('listener: expected a function');
  });

  it('are notified of each leader once, and of none', async () => {
    const { clock, zookeeper, options } = scene();
    const leaders: unknown[] = [];
    const watch = watchLeader(zookeeper, PATH, (leader) => leaders.push(leader), options);
    let atFirst: unknown[] = [];
    void watch.first.then(() => {
      atFirst = [...leaders];
    });
    const seen = async () => {
      zookeeper.fireWatches();
      await clock.advance(0);
      return leaders.splice(0);
    };
    const token = zookeeper.znodes.get(FIRST)?.stat.createdZxid;
    const one = { id: 'one', isLeader: true, token };
    expect([await seen(), atFirst]).toEqual([[one], [one]]);
    zookeeper.put(`${PATH}/_c_b-latch-0000000001`, 'two', 'b');
    zookeeper.put(`${PATH}/other`, '', undefined);
    expect(await seen()).toEqual([]);
    zookeeper.znodes.delete(FIRST);
    expect(await seen()).toMatchObject([{ id: 'two' }]);
    zookeeper.znodes.delete(`${PATH}/_c_b-latch-0000000001`);
    expect(await seen()).toEqual([undefined]);
    expect(await seen()).toEqual([]);
    watch.close();
    expect(zookeeper.watches.size).toBe(0);
  });

  it.each(['closed', 'overtaken', 'gone', 'refused'])(
    'are not notified of a leader whose read is %s',
    async (how) => {
      const { clock, zookeeper, options } = scene();
      const leaders: unknown[] = [];
      const watch = watchLeader(zookeeper, PATH, (leader) => leaders.push(leader?.id), options);
      zookeeper.fault = async (operation) => {
        if (operation !== 'read') return;
        if (how === 'refused') throw fails('no-auth', 'not-applied');
        zookeeper.fault = undefined;
        await clock.sleep(10);
      };
      zookeeper.fireWatches();
      await clock.advance(0);
      if (how === 'closed') watch.close();
      if (how === 'gone' || how === 'overtaken') zookeeper.znodes.delete(FIRST);
      if (how === 'overtaken') zookeeper.put(FIRST.replace('000', '001'), 'two', 'b');
      if (how === 'overtaken') zookeeper.fireWatches();
      await clock.advance(20);
      expect(leaders).toEqual(how === 'overtaken' ? ['two'] : []);
    },
  );

  it('do not wait without end where ZooKeeper is away', async () => {
    const { clock, zookeeper, options } = scene();
    zookeeper.fault = () => Promise.reject(fails('connection-loss', 'not-applied'));
    let outcome: unknown;
    participants(zookeeper, PATH, options).catch((error) => {
      outcome = error;
    });
    await clock.advance(60_000);
    expect(outcome).toMatchObject({
      code: 'WAIT_TIMEOUT',
      message: `scripted: ${PATH} could not be read within 5000 ms`,
    });
  });

  it('are notified of a leader also where the session ends while that is being read', async () => {
    const { clock, zookeeper, options } = scene();
    let failures = 0;
    zookeeper.fault = async (operation) => {
      if (operation === 'read' && failures++ === 0) throw fails('session-expired', 'not-applied');
    };
    const leaders: (string | undefined)[] = [];
    const watch = watchLeader(zookeeper, PATH, (leader) => leaders.push(leader?.id), options);
    zookeeper.fireWatches();
    await clock.advance(10_000);
    watch.close();
    expect(leaders).toEqual(['one']);
  });
});
