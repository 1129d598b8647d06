import { describe, expect, it } from 'vitest';
import { discoveryLog } from './discovery-log.js';

describe('the log of discovery', () => {
  it.each([
    [
      { type: 'superseded', path: '/services/orders/task', by: '0100' },
      '/services/orders/task has been taken by another registrant: left alone until it goes',
    ],
    [
      { type: 'restored', path: '/services/orders/task', problem: 'was removed by somebody else' },
      '/services/orders/task was removed by somebody else: it stands there again',
    ],
    [
      { type: 'mixed-payloads', path: '/services/orders', problem: 'has instances of different classes' },
      '/services/orders has instances of different classes: use another service name, or the same --payload-type',
    ],
  ] as const)('warns of what others do to a registration: %j', (event, line) => {
    const lines: unknown[] = [];
    const other = () => void lines.push('not a warning');
    discoveryLog({ info: other, error: other, warn: (...words: unknown[]) => void lines.push(words.at(-1)) })(
      { type: 'service', event },
    );
    expect(lines).toEqual([line]);
  });
});
