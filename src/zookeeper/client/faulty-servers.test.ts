import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { systemClock as clock, systemRandom as random } from '../../core/base/system.js';
import type { SessionState } from './session-state.js';
import { openZooKeeper, type ZooKeeperClient, type ZooKeeperOptions } from './zookeeper-client.js';

// Servers that do what real ones do not do on demand. What they say is the protocol's own, byte for byte.

const OP = { create: 1, exists: 3, getData: 4, multi: 14, auth: 100, close: -11 } as const;
const NO_NODE = -101;

/** One request as the server reads it. */
interface Request {
  readonly xid: number;
  readonly type: number;
  readonly body: Buffer;
  readonly socket: Socket;
  /** How many connections came before this one. */
  readonly connection: number;
}

interface Script {
  /** Answers a request for a session. @default grants one */
  readonly onConnect?: (socket: Socket, connection: number, request: Buffer) => void;
  /** Answers a request; undefined for the default: everything exists not. */
  readonly onRequest?: (request: Request) => Buffer | undefined | 'silence';
}

const SESSION_ID = Buffer.from('0123456789abcdef', 'hex');
const servers: Server[] = [];
const sockets = new Set<Socket>();
const clients: ZooKeeperClient[] = [];

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

async function scriptedServer({
  onConnect = (socket) => socket.write(granted()),
  onRequest = () => undefined,
}: Script = {}): Promise<number> {
  let connections = 0;
  const server = createServer((socket) => {
    const connection = connections;
    connections += 1;
    sockets.add(socket);
    let rest = Buffer.alloc(0);
    let isAsked = false;
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length >= 4 && rest.length >= rest.readInt32BE(0) + 4) {
        const frame = rest.subarray(4, rest.readInt32BE(0) + 4);
        rest = rest.subarray(frame.length + 4);
        if (!isAsked) {
          isAsked = true;
          onConnect(socket, connection, frame);
          continue;
        }
        const request = {
          xid: frame.readInt32BE(0),
          type: frame.readInt32BE(4),
          body: frame.subarray(8),
          socket,
          connection,
        };
        const reply =
          onRequest(request) ??
          (request.type === OP.auth
            ? 'silence'
            : answer(request.xid, request.type === OP.close ? 0 : NO_NODE));
        if (reply !== 'silence') socket.write(reply);
        if (request.type === OP.close) socket.end();
      }
    });
  });
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const frame = (...parts: Buffer[]) => Buffer.concat([int(Buffer.concat(parts).length), ...parts]);
const expired = () => frame(int(0), int(0), Buffer.alloc(8), int(16), Buffer.alloc(16), Buffer.from([0]));
const granted = (timeoutMs = 3_000) =>
  frame(int(0), int(timeoutMs), SESSION_ID, int(16), Buffer.alloc(16, 7), Buffer.from([0]));
const answer = (xid: number, code: number, payload = Buffer.alloc(0)) =>
  frame(int(xid), long(1n), int(code), payload);
