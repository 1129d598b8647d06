import { EventEmitter, getEventListeners } from 'node:events';
import type { Pool } from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { PostgresCluster } from './postgres-cluster.js';
import { PostgresLeaseStore } from './postgres-lease-store.js';
import * as statements from './statements.js';

type Statement = keyof typeof statements;

/** What a server does with a statement. Rows, unless it throws, or never answers. */
type Script = (statement: Statement, values: readonly unknown[]) => object[] | Promise<object[]>;

const ROW = { key: null, now: 1_000, age: 0, pid: 7 };

class ScriptedClient extends EventEmitter {
  readonly processID: number;
  released: 'kept' | 'destroyed' | undefined;

  constructor(private readonly server: ScriptedServer) {
    super();
    this.processID = server.processID;
  }

  async query(sql: string, values: readonly unknown[] = []): Promise<{ rows: object[] }> {
    this.released = undefined;
    const [name] = Object.entries(statements).find(([, text]) => text === sql) ?? [sql.slice(0, 6)];
    this.server.log.push(name);
    if (name === 'LISTEN' || name === 'SELECT') return { rows: [ROW] };
    return { rows: await this.server.script(name as Statement, values) };
  }

  release(destroy = false): void {
    this.released = destroy ? 'destroyed' : 'kept';
    if (!destroy) this.server.idle.push(this);
  }
}

class ScriptedServer {
  log: string[] = [];
  idle: ScriptedClient[] = [];
  clients: ScriptedClient[] = [];
  script: Script = (statement) => (statement === 'NOTIFY' ? [] : [{ ...ROW, etag: 'new' }]);
  onConnect = async (): Promise<void> => undefined;
  processID = ROW.pid;
  readonly pool = {
    ending: false,
    connect: async () => {
      await this.onConnect();
      const idle = this.idle.pop();
      if (idle !== undefined) return idle;
      const client = new ScriptedClient(this);
      this.clients.push(client);
      return client;
    },
    end: async () => {
      this.pool.ending = true;
    },
  };
}

const url = 'postgres://orders@a:5432,b:5432/leases/fleet';
const never = () => new Promise<never>(() => undefined);
const refuse = (code: string) => () => {
  throw Object.assign(new Error('no'), { severity: 'ERROR', code });
};

let clock: VirtualClock;
let a: ScriptedServer;
let b: ScriptedServer;
let store: PostgresLeaseStore;

beforeEach(() => {
  clock = new VirtualClock();
  [a, b] = [new ScriptedServer(), new ScriptedServer()];
  const pools = [a, b].map(({ pool }, i) => Object.assign(pool, { options: { host: 'ab'[i], port: 5432 } }));
  const options = { prefix: 'fleet', clock, requestTimeoutMs: 5_000 };
  store = new PostgresLeaseStore(url, options, new PostgresCluster(options, pools as unknown as Pool[]));
});

