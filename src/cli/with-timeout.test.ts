import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import { withTimeout } from './with-timeout.js';

function scene() {
  const clock = new VirtualClock();
  const warnings: unknown[] = [];
  return {
    clock,
    warnings,
    options: { limitMs: 500, clock, what: 'the release', log: { warn: (text: unknown) => void warnings.push(text) } },
  };
}

describe('what tidies up', () => {
  it('is waited for, without a word', async () => {
    const { clock, warnings, options } = scene();
    await withTimeout(options, Promise.resolve());
    expect([warnings, clock.sleepers]).toEqual([[], 0]);
  });

  it('is not waited for any longer than that, and warned of', async () => {
    const { clock, warnings, options } = scene();
    const waiting = withTimeout(options, new Promise(() => {}));
    await clock.advance(500);
    await waiting;
    expect(warnings).toEqual(['the release took more than 500 ms: not waiting for it']);
  });

  it('may fail, which is warned of', async () => {
    const { clock, warnings, options } = scene();
    await withTimeout(options, Promise.reject(new Error('gone')));
    expect([warnings, clock.sleepers]).toEqual([['the release failed: gone'], 0]);
  });
});
