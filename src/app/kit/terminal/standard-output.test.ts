import { EventEmitter } from 'node:events';
import type { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../core/base/system.js';
import { StandardOutput } from './standard-streams.js';

/**
 * A standard output that fails with `code` from the second part of an answer on, and reports it late. Like
 * Node's own, it is not destroyed by that.
 */
function scene(code: string) {
  const reports: string[] = [];
  let opened = 0;
  let parts = 0;
  const stream = Object.assign(new EventEmitter(), {
    write: (_text: string, done: (error?: Error) => void) => {
      parts += 1;
      if (parts === 1) process.nextTick(done);
      else {
        const error = Object.assign(new Error(`write ${code}`), {
          code: parts === 2 ? code : 'ERR_STREAM_DESTROYED',
        });
        process.nextTick(done, error);
        void setImmediate().then(() => stream.emit('error', error));
      }
      return true;
    },
  });
  const open = () => {
    opened += 1;
    return stream as unknown as Writable;
  };
  const output = new StandardOutput(open, systemClock, {
    readerGone: () => reports.push('reader gone'),
    failed: (error) => reports.push(`failed: ${error.message}`),
  });
  return { output, reports, opened: () => opened };
}

describe('standard output', () => {
  it('is not opened before there is an answer', async () => {
    const { output, opened } = scene('EPIPE');
    expect(await output.taken()).toBe(true);
    await output.written();
    expect(opened()).toBe(0);
  });

  it.each(['EPIPE', 'ECONNRESET'])(
    'stops a command that does not ask whether somebody reads: %s',
    async (code) => {
      const { output, reports } = scene(code);
      for (let part = 0; part < 3; part += 1) output.write('x');
      await output.written();
      expect(reports).toEqual(['reader gone']);
      expect(output.hasFailed).toBe(false);
    },
  );

  it('leaves it to a command that asks to end when its reader has gone', async () => {
    const { output, reports } = scene('EPIPE');
    output.write('x');
    expect(await output.taken()).toBe(true);
    output.write('x');
    expect(await output.taken()).toBe(false);
    await output.written();
    expect(reports).toEqual([]);
  });

  it.each([true, false])(
    'reports once that the answer cannot be written, also of its last part: asked %s',
    async (isAsked) => {
      const { output, reports } = scene('ENOSPC');
      output.write('x');
      if (isAsked) expect(await output.taken()).toBe(true);
      await output.written();
      expect(output.hasFailed).toBe(false);
      output.write('x');
      if (isAsked) expect(await output.taken()).toBe(false);
      await output.written();
      expect(output.hasFailed).toBe(true);
      output.write('x');
      await output.written();
      // The stream's own word comes after all.
      await setImmediate();
      await setImmediate();
      expect(reports).toEqual(['failed: write ENOSPC']);
    },
  );
});
