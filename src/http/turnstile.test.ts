import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { Turnstile } from './turnstile.js';

class FakeSocket extends EventEmitter {
  destroyed = false;

  close(): void {
    this.destroyed = true;
    this.emit('close');
  }

  destroy(): void {
    this.close();
  }
}

class FakeResponse extends EventEmitter {
  constructor(readonly name: string) {
    super();
  }
}

let turnstile: Turnstile;
let answered: string[];
let refused: string[];

beforeEach(() => {
  [answered, refused] = [[], []];
  const noteIn = (names: string[]) => (_: IncomingMessage, response: ServerResponse) =>
    names.push((response as unknown as FakeResponse).name);
  turnstile = new Turnstile(2, noteIn(answered), noteIn(refused), ({ url }) => url === 'urgent');
});

/** A request of one connection; its answer is closed when the test says so. */
function ask(socket: FakeSocket, name: string): FakeResponse {
  const response = new FakeResponse(name);
  turnstile.admit({ socket, url: name } as unknown as IncomingMessage, response as unknown as ServerResponse);
  return response;
}

describe('the requests of one connection', () => {
  it('are answered one by one, in their order', () => {
    const socket = new FakeSocket();
    const responses = ['1', '2', '3'].map((name) => ask(socket, name));
    expect(answered).toEqual(['1']);
    responses[0]?.emit('close');
    responses[0]?.emit('close');
    expect(answered).toEqual(['1', '2']);
    responses[1]?.emit('close');
    expect([answered, refused]).toEqual([['1', '2', '3'], []]);
  });

  it('are refused when too many wait', () => {
    const socket = new FakeSocket();
    for (let i = 0; i < 12; i += 1) ask(socket, String(i));
    expect([answered, refused]).toEqual([['0'], ['9', '10', '11']]);
  });

  it('are refused a few at a time: with more of them the connection is closed, and nothing that it had sent is answered', () => {
    const socket = new FakeSocket();
    const responses = Array.from({ length: 17 }, (_, index) => ask(socket, String(index)));
    expect([refused.length, socket.destroyed]).toEqual([8, false]);
    for (const response of responses.slice(0, 17)) response.emit('close');
    expect(answered).toHaveLength(9);
    // Those refusals have been taken: there is room for as many again.
    [answered, refused].forEach((names) => void names.splice(0));
    for (let i = 0; i < 17; i += 1) ask(socket, String(i));
    expect([refused.length, socket.destroyed]).toEqual([8, false]);
    for (let i = 17; i < 1_500; i += 1) ask(socket, String(i));
    expect([answered.length, refused.length, socket.destroyed]).toEqual([1, 8, true]);
  });

  it('are forgotten when it closes', () => {
    const socket = new FakeSocket();
    const first = ask(socket, 'first');
    ask(socket, 'second');
    socket.destroyed = true;
    first.emit('close');
    socket.close();
    ask(socket, 'third');
    expect([answered, refused]).toEqual([['first'], []]);
  });
});

describe('the requests of all', () => {
  it('are refused beyond the bound, those that waited for their turn too', () => {
    const [a, b, c] = [new FakeSocket(), new FakeSocket(), new FakeSocket()];
    const first = ask(a, 'a');
    const second = ask(b, 'b');
    const third = ask(c, 'c');
    ask(c, 'c too');
    expect([answered, refused]).toEqual([['a', 'b'], ['c']]);
    third.emit('close');
    expect(refused).toEqual(['c', 'c too']);
    first.emit('close');
    second.emit('close');
    ask(a, 'a again');
    ask(b, 'b again');
    expect(answered).toEqual(['a', 'b', 'a again', 'b again']);
  });

  it('make room when their connections close, also where the response does not learn of it', () => {
    for (const name of ['1', '2', '3', '4']) {
      const socket = new FakeSocket();
      const response = ask(socket, name);
      ask(socket, 'never');
      socket.close();
      // Some are told all the same.
      if (name !== '1') response.emit('close');
    }
    expect([answered, refused]).toEqual([['1', '2', '3', '4'], []]);
    for (const name of ['5', '6', '7']) ask(new FakeSocket(), name);
    expect(refused).toEqual(['7']);
  });

  it('keep no urgent one out, which takes nobody’s place either, and comes in its turn all the same', () => {
    const [a, b, c] = [new FakeSocket(), new FakeSocket(), new FakeSocket()];
    const first = ask(a, 'a');
    ask(c, 'urgent');
    ask(b, 'b');
    ask(a, 'urgent');
    expect([answered, refused]).toEqual([['a', 'urgent', 'b'], []]);
    first.emit('close');
    expect(answered).toEqual(['a', 'urgent', 'b', 'urgent']);
    ask(new FakeSocket(), 'd');
    ask(new FakeSocket(), 'e');
    expect([answered.slice(4), refused]).toEqual([['d'], ['e']]);
  });
});