const event = (type: number, path: string) =>
  frame(int(-1), long(-1n), int(0), int(type), int(3), int(Buffer.byteLength(path)), Buffer.from(path));

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function long(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

function open(
  connect: string,
  options: Partial<ZooKeeperOptions> = {},
): { client: ZooKeeperClient; states: SessionState['status'][] } {
  const client = openZooKeeper({
    connect,
    clock,
    random,
    sessionTimeoutMs: 3_000,
    operationTimeoutMs: 5_000,
    ...options,
  });
  clients.push(client);
  const states: SessionState['status'][] = [];
  client.onState(({ status }) => states.push(status));
  return { client, states };
}

describe('a server', () => {
  it.each([
    [-119, 'the server is read-only'],
    [-122, 'the request has waited too long at the server'],
    [-125, 'the quota of a parent is used up'],
    [-127, 'the server is overloaded and has dropped the request'],
    [-4242, 'the server refused it for a reason that has no name here (code -4242)'],
  ])(
    'may answer with the code %i, which the library does not know: the reason has a name',
    async (code, reason) => {
      const port = await scriptedServer({
        onRequest: ({ xid, type }) => (type === OP.getData ? answer(xid, code) : undefined),
      });
      const { client, states } = open(`127.0.0.1:${port}`);
      await expect(client.read('/a')).rejects.toMatchObject({
        fault: 'refused',
        outcome: 'not-applied',
        path: '/a',
        message: expect.stringContaining(`read /a: ${reason} (refused)`),
      });
      expect(await client.children('/a')).toBeUndefined();
      expect(states).toEqual(['connected']);
    },
  );

  it('may refuse an operation of a transaction with a code that the library does not know', async () => {
    const refusal = Buffer.concat([
      int(-1),
      Buffer.from([0]),
      int(-125),
      int(-125),
      int(-1),
      Buffer.from([1]),
      int(-1),
    ]);
    const port = await scriptedServer({
      onRequest: ({ xid, type, connection }) =>
        type === OP.multi && connection === 0 ? answer(xid, 0, refusal) : undefined,
    });
    const { client } = open(`127.0.0.1:${port}`);
    const multi = client.multi([{ type: 'set', path: '/a', data: 'x' }]);
    await expect(multi).rejects.toMatchObject({
      fault: 'refused',
      outcome: 'not-applied',
      message: expect.stringContaining('the quota of a parent is used up'),
    });
    expect(await client.read('/a')).toBeUndefined();
  });

  it.each([
    [{ type: 'check', path: '/a' }, 'not-applied'],
    [{ type: 'remove', path: '/a' }, 'unknown'],
  ] as const)(
    'may break the connection at a transaction: after %o the outcome is %s',
    async (operation, outcome) => {
      const port = await scriptedServer({
        onRequest: ({ socket, type }) => {
          if (type !== OP.multi) return undefined;
          socket.destroy();
          return 'silence';
        },
      });
      const { client } = open(`127.0.0.1:${port}`);
      await expect(client.multi([operation])).rejects.toMatchObject({ fault: 'connection-loss', outcome });
    },
  );

  it('may send events that the library does not know', async () => {
    const port = await scriptedServer({
      onRequest: ({ socket, type }) => {
        if (type === OP.getData)
          socket.write(Buffer.concat([event(5, '/a'), event(-1, ''), event(99, '/a')]));
        return undefined;
      },
    });
    const { client, states } = open(`127.0.0.1:${port}`);
    expect(await client.read('/a')).toBeUndefined();
    expect(await client.read('/a')).toBeUndefined();
    expect(states).toEqual(['connected']);
  });

  it('may send a great many messages at once', async () => {
    const pings = Buffer.concat(Array.from({ length: 30_000 }, () => frame(int(-2), long(0n), int(0))));
    const port = await scriptedServer({
      onRequest: ({ socket, type }) => {
        if (type === OP.getData) socket.write(pings);
        return undefined;
      },
    });
    const { client, states } = open(`127.0.0.1:${port}`);
    expect(await client.read('/a')).toBeUndefined();
    expect(states).toEqual(['connected']);
  });

  it('may break the connection in the middle of a message, which is not taken for the beginning of the next one', async () => {
    let connections = 0;
    const port = await scriptedServer({
      onConnect: (socket) => {
        connections += 1;
        socket.write(granted());
      },
      onRequest: ({ socket, type, connection }) => {
        if (type !== OP.getData || connection > 0) return undefined;
        socket.end(answer(0, NO_NODE).subarray(0, 9));
        return 'silence';
      },
    });
    const { client } = open(`127.0.0.1:${port}`);
    await expect(client.read('/a')).rejects.toMatchObject({ fault: 'connection-loss' });
    expect(await client.read('/a')).toBeUndefined();
    expect(connections).toBe(2);
  });

  it('may accept the connection and never answer: the next server is tried in time', async () => {
    const deaf = await scriptedServer({ onConnect: () => {} });
    const good = await scriptedServer();
    // Whichever is tried first: several clients, so that some begin with the deaf one.
    const all = Array.from({ length: 8 }, () => open(`127.0.0.1:${deaf},127.0.0.1:${good}`).client);
    for (const state of await Promise.all(all.map((client) => client.whenConnected())))
      expect(state.server).toBe(`127.0.0.1:${good}`);
  });

  it('may accept the connection and never answer: when it is the only one, the time-out says so', async () => {
    const port = await scriptedServer({ onConnect: () => {} });
    const { client } = open(`127.0.0.1:${port}`, { sessionTimeoutMs: 1_500 });
    const message = `127.0.0.1:${port}: no session within 500 ms`;
    await expect.poll(() => client.state).toMatchObject({ problem: message });
    await expect(client.whenConnected({ timeoutMs: 50 })).rejects.toMatchObject({
      fault: 'timeout',
      cause: expect.objectContaining({ message }),
    });
  });

  it('may be silent: the connection is given up before the session is lost, and the session continues over the next one', async () => {
    const time = new VirtualClock();
    const port = await scriptedServer({
      onConnect: (socket) => socket.write(granted(3_000)),
      onRequest: ({ connection }) => (connection === 0 ? 'silence' : undefined),
    });
    const { client, states } = open(`127.0.0.1:${port}`, { clock: time });
    // Also an attempt without a pause waits for the clock once.
    await expect.poll(() => time.advance(0).then(() => states)).toEqual(['connected']);
    await time.advance(2_000);
    expect(states.slice(0, 2)).toEqual(['connected', 'suspended']);
    // The next connection is a real one, which takes no virtual time but that of the pause before it.
    await expect
      .poll(() => time.advance(20).then(() => states))
      .toEqual(['connected', 'suspended', 'connected']);
    expect(time.monotonic()).toBeLessThan(3_000);
    expect(client.state).toMatchObject({ sessionId: '0123456789abcdef' });
  });

  it('may speak another protocol: the time-out says so', async () => {
    const port = await scriptedServer({
      onConnect: (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
    });
    const { client } = open(`127.0.0.1:${port}`);
    const message = `127.0.0.1:${port}: it does not speak the protocol of ZooKeeper`;
    await expect.poll(() => client.state).toMatchObject({ problem: message });
    await expect(client.read('/a', { timeoutMs: 50 })).rejects.toMatchObject({
      fault: 'timeout',
      outcome: 'not-applied',
      cause: expect.objectContaining({ message }),
    });
  });

  it('may refuse the credentials: current calls fail with that, later ones with the reason for the missing connection', async () => {
    const port = await scriptedServer({
      onRequest: ({ type, socket }) => {
        if (type === OP.auth) socket.write(frame(int(-4), long(0n), int(-115)));
        return 'silence';
      },
    });
    const { client, states } = open(`127.0.0.1:${port}`, { auth: 'digest:app:s3cret' });
    await expect(client.create('/a', '', 'ephemeral')).rejects.toMatchObject({
      fault: 'auth-failed',
      outcome: 'unknown',
    });
    await expect.poll(() => states.slice(0, 4)).toEqual(['connected', 'suspended', 'expired', 'connecting']);
    const again = states.length;
    await clock.sleep(300);
    // With pauses that grow, not in a tight loop: at 4 states a session.
    expect(states.length - again).toBeLessThan(30);
    expect(client.state).toMatchObject({ problem: expect.stringContaining('the credentials are refused') });
  });

  it('gets the credentials once, however many attempts it took to connect', async () => {
    let auths = 0;
    const port = await scriptedServer({
      onConnect: (socket, connection) => (connection < 3 ? socket.end() : socket.write(granted())),
      onRequest: ({ type }) => {
        if (type === OP.auth) auths += 1;
        return undefined;
      },
    });
    const { client } = open(`127.0.0.1:${port}`, { auth: 'digest:app:s3cret' });
    expect(await client.read('/a')).toBeUndefined();
    expect(auths).toBe(1);
  });

  it('may say that the session has moved: the write was not applied, and the session continues over another connection', async () => {
    const port = await scriptedServer({
      onRequest: ({ xid, type, connection }) => {
        if (type !== OP.create) return undefined;
        return connection === 0
          ? answer(xid, -118)
          : answer(xid, 0, Buffer.concat([int(2), Buffer.from('/a')]));
      },
    });
    const { client, states } = open(`127.0.0.1:${port}`);
    await expect(client.create('/a', '', 'ephemeral')).rejects.toMatchObject({
      fault: 'connection-loss',
      outcome: 'not-applied',
      transient: true,
    });
    expect(await client.create('/a', '', 'ephemeral')).toBe('/a');
    expect(states).toEqual(['connected', 'suspended', 'connected']);
  });

  it('never gets a write that was given up with the connection before it was sent', async () => {
    const created: number[] = [];
    const port = await scriptedServer({
      // Soon left for its silence; the next connection is not.
      onConnect: (socket, connection) => socket.write(granted(connection === 0 ? 900 : 30_000)),
      onRequest: ({ type, socket, connection }) => {
        if (type === OP.create) created.push(connection);
        // Reads no more: what the client sends from here on waits in its own memory.
        if (type === OP.getData && connection === 0) socket.pause();
        return undefined;
      },
    });
    const { client } = open(`127.0.0.1:${port}`);
    const stuck = client.read('/stop').catch(() => undefined);
    const writes = Array.from({ length: 60 }, (_, i) =>
      client.create(`/w${i}`, 'x'.repeat(900_000), 'ephemeral'),
    );
    const results = await Promise.allSettled([...writes, stuck]);
    expect(results.slice(0, 60).every(({ status }) => status === 'rejected')).toBe(true);
    await client.whenConnected();
    expect(await client.read('/go')).toBeUndefined();
    expect(created.filter((connection) => connection > 0)).toEqual([]);
  });

  it('may not answer a call that is reason enough to reconnect: the session continues over the next connection at once', async () => {
    const port = await scriptedServer({
      onRequest: ({ connection, type }) => (connection === 0 && type === OP.getData ? 'silence' : undefined),
    });
    const { client, states } = open(`127.0.0.1:${port}`, { sessionTimeoutMs: 30_000 });
    await client.whenConnected();
    await expect(client.read('/a', { timeoutMs: 100 })).rejects.toMatchObject({ fault: 'timeout' });
    await clock.sleep(50);
    expect(states).toEqual(['connected']);
    const silent = client.read('/b', { timeoutMs: 5_000 });
    const lost = expect(silent).rejects.toMatchObject({
      fault: 'connection-loss',
      message: expect.stringContaining('no answer within 100 ms'),
    });
    await expect(client.read('/a', { timeoutMs: 100, reconnectOnTimeout: true })).rejects.toMatchObject({
      fault: 'timeout',
    });
    await lost;
    expect(await client.read('/a', { timeoutMs: 5_000, reconnectOnTimeout: true })).toBeUndefined();
    expect(states).toEqual(['connected', 'suspended', 'connected']);
    expect(client.state).toMatchObject({ sessionId: '0123456789abcdef' });
  });

  it('is not left because of an answer that waited in the socket while this process was paused', async () => {
    const port = await scriptedServer({
      onRequest: ({ type }) => {
        // In the same process: the answer is on its way before nothing runs here for longer than the call may
        // take.
        if (type === OP.getData)
          setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400));
        return undefined;
      },
    });
    const { client, states } = open(`127.0.0.1:${port}`);
    await client.whenConnected();
    const call = client.read('/a', { timeoutMs: 200, reconnectOnTimeout: true }).catch(() => undefined);
    await call;
    await clock.sleep(100);
    expect(states).toEqual(['connected']);
  });

  it('may end every session: a client that is closed in the pause before the next one does not wait for a connection', async () => {
    const port = await scriptedServer({
      onConnect: (socket, connection) => socket.end(connection % 2 === 0 ? granted() : expired()),
    });
    const time = new VirtualClock();
    const { client, states } = open(`127.0.0.1:${port}`, { clock: time });
    let closing: Promise<void> | undefined;
    client.onState(({ status }) => {
      if (status === 'connecting' && states.filter((each) => each === 'expired').length === 3)
        closing ??= client.close();
    });
    await expect.poll(() => time.advance(200).then(() => closing !== undefined)).toBe(true);
    // While the clock does not move.
    await closing;
    expect(states.slice(-2)).toEqual(['connecting', 'closed']);
  });

  it('is told what the client has seen as long as the session may last, by the time-out that was granted', async () => {
    const seen: bigint[] = [];
    const port = await scriptedServer({
      onConnect: (socket, connection, request) => {
        seen.push(request.readBigInt64BE(4));
        if (connection === 0) socket.write(granted(20_000));
        else socket.end();
      },
    });
    const time = new VirtualClock();
    const { client } = open(`127.0.0.1:${port}`, { clock: time, sessionTimeoutMs: 1_000 });
    await expect.poll(() => time.advance(0).then(() => client.state.status)).toBe('connected');
    await client.read('/a');
    for (const socket of sockets) socket.destroy();
    const lostAt = time.monotonic();
    const lastSeen = () => time.advance(500).then(() => seen.at(-1));
    await expect.poll(lastSeen).toBe(0n);
    expect(new Set(seen.slice(1, -1))).toEqual(new Set([1n]));
    expect(time.monotonic() - lostAt).toBeGreaterThan(20_000);
    await Promise.all([client.close(), time.advance(1_000)]);
  });

  it('gets reads of no more than 64 watched znodes at a time', async () => {
    const unanswered: Request[] = [];
    let most = 0;
    const port = await scriptedServer({
      onRequest: (request) => {
        if (request.type === OP.close) return undefined;
        if (unanswered.push(request) === 1) {
          // Once nothing more comes for now, all at once.
          setTimeout(() => {
            most = Math.max(most, unanswered.length);
            for (const { socket, xid } of unanswered.splice(0)) socket.write(answer(xid, NO_NODE));
          }, 20);
        }
        return 'silence';
      },
    });
    const { client } = open(`127.0.0.1:${port}`);
    const watches = Array.from({ length: 300 }, (_, i) => client.watchData(`/n${i}`, () => {}));
    await Promise.all(watches.map(({ first }) => first));
    expect(most).toBe(64);
  });

  it('may refuse a read of a znode: a watch on it repeats the read until it gets an answer', async () => {
    let refusals = 0;
    const port = await scriptedServer({
      onRequest: ({ xid, type }) => {
        if (type !== OP.getData || refusals === 3) return undefined;
        refusals += 1;
        return answer(xid, -102);
      },
    });
    const { client, states } = open(`127.0.0.1:${port}`);
    const reported: unknown[] = [];
    await client.watchData('/a', (znode) => reported.push(znode)).first;
    expect(reported).toEqual([undefined]);
    expect(refusals).toBe(3);
    expect(states).toEqual(['connected']);
  });

  it.each(['watchData', 'watchChildren'] as const)(
    'may refuse to read again what it has shown: %s notifies of that',
    async (watch) => {
      let isRefusing = false;
      const port = await scriptedServer({
        onRequest: ({ xid, type }) => (isRefusing && type !== OP.close ? answer(xid, -102) : undefined),
      });
      const { client } = open(`127.0.0.1:${port}`);
      const refused = new Promise((resolve) => {
        const onShown = () => {
          isRefusing = true;
          for (const socket of sockets) socket.destroy();
        };
        client[watch]('/a', onShown, resolve);
      });
      expect(await refused).toBe('/a');
    },
  );

  it('may close every connection at once: it gets no more than a few attempts a second', async () => {
    let connections = 0;
    const port = await scriptedServer({
      onConnect: (socket) => {
        connections += 1;
        socket.end();
      },
    });
    const { client } = open(`127.0.0.1:${port}`);
    await expect.poll(() => connections).toBeGreaterThan(2);
    await expect(client.read('/a', { timeoutMs: 200 })).rejects.toMatchObject({
      cause: expect.objectContaining({ message: expect.stringContaining('it may have no quorum') }),
    });
    expect(connections).toBeLessThan(10);
  });

  it('may confirm the session and close the connection every time: it gets no more than a few attempts a second, and counts as connected once', async () => {
    let connections = 0;
    const port = await scriptedServer({
      onConnect: (socket) => {
        connections += 1;
        socket.end(granted());
      },
    });
    const { states } = open(`127.0.0.1:${port}`);
    await expect.poll(() => connections).toBeGreaterThan(4);
    await clock.sleep(200);
    expect(connections).toBeLessThan(20);
    expect(states.slice(0, 3)).toEqual(['connected', 'suspended']);
  });

  it('may let in authenticated sessions only: the reason outlasts the closed connection, and the state is one', async () => {
    let connections = 0;
    const port = await scriptedServer({
      onRequest: ({ xid, type, socket, connection }) => {
        connections = connection + 1;
        if (type === OP.auth || type === OP.close) return undefined;
        socket.end(answer(xid, -124));
        return 'silence';
      },
    });
    const { client } = open(`127.0.0.1:${port}`);
    const problems = new Set<string | undefined>();
    const states: string[] = [];
    client.onState((state) => {
      states.push(state.status);
      if ('problem' in state) problems.add(state.problem);
    });
    const why = 'the servers want SASL, which nodelease does not speak, or a digest (--zookeeper-auth)';
    const calls = await Promise.allSettled([client.read('/a'), client.read('/b')]);
    const messages = calls.map((call) => call.status === 'rejected' && String(call.reason));
    expect(messages).toEqual([
      expect.stringContaining(`read /a: ${why} (auth-failed)`),
      expect.stringContaining(`read /b: 127.0.0.1:${port}: ${why} (connection-loss)`),
    ]);
    await expect.poll(() => connections).toBeGreaterThan(3);
    expect([...problems]).toEqual([`127.0.0.1:${port}: ${why}`]);
    expect(states).toEqual(['connected', 'suspended']);
  });

  it('may reset connections, or close them: that is one problem', async () => {
    let connections = 0;
    const port = await scriptedServer({
      onConnect: (socket, connection) => {
        connections = connection + 1;
        if (connection % 2 === 0) socket.end();
        else socket.resetAndDestroy();
      },
    });
    const { client } = open(`127.0.0.1:${port}`);
    const problems: unknown[] = [];
    client.onState((state) => problems.push('problem' in state && state.problem));
    await expect.poll(() => connections).toBeGreaterThan(3);
    expect(problems).toEqual([expect.stringContaining('closed the connection without a session')]);
  });
});