describe('a write', () => {
  it('notifies waiting tasks afterwards, by a statement whose failure is none of the write', async () => {
    const values: (readonly unknown[])[] = [];
    a.script = (statement, given) => {
      values.push(given);
      return statement === 'NOTIFY' ? refuse('XX000')() : [{ ...ROW, etag: 'new' }];
    };
    expect(await store.create('7.json', 'é', { version: '1' })).toMatchObject({ status: 'written' });
    await store.close();
    expect(a.log).toEqual(['CREATE', 'NOTIFY']);
    expect(values[0]).toEqual([
      'fleet',
      '7.json',
      expect.stringMatching(/^[\da-f-]{36}$/),
      'é',
      '{"version":"1"}',
      undefined,
    ]);
    expect(values[1]).toEqual([expect.stringMatching(/^nodelease:[\w-]{43}$/), '{"key":"7.json","size":2}']);
    expect(a.pool.ending && b.pool.ending).toBe(true);
  });

  it('has one notification at a time under way, and none is left when the store is closed', async () => {
    let under = 0;
    let most = 0;
    a.script = async (statement) => {
      if (statement !== 'NOTIFY') return [ROW];
      most = Math.max(most, ++under);
      await clock.sleep(100);
      under -= 1;
      return [];
    };
    for (const key of ['1.json', '2.json', '3.json']) await store.create(key, 'x', {});
    const closing = store.close();
    await clock.advance(300);
    await closing;
    expect([most, a.log.filter((name) => name === 'NOTIFY').length]).toEqual([1, 3]);
  });

  it('creates the table where there is none, also where another task is just creating it', async () => {
    for (const code of [undefined, '23505', '42710']) {
      let exists = false;
      a.script = (statement) => {
        if (statement === 'CREATE_TABLE') exists = true;
        if (statement === 'CREATE_TABLE' && code !== undefined) refuse(code)();
        return exists ? [ROW] : refuse('42P01')();
      };
      expect(await store.create('7.json', 'x', {})).toMatchObject({ status: 'written' });
    }
  });

  it('says what right is missing where there is no table and it may create none, as reads do', async () => {
    a.script = (statement) => refuse(statement === 'CREATE_TABLE' ? '42501' : '42P01')();
    for (const call of [() => store.create('7.json', 'x', {}), () => store.list(), () => store.epoch()])
      await expect(call()).rejects.toThrow(/and where there is none CREATE on the schema/);
  });

  it('may have taken as long as its answer: the time of the store is one of an interval', async () => {
    a.script = async (statement) => {
      if (statement === 'CREATE') await clock.sleep(300);
      return [ROW];
    };
    const writing = store.create('7.json', 'x', {});
    await clock.advance(300);
    expect(await writing).toMatchObject({ storeTime: { min: 1_000, max: 1_300 } });
  });
});

describe('a write whose wait for a synchronous standby is cancelled', () => {
  const cancelled = () => {
    for (const client of a.clients)
      client.emit('notice', {
        severity: 'WARNING',
        code: '01000',
        routine: 'SyncRepWaitForLSN',
        message: 'canceling wait',
      });
    return [ROW];
  };

  it('has an unknown outcome, though the server reports success', async () => {
    a.script = cancelled;
    await expect(store.create('7.json', 'x', {})).rejects.toMatchObject({
      outcome: 'unknown',
      fault: 'unavailable',
      message: `${url}: creating 7.json: a:5432 has given up the wait for its synchronous standby, which may lack the write (01000: canceling wait)`,
    });
    expect(a.log).toEqual(['CREATE']);
  });

  it('is not proved by what is read before the standby has it', async () => {
    a.script = cancelled;
    await expect(store.create('7.json', 'x', {})).rejects.toThrow();
    b.script = (statement) => (statement === 'BARRIER' ? refuse('57014')() : [{ ...ROW, key: '7.json' }]);
    a.script = b.script;
    await expect(store.read('7.json')).rejects.toMatchObject({ outcome: 'not-applied' });
    b.script = () => [{ ...ROW, key: '7.json' }];
    a.script = b.script;
    a.log = [];
    b.log = [];
    expect(await store.read('7.json')).toMatchObject({ key: '7.json' });
    expect(await store.list()).toMatchObject({ objects: [{ key: '7.json' }] });
    expect([...a.log, ...b.log]).toEqual(['BARRIER', 'READ', 'LIST']);
  });

  it('is another one than that of which the server warns for other reasons', async () => {
    a.script = () => {
      for (const client of a.clients) client.emit('notice', { routine: 'other' });
      return [ROW];
    };
    expect(await store.create('7.json', 'x', {})).toMatchObject({ status: 'written' });
    expect(a.clients[0]?.listenerCount('notice')).toBe(0);
  });
});

