import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { type DnsServer, startDnsServer } from './dns-server.js';
import type { Reply } from './message.js';

const opened: { close?(): void; destroy?(): void }[] = [];

afterEach(() => {
  for (const each of opened.splice(0)) (each.close ?? each.destroy)?.call(each);
});

const REPLY: Reply = { type: 'A', code: 'NOERROR', bytes: Buffer.from('reply'), truncated: false };

async function start(clock: VirtualClock, received: (query: string) => void = () => {}): Promise<DnsServer> {
  const server = await startDnsServer({
    ...{ at: { host: '127.0.0.1', port: 0 }, label: 'at', clock },
    reply: (query) => {
      received(query.toString());
      return REPLY;
    },
  });
  opened.push(server);
  return server;
}

async function openedTo(server: DnsServer): Promise<Socket> {
  const socket = connect(server.address);
  opened.push(socket);
  // It may be closed while it writes.
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Sends a whole query, and resolves to its reply. */
async function answered(socket: Socket): Promise<string> {
  const data = once(socket, 'data');
  socket.write(Buffer.from('\0\x01q'));
  return String((await data)[0]);
}

describe('DNS by TCP', () => {
  it('closes a connection whose message is not whole after ten seconds, however often a byte of it comes', async () => {
    const clock = new VirtualClock();
    const server = await start(clock);
    const socket = await openedTo(server);
    // The reply shows that the server serves the connection: its next message is due from now on.
    expect(await answered(socket)).toBe('\0\x05reply');
    socket.write('\xff\xff', 'latin1');
    let isClosed = false;
    socket.once('close', () => {
      isClosed = true;
    });
    await clock.advance(10_000);
    while (!isClosed) {
      socket.write('x');
      await setImmediate();
    }
  });

  it('answers a client beyond the limit of connections: the oldest one without a whole message makes room', async () => {
    const server = await start(new VirtualClock());
    const slow: Socket[] = [];
    for (let count = 0; count < 256; count += 1) {
      const socket = await openedTo(server);
      socket.write('\0');
      slow.push(socket);
    }
    const [oldest, second] = slow as [Socket, Socket];
    // It has asked a question since, so that the second one is the oldest.
    oldest.write('\x01q');
    await once(oldest, 'data');
    const closed = once(second, 'close');
    expect(await answered(await openedTo(server))).toBe('\0\x05reply');
    await closed;
    expect(await answered(oldest)).toBe('\0\x05reply');
  });
});