describe('the requests of one turn of the event loop', () => {
  const pathOf = ({ body }: Request) => body.subarray(4, 4 + body.readInt32BE(0)).toString();

  it('go out in one write, in the order of the calls, and those for watches after them', async () => {
    const asked: string[] = [];
    const port = await scriptedServer({
      onRequest: (request) => {
        if (request.type !== OP.close) asked.push(pathOf(request));
        return undefined;
      },
    });
    const { client } = open(`127.0.0.1:${port}`);
    await client.whenConnected();
    const socket = [...sockets].at(-1) as Socket;
    let writes = 0;
    socket.on('data', () => {
      writes += 1;
    });
    const watch = client.watchData('/watched', () => {});
    const calls = Array.from({ length: 20 }, (_, i) =>
      i % 2 === 0 ? client.read(`/${i}`) : client.create(`/${i}`, 'x', 'ephemeral'),
    );
    await Promise.allSettled([...calls, watch.first]);
    // After "no such znode" the watch asks for its making.
    expect(asked).toEqual([...Array.from({ length: 20 }, (_, i) => `/${i}`), '/watched', '/watched']);
    expect(writes).toBe(2);
  });

  it('reach the server before the end of a session that is closed in the same turn, and that end is written at once', async () => {
    const asked: number[] = [];
    const port = await scriptedServer({
      onRequest: ({ type }) => {
        asked.push(type);
        return undefined;
      },
    });
    let own: Socket | undefined;
    const onSocket = (message: unknown) => {
      own = (message as { readonly socket: Socket }).socket;
    };
    subscribe('net.client.socket', onSocket);
    const { client } = open(`127.0.0.1:${port}`);
    await client.whenConnected();
    unsubscribe('net.client.socket', onSocket);
    const before = own?.bytesWritten;
    const created = client.create('/a', '', 'ephemeral');
    expect(own?.bytesWritten).toBe(before);
    const closed = client.close();
    // A process may exit now.
    expect(own?.bytesWritten).toBeGreaterThan(before as number);
    expect(own?.writableLength).toBe(0);
    await expect(created).rejects.toMatchObject({ fault: 'closed', outcome: 'unknown' });
    await closed;
    expect(asked).toEqual([OP.create, OP.close]);
  });
});