describe('a statement without an answer', () => {
  it('is given up, and its connection is never used again', async () => {
    a.script = never;
    const given = new AbortController();
    const writing = store
      .replace('7.json', 'x', {}, 'etag', { signal: given.signal })
      .catch((error: unknown) => error);
    await clock.advance(5_000);
    expect(await writing).toMatchObject({
      outcome: 'unknown',
      message: `${url}: replacing 7.json: a:5432: no answer within 5000 ms`,
    });
    expect(a.clients.map(({ released }) => released)).toEqual(['destroyed']);
    expect(getEventListeners(given.signal, 'abort')).toHaveLength(0);
    expect(clock.sleepers).toBe(0);
  });

  it('is given up when its signal aborts', async () => {
    a.script = never;
    const given = new AbortController();
    const reading = store.read('7.json', { signal: given.signal }).catch((error: unknown) => error);
    await settled();
    given.abort(new Error('enough'));
    expect(await reading).toMatchObject({ message: `${url}: reading 7.json: given up` });
    expect(a.clients.map(({ released }) => released)).toEqual(['destroyed']);
  });

  it('was not applied where there was no connection yet, which is kept for the next one', async () => {
    a.onConnect = () => clock.sleep(6_000);
    const writing = store.create('7.json', 'x', {}).catch((error: unknown) => error);
    await clock.advance(5_000);
    expect(await writing).toMatchObject({
      outcome: 'not-applied',
      message: `${url}: creating 7.json: a:5432: no answer within 5000 ms`,
    });
    await clock.advance(1_000);
    expect(a.clients.map(({ released }) => released)).toEqual(['kept']);
  });
});

describe('of several servers', () => {
  it.each([
    ['is away', undefined],
    ['is a replica', '55000'],
    ['is a replica', '25006'],
    ['is about to start', '57P03'],
  ])('one that %s is left for the next one, at once and for the next calls (%s)', async (_, code) => {
    if (code === undefined)
      a.onConnect = () => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }));
    else a.script = refuse(code);
    expect(await store.create('7.json', 'x', {})).toMatchObject({ status: 'written' });
    await store.read('7.json');
    await store.close();
    expect(b.log).toEqual(['CREATE', 'NOTIFY', 'READ']);
  });

  it.each(['accepts no connection', 'does not answer'])(
    'one that %s leaves a read to the next one in time',
    async (what) => {
      if (what === 'does not answer') a.script = never;
      else a.onConnect = never;
      const reading = store.read('7.json');
      await clock.advance(2_500);
      expect(await reading).toBeUndefined();
      expect(b.log).toEqual(['READ']);
      expect(clock.sleepers).toBe(0);
    },
  );

  it('one is left that is a replica and has not got the table yet', async () => {
    a.script = (statement) => refuse(statement === 'READ' ? '42P01' : '25006')();
    b.script = () => [{ ...ROW, key: '7.json' }];
    expect(await store.read('7.json')).toMatchObject({ key: '7.json' });
  });

  it('none is asked for a write whose outcome at another one is unknown; later calls ask it', async () => {
    a.script = () => Promise.reject(new Error('Connection terminated unexpectedly'));
    await expect(store.create('7.json', 'x', {})).rejects.toMatchObject({ outcome: 'unknown' });
    expect(b.log).toEqual([]);
    await store.read('7.json');
    expect(b.log).toEqual(['BARRIER', 'READ']);
  });

  it('none is asked twice', async () => {
    [a.script, b.script] = [refuse('57P03'), refuse('57P03')];
    await expect(store.read('7.json')).rejects.toMatchObject({ transient: true });
    expect([a.log, b.log]).toEqual([['READ'], ['READ']]);
  });

  it('none is asked where the answer is the same everywhere', async () => {
    a.script = refuse('42501');
    await expect(store.read('7.json')).rejects.toMatchObject({ fault: 'denied' });
    expect(b.log).toEqual([]);
  });
});

