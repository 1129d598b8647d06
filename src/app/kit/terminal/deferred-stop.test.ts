import { describe, expect, it } from 'vitest';
import { settled } from '../../../../test/support/virtual-clock.js';
import { deferStop, type ForwardedSignal } from './signal-relay.js';

function scene() {
  const delivered: ForwardedSignal[] = [];
  let prepared: (outcome?: Promise<void>) => void = () => {};
  let asked = 0;
  const stop = deferStop(
    (signal) => void delivered.push(signal),
    () => {
      asked += 1;
      return new Promise((resolve) => {
        prepared = resolve;
      });
    },
  );
  return { stop, delivered, finish: (outcome?: Promise<void>) => prepared(outcome), asked: () => asked };
}

describe('a signal that asks a command to stop', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'reaches it once what has to happen before has happened: %s',
    async (signal) => {
      const { stop, delivered, finish, asked } = scene();
      stop.pass(signal);
      await settled();
      expect([asked(), delivered]).toEqual([1, []]);
      finish();
      await settled();
      expect(delivered).toEqual([signal]);
      stop.pass('SIGTERM');
      expect(delivered).toEqual([signal, 'SIGTERM']);
      expect(asked()).toBe(1);
    },
  );

  it('goes through at once with a second one, and not once more afterwards', async () => {
    const { stop, delivered, finish } = scene();
    stop.pass('SIGTERM');
    stop.pass('SIGINT');
    expect(delivered).toEqual(['SIGTERM', 'SIGINT']);
    finish();
    await settled();
    expect(delivered).toEqual(['SIGTERM', 'SIGINT']);
  });

  it('reaches it too where what has to happen before could not be done', async () => {
    const { stop, delivered, finish } = scene();
    stop.pass('SIGTERM');
    finish(Promise.reject(new Error('a mistake')));
    await settled();
    expect(delivered).toEqual(['SIGTERM']);
  });

  it('holds up no other signal, nor is prepared for by it: after SIGHUP and SIGQUIT many programs work on', () => {
    const { stop, delivered, asked } = scene();
    stop.pass('SIGHUP');
    stop.pass('SIGQUIT');
    expect(asked()).toBe(0);
    stop.pass('SIGTERM');
    stop.pass('SIGUSR1');
    expect(delivered).toEqual(['SIGHUP', 'SIGQUIT', 'SIGUSR1']);
  });

  it('is forgotten when no receiver is left', async () => {
    const { stop, delivered, finish } = scene();
    stop.pass('SIGTERM');
    stop.drop();
    finish();
    await settled();
    expect(delivered).toEqual([]);
  });
});
