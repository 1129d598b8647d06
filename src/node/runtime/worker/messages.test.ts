import { describe, expect, it } from 'vitest';
import { AcquireTimeoutError, ConfigError, StoreUnusableError } from '../../../core/base/errors.js';
import { LeaseLostError, LeaseReleasedError } from '../../../core/lease/model/lease.js';
import { LeaseUnreadableError } from '../../../core/lease/model/lease-codec.js';
import { StoreError } from '../../../core/store/lease-store.js';
import { fromWire, toWire } from './messages.js';

describe('an error that is sent to another thread', () => {
  it.each([
    new ConfigError('nodes', 0, 'at least 1'),
    new StoreUnusableError('STORE_MISSING', 'the store cannot be used'),
    new AcquireTimeoutError('no id'),
    new LeaseLostError(3, 7, 'taken', 12.5, 'somebody else holds it'),
    new LeaseReleasedError(3, 7),
    new LeaseUnreadableError('is no JSON'),
    new StoreError('no answer', { fault: 'unreachable', outcome: 'unknown' }),
    new Error('a fault'),
  ])('keeps its class and its fields: %s', (error) => {
    const crossed = fromWire(structuredClone(toWire(error)));
    expect(crossed).toBeInstanceOf(error.constructor);
    expect(crossed.message).toBe(error.message);
    expect({ ...crossed }).toEqual({ ...error });
  });

  it('has its causes, if they show whether the store may come back', () => {
    const away = new StoreError('no answer', {
      fault: 'unreachable',
      outcome: 'unknown',
      cause: new Error('connection refused'),
    });
    const crossed = fromWire(
      structuredClone(
        toWire(new StoreUnusableError('STORE_UNREACHABLE', 'the store cannot be used', { cause: away })),
      ),
    );
    expect(crossed.cause).toBeInstanceOf(StoreError);
    expect((crossed.cause as StoreError).transient).toBe(true);
    expect((crossed.cause as StoreError).cause).toBeUndefined();
  });

  it('has the text of its causes', () => {
    const error = new StoreError('no answer', {
      fault: 'unreachable',
      outcome: 'unknown',
      cause: new Error('connection refused'),
    });
    expect(fromWire(toWire(error)).message).toBe('no answer: connection refused');
  });
});