describe('waiting for changes', () => {
  const rows = (...sizes: readonly number[]) =>
    sizes.map((size, id) => ({ ...ROW, key: `${id}.json`, size }));
  const notified = (key: string, size: number) =>
    a.clients[0]?.emit('notification', { payload: JSON.stringify({ key, size }) });
  const waiting = (heed: (size: number | undefined) => boolean) => {
    const given = new AbortController();
    const seen: unknown[] = [];
    const ended = store
      .changed(given.signal, (change) => {
        seen.push(`${change.key} ${change.size}`);
        return heed(change.size);
      })
      .then(
        () => 'woken',
        (error: Error) => error.message,
      );
    return { given, seen, ended };
  };

  it('reports what may have changed before the server listened, and each change after that', async () => {
    a.script = () => [...rows(300, 400), { ...ROW, key: 'cluster.json', size: 99, age: 1 }];
    const { seen, ended } = waiting((size) => size === 8);
    await settled();
    expect(a.log).toEqual(['SELECT', 'LISTEN', 'LIST']);
    notified('1.json', 200);
    notified('key with "blanks"', 8);
    expect(await ended).toBe('woken');
    expect(seen).toEqual(['0.json 300', '1.json 400', '1.json 200', 'key with "blanks" 8']);
  });

  it('is for all tasks over one connection, which ends with the last of them', async () => {
    a.script = () => [ROW];
    const first = waiting(() => false);
    const second = waiting(() => false);
    await settled();
    first.given.abort(new Error('enough'));
    expect(await first.ended).toBe('enough');
    expect(a.clients[0]?.released).toBeUndefined();
    notified('1.json', 200);
    expect(second.seen).toEqual(['1.json 200']);
    second.given.abort(new Error('enough'));
    await second.ended;
    await settled();
    expect(a.clients[0]?.released).toBe('destroyed');
    expect(a.log.filter((name) => name === 'LISTEN')).toHaveLength(1);
    expect(clock.sleepers).toBe(0);
  });

  it('is over one connection, too, for a task that begins as the last one is woken', async () => {
    a.script = () => [ROW];
    const first = waiting((size) => size === 8);
    await settled();
    notified('1.json', 8);
    const second = waiting((size) => size === 9);
    expect(await first.ended).toBe('woken');
    await settled();
    const listening = a.clients.filter(({ released }) => released === undefined);
    expect(listening).toHaveLength(1);
    listening[0]?.emit('notification', { payload: JSON.stringify({ key: '2.json', size: 9 }) });
    expect(await second.ended).toBe('woken');
  });

  it.each([
    ['behind a pooler, which passes no notification on', 8, false],
    ['once the connection is lost', 7, true],
  ])('resolves after a pause %s, so that the task polls', async (_, processID, isLost) => {
    a.script = () => [ROW];
    a.processID = processID;
    const { ended } = waiting(() => false);
    await settled();
    if (isLost) a.clients[0]?.emit('end');
    await settled();
    expect(a.clients[0]?.released).toBe('destroyed');
    await clock.advance(1_199);
    expect(await Promise.race([ended, 'still waiting'])).toBe('still waiting');
    await clock.advance(1);
    expect(await ended).toBe('woken');
    expect(clock.sleepers).toBe(0);
  });

  it('resolves where the connection is lost while the server begins to listen', async () => {
    a.script = () => {
      a.clients[0]?.emit('end');
      return [ROW];
    };
    const { ended } = waiting(() => false);
    await clock.advance(1_200);
    expect(await ended).toBe('woken');
  });

  it('ends with the store', async () => {
    a.script = () => [ROW];
    waiting(() => false);
    await settled();
    await store.close();
    await settled();
    expect(a.clients[0]?.released).toBe('destroyed');
  });
});

it('names what it lists of the stores below it as they are read', async () => {
  const seen: (readonly unknown[])[] = [];
  a.script = (_, values) => {
    seen.push(values);
    return [ROW];
  };
  await store.list({ folders: true });
  await store.read('locks/nightly/0.json');
  expect(seen).toEqual([
    ['fleet', true],
    ['fleet/locks/nightly', '0.json'],
  ]);
});
