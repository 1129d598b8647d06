import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { RequestLimiter } from './request-limiter.js';

class FakeSocket extends EventEmitter {
  destroyed = false;

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

let limiter: RequestLimiter;
let sockets: (FakeSocket & Socket)[];
const open = (): FakeSocket & Socket => {
  const socket = new FakeSocket() as FakeSocket & Socket;
  sockets.push(socket);
  limiter.opened(socket);
  return socket;
};
/** A request; the answer ends with `close`. */
const ask = (socket: Socket, isHealthCheck = false) => {
  const response = new EventEmitter();
  const admission = limiter.admit(
    { socket } as IncomingMessage,
    response as unknown as ServerResponse,
    isHealthCheck,
  );
  return { admission, end: () => response.emit('close') };
};
const use = (socket: Socket) => ask(socket).end();
const gone = () => sockets.flatMap(({ destroyed }, index) => (destroyed ? [index] : []));

beforeEach(() => {
  sockets = [];
  limiter = new RequestLimiter({ connections: 4, requests: 3, requestsPerConnection: 2 });
});

describe('when connections run short, the one is closed', () => {
  it('that has been open for longest without a request', () => {
    for (let i = 0; i < 7; i += 1) open();
    expect(gone()).toEqual([0, 1, 2, 3]);
  });

  it('whose last request ended longest ago', () => {
    const [first, second, third] = [open(), open(), open()];
    for (const socket of [second, first, third]) use(socket);
    open();
    expect(gone()).toEqual([1]);
  });

  it('that was never used, where there are many such, so that clients that ask again and again keep theirs', () => {
    use(open());
    for (let i = 0; i < 6; i += 1) open();
    expect(gone()).toEqual([1, 2, 3, 4]);
  });

  it('that has no request under way, however old the others are', () => {
    const busy = open();
    ask(busy).end();
    const { end } = ask(busy);
    for (let i = 0; i < 5; i += 1) open();
    expect(gone()).toEqual([1, 2, 3]);
    end();
    for (const socket of sockets) if (!socket.destroyed) use(socket);
    for (let i = 0; i < 2; i += 1) open();
    expect(gone()).toContain(0);
  });
});

describe('no connection is closed', () => {
  it('while there is room for another one, which the ended ones leave behind', () => {
    for (let i = 0; i < 3; i += 1) open();
    for (const socket of sockets.slice()) socket.emit('close');
    for (let i = 0; i < 3; i += 1) open();
    expect(gone()).toEqual([]);
  });

  it('where each has a request under way: not even the new one', () => {
    for (let i = 0; i < 3; i += 1) ask(open(), true);
    open();
    expect(gone()).toEqual([]);
  });

  it('for the end of a request of one that has gone', () => {
    const socket = open();
    const { end } = ask(socket);
    expect(limiter.isBusy(socket)).toBe(true);
    socket.destroy();
    end();
    expect(limiter.isBusy(socket)).toBe(false);
    for (let i = 0; i < 3; i += 1) open();
    expect(gone()).toEqual([0]);
  });
});

describe('a request', () => {
  it('is refused while too many are under way, unless it is a health check', () => {
    const [first, second] = [open(), open()];
    const answers = [ask(first), ask(first), ask(second)];
    expect(answers.map(({ admission }) => admission)).toEqual(['admitted', 'admitted', 'admitted']);
    const third = open();
    expect(ask(third, true).admission).toBe('admitted');
    const { admission, end } = ask(third);
    expect(admission).toBe('refused');
    // Its refusal, and those of the first connection, leave room again.
    end();
    first.destroy();
    expect(ask(second).admission).toBe('admitted');
  });

  it('is dropped with its connection where that has too many under way, and so is what was read of it before', () => {
    const socket = open();
    ask(socket, true);
    ask(socket, true);
    expect([ask(socket, true).admission, socket.destroyed, ask(socket, true).admission]).toEqual([
      'dropped',
      true,
      'dropped',
    ]);
  });

  it('counts no longer when its connection has gone, also where its answer waited for another one', () => {
    for (let round = 0; round < 3; round += 1) {
      const socket = open();
      ask(socket);
      ask(socket);
      socket.destroy();
    }
    expect(ask(open()).admission).toBe('admitted');
  });
});
