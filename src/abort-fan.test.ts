import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { onAbort } from './abort-fan.js';

describe('those who wait for one signal', () => {
  it('put one listener on it, and none once they have all gone', () => {
    const { signal } = new AbortController();
    const gone = Array.from({ length: 100 }, () => onAbort(signal, () => {}));
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    for (const go of gone.slice(1)) go();
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    gone[0]?.();
    gone[0]?.();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    onAbort(signal, () => {})();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('are all told, each once, but for those who have gone', () => {
    const controller = new AbortController();
    const told: string[] = [];
    const same = () => told.push('same');
    onAbort(controller.signal, same);
    onAbort(controller.signal, same);
    const go = onAbort(controller.signal, () => told.push('gone'));
    const goLater = onAbort(controller.signal, () => told.push('last'));
    go();
    controller.abort();
    goLater();
    expect(told).toEqual(['same', 'same', 'last']);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });
});
