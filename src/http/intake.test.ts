import type { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { settled } from '../../test/support/virtual-clock.js';
import { Intake } from './intake.js';

class FakeSocket {
  destroyed = false;
  #isPaused = false;

  isPaused(): boolean {
    return this.#isPaused;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (this.destroyed) throw new Error('a connection that has gone cannot go on');
    this.#isPaused = false;
  }
}

let sockets: FakeSocket[];
let intake: Intake;
let turns: (() => void)[];

beforeEach(() => {
  sockets = Array.from({ length: 3 }, () => new FakeSocket());
  turns = [];
  const turn = () => new Promise<void>((resolve) => turns.push(resolve));
  intake = new Intake(() => sockets as unknown as Socket[], turn, 4);
});

const ask = (times: number) => {
  for (let i = 0; i < times; i += 1) intake.note();
};
const nextTurn = async () => {
  for (const turn of turns.splice(0)) turn();
  await settled();
};
const paused = () => sockets.map((socket) => socket.isPaused());

describe('connections are read from', () => {
  it('no further in a turn of the event loop in which many requests came, and again in the next one', async () => {
    ask(3);
    expect(paused()).toEqual([false, false, false]);
    ask(1);
    expect(paused()).toEqual([true, true, true]);
    // What had been read before.
    ask(1_500);
    await nextTurn();
    expect(paused()).toEqual([false, false, false]);
    expect(turns).toEqual([]);
    ask(4);
    expect(paused()).toEqual([true, true, true]);
    await nextTurn();
    expect(paused()).toEqual([false, false, false]);
  });

  it('without a pause, as long as few requests come in each turn', async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      ask(3);
      expect(paused()).toEqual([false, false, false]);
      await nextTurn();
    }
  });

  it('no sooner, where they were paused for another reason, and never when they have gone', async () => {
    sockets[0]?.pause();
    ask(4);
    if (sockets[1]) sockets[1].destroyed = true;
    await nextTurn();
    expect(paused()).toEqual([true, true, false]);
  });
});
