import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { Io } from '../io.js';
import { ProgressLine } from './progress-line.js';

function scene(logFormat: Io['logFormat'], onlyTerminal = false, columns = 100) {
  const clock = new VirtualClock();
  const io = { ...capturedIo({ columns, rows: 24, color: false }, clock), logFormat };
  const line = new ProgressLine(io, 'writing lease objects', onlyTerminal);
  /** A hundred a second. */
  const work = async (seconds: number, of = 10_000) => {
    for (let done = 0; done <= seconds * 100; done += 1) {
      line.update({ done, of });
      await clock.advance(10);
    }
  };
  return { io, line, work };
}

describe('the progress of long work', () => {
  it('is one line on a terminal, that is gone at the end', async () => {
    const { io, line, work } = scene('plain');
    await work(50);
    const drawn = io.complaints().split('\r').slice(1);
    expect(drawn.length).toBeGreaterThan(400);
    expect(drawn.length).toBeLessThan(520);
    expect(drawn.at(-1)).toMatch(
      /^writing lease objects \[#{7,8}\.{8,9}\] \d{4} of 10000, 100\/s, 50\.\ds left *$/,
    );
    expect(io.complaints()).not.toContain('\n');
    const before = io.complaints().length;
    line.end();
    expect(io.complaints().slice(before)).toMatch(/^\r {60,}\r$/);
    line.end();
    expect(io.complaints().slice(before).match(/\r/g)).toHaveLength(2);
  });

  it('covers what it was longer before', async () => {
    const { io, line, work } = scene('plain', false, 1_000);
    await work(15, 2_000);
    const lengths = io
      .complaints()
      .split('\r')
      .slice(1)
      .map(({ length }) => length);
    expect(lengths).toEqual(lengths.toSorted((a, b) => a - b));
    line.end();
  });

  it('does not wrap where the terminal is narrow', async () => {
    const { io, work } = scene('color', false, 30);
    await work(3);
    expect(
      Math.max(
        ...io
          .complaints()
          .split('\r')
          .map(({ length }) => length),
      ),
    ).toBe(29);
  });

  it('is a line every five seconds in a log', async () => {
    const { io, line, work } = scene('json');
    await work(12);
    line.end();
    expect(io.complaints().trimEnd().split('\n')).toEqual([
      'nodelease: writing lease objects: 500 of 10000, 100/s, 1m35s left',
      'nodelease: writing lease objects: 1000 of 10000, 100/s, 1m30s left',
    ]);
  });

  it('is nothing in a log where it is not wanted', async () => {
    const { io, line, work } = scene('json', true);
    await work(12);
    line.end();
    expect(io.complaints()).toBe('');
  });

  it('is not shown for work that is soon over', async () => {
    const { io, line, work } = scene('plain');
    await work(0.4);
    line.end();
    expect(io.complaints()).toBe('');
  });
});
