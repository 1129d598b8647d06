import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { StandardError } from './standard-streams.js';

const BUFFER_BYTES = 1_048_576;

function failure(code: string): Error {
  return Object.assign(new Error(code), { code, syscall: 'write' });
}

/** A standard error with room for `room` bytes, until a reader makes more. */
function scene(room: number) {
  const clock = new VirtualClock();
  const pipe = { room, taken: '', attempts: 0, failsWith: '' };
  const write = (bytes: Uint8Array) => {
    pipe.attempts += 1;
    if (pipe.failsWith !== '') throw failure(pipe.failsWith);
    if (pipe.room === 0) throw failure('EAGAIN');
    const part = bytes.subarray(0, pipe.room);
    pipe.room -= part.length;
    pipe.taken += Buffer.from(part).toString();
    return part.length;
  };
  const stderr: StandardError = new StandardError(
    () => write,
    clock,
    (lines) => stderr.write(`${lines} lost\n`),
  );
  return { clock, pipe, stderr };
}

const BLOCK = 1 << 16;
const block = (name: string) => name.padEnd(BLOCK - 1, '.').concat('\n');
const names = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/\.+$/, ''));

describe('standard error', () => {
  it('has written each line before the next step, while its reader reads', () => {
    const { pipe, stderr } = scene(Number.POSITIVE_INFINITY);
    for (const line of ['a\n', 'b\n']) {
      stderr.write(line);
      expect(pipe.taken.endsWith(line)).toBe(true);
    }
    expect(pipe.taken).toBe('a\nb\n');
  });

  it('holds nothing up while its reader does not read, and has all lines in their order once it does', async () => {
    const { clock, pipe, stderr } = scene(3);
    for (const line of ['first\n', 'second\n', 'third\n']) stderr.write(line);
    expect(pipe.taken).toBe('fir');
    await clock.advance(60_000);
    pipe.room = 5;
    await clock.advance(1_000);
    expect(pipe.taken).toBe('first\nse');
    pipe.room = Number.POSITIVE_INFINITY;
    await clock.advance(1_000);
    expect(pipe.taken).toBe('first\nsecond\nthird\n');
    stderr.write('fourth\n');
    expect(pipe.taken.endsWith('third\nfourth\n')).toBe(true);
  });

  it('looks four times a second at most for a reader that has stopped reading', async () => {
    const { clock, pipe, stderr } = scene(0);
    stderr.write('a\n');
    await clock.advance(60_000);
    expect(pipe.attempts).toBeLessThan(4 * 60 + 20);
  });

  it('keeps a mebibyte of lines, and says once how many are missing, in their place', async () => {
    const { clock, pipe, stderr } = scene(0);
    const fitting = BUFFER_BYTES / BLOCK;
    for (let line = 0; line < fitting + 5; line += 1) stderr.write(block(`line ${line}`));
    await clock.advance(60_000);
    pipe.room = Number.POSITIVE_INFINITY;
    await clock.advance(1_000);
    stderr.write('later\n');
    const kept = Array.from({ length: fitting }, (_, line) => `line ${line}`);
    expect(names(pipe.taken)).toEqual([...kept, '5 lost', 'later']);
  });

  it('never loses a line while it keeps no other one, however long it is', async () => {
    const { clock, pipe, stderr } = scene(10);
    const long = `${'x'.repeat(2 * BUFFER_BYTES)}\n`;
    stderr.write(long);
    pipe.room = Number.POSITIVE_INFINITY;
    await clock.advance(1_000);
    expect(pipe.taken).toBe(long);
  });

  it.each(['EPIPE', 'ENOSPC', 'EIO'])(
    'loses what cannot be written, and nothing that comes after: %s',
    async (code) => {
      const { clock, pipe, stderr } = scene(0);
      stderr.write('a\n');
      stderr.write('b\n');
      pipe.failsWith = code;
      await clock.advance(1_000);
      stderr.write('c\n');
      Object.assign(pipe, { failsWith: '', room: 100 });
      stderr.write('d\n');
      await clock.advance(1_000);
      expect(pipe.taken).toBe('d\n');
    },
  );

  it('is waited for until all is taken, and no longer than asked for', async () => {
    const { clock, pipe, stderr } = scene(0);
    let waits = 0;
    const wait = () => {
      waits += 1;
      void stderr.taken(1_000).then(() => {
        waits -= 1;
      });
    };
    wait();
    await clock.advance(0);
    expect(waits).toBe(0);
    stderr.write('a\n');
    wait();
    await clock.advance(900);
    expect(waits).toBe(1);
    await clock.advance(200);
    expect(waits).toBe(0);
    wait();
    pipe.room = 10;
    await clock.advance(300);
    expect([waits, pipe.taken]).toEqual([0, 'a\n']);
  });
});
