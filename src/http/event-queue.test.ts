import { describe, expect, it } from 'vitest';
import { EventQueue } from './event-queue.js';

const KIB = 1024;
const bytes = (size: number, fill = 'x') => Buffer.alloc(size, fill);

function queue() {
  let ends = 0;
  const made = new EventQueue(() => {
    ends += 1;
  });
  const reader = made.stream.getReader();
  return { queue: made, reader, ends: () => ends, next: async () => (await reader.read()).value ?? new Uint8Array() };
}

describe('what a client is sent', () => {
  it('comes in its order, whole, and in pieces of 64 KiB at the most', async () => {
    const { queue: one, next } = queue();
    const messages = [bytes(10, 'a'), bytes(150 * KIB, 'b'), ...Array.from({ length: 30 }, () => bytes(10 * KIB, 'c')), bytes(3, 'd')];
    for (const message of messages) one.push(message);
    const all = Buffer.concat(messages);
    const pieces: Uint8Array[] = [];
    for (let size = 0; size < all.length; size += pieces.at(-1)?.length ?? 0) pieces.push(await next());
    expect(Buffer.concat(pieces).equals(all)).toBe(true);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(64 * KIB);
    expect(pieces.length).toBeLessThanOrEqual(Math.ceil(all.length / (64 * KIB)));
  });

  it('is no more than what it can take: else it is let go, once', async () => {
    const { queue: one, reader, ends } = queue();
    one.push(bytes(5 * KIB * KIB));
    for (let i = 0; i < 8; i += 1) one.push(bytes(512 * KIB));
    one.push(bytes(1));
    expect(ends()).toBe(0);
    one.push(bytes(1));
    one.end();
    expect(ends()).toBe(1);
    expect((await reader.read()).done).toBe(true);
  });

  it('may begin with much, which counts as little, until all of it has been taken', async () => {
    const { queue: one, next, ends } = queue();
    const much = bytes(9 * KIB * KIB);
    one.push(bytes(100, 'o'));
    one.begin([bytes(10, 'a'), much]);
    for (let i = 0; i < 8; i += 1) one.push(bytes(512 * KIB));
    expect([one.beginning.length, one.beginning[1] === much, ends()]).toEqual([2, true, 0]);
    expect(Buffer.from(await next()).toString('latin1', 0, 11)).toBe('aaaaaaaaaax');
    expect(one.beginning[0] === much).toBe(true);
    while (one.beginning.length > 0) await next();
    expect(ends()).toBe(0);
  });

  it('is told anew after what has been begun', async () => {
    const { queue: one, next } = queue();
    one.push(bytes(70 * KIB, 'a'));
    one.push(bytes(10, 'b'));
    await next();
    one.begin([bytes(10, 'c')]);
    expect(Buffer.from(await next()).toString('latin1')).toBe('a'.repeat(6 * KIB) + 'c'.repeat(10));
  });
});
