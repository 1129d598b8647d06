import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { Connections } from './connections.js';

class FakeSocket extends EventEmitter {
  destroyed = false;

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

let connections: Connections;
let sockets: (FakeSocket & Socket)[];
const open = (): FakeSocket & Socket => {
  const socket = new FakeSocket() as FakeSocket & Socket;
  sockets.push(socket);
  connections.opened(socket);
  return socket;
};
const use = (socket: Socket) => {
  connections.begin(socket);
  connections.end(socket);
};
const gone = () => sockets.flatMap(({ destroyed }, index) => (destroyed ? [index] : []));

beforeEach(() => {
  sockets = [];
  connections = new Connections(4);
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

  it('that was never used, where there are many such, so that those who ask again and again keep theirs', () => {
    use(open());
    for (let i = 0; i < 6; i += 1) open();
    expect(gone()).toEqual([1, 2, 3, 4]);
  });

  it('that has no request under way, however old the others are', () => {
    const busy = open();
    connections.begin(busy);
    connections.begin(busy);
    connections.end(busy);
    for (let i = 0; i < 5; i += 1) open();
    expect(gone()).toEqual([1, 2, 3]);
    connections.end(busy);
    for (const socket of sockets) if (!socket.destroyed) use(socket);
    for (let i = 0; i < 2; i += 1) open();
    expect(gone()).toContain(0);
  });
});

describe('no connection is closed', () => {
  it('while there is room for another one, which those that have gone leave behind', () => {
    for (let i = 0; i < 3; i += 1) open();
    for (const socket of sockets.slice()) socket.emit('close');
    for (let i = 0; i < 3; i += 1) open();
    expect(gone()).toEqual([]);
  });

  it('where each has a request under way: not even the new one', () => {
    for (let i = 0; i < 3; i += 1) connections.begin(open());
    open();
    expect(gone()).toEqual([]);
  });

  it('for the end of a request of one that has gone', () => {
    const socket = open();
    connections.begin(socket);
    expect(connections.isBusy(socket)).toBe(true);
    socket.destroy();
    connections.end(socket);
    expect(connections.isBusy(socket)).toBe(false);
    for (let i = 0; i < 3; i += 1) open();
    expect(gone()).toEqual([0]);
  });
});
