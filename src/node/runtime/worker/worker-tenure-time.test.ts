import { beforeEach, describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { LeaseReleasedError } from '../../../core/lease/model/lease.js';
import { StoreError } from '../../../core/store/lease-store.js';
import { SharedTenure, WorkerTenureTime } from './shared-tenure.js';

describe('the id time window of a lease that another thread renews', () => {
  let asked: number;
  let adopted: number[];
  let ended: Error | undefined;
  let time: WorkerTenureTime;

  beforeEach(() => {
    asked = 0;
    adopted = [];
    ended = undefined;
    time = new WorkerTenureTime({
      clock: new VirtualClock(),
      shared: new SharedTenure(),
      idWidth: 8,
      check: () => {
        if (ended) throw ended;
      },
      send: (message) => {
        if (message.type === 'prepare') asked += 1;
        else if (message.type === 'adopted') adopted.push(message.idWidth);
      },
    });
  });

  it('is prepared once for any number of callers', async () => {
    const both = Promise.all([time.prepare(), time.prepare()]);
    time.widen(9);
    time.prepared();
    await both;
    await time.prepare();
    expect(asked).toBe(1);
    expect(time.idWidth).toBe(9);
  });

  it('reports why it could not be prepared, and can be prepared again', async () => {
    const error = new StoreError('denied', { fault: 'denied', outcome: 'not-applied' });
    const first = time.prepare();
    time.prepared(error);
    await expect(first).rejects.toBe(error);
    const second = time.prepare();
    time.prepared();
    await second;
    expect(asked).toBe(2);
  });

  it('is given up by one of two that wait, and prepared for the other', async () => {
    const giveUp = new AbortController();
    const one = time.prepare(giveUp.signal);
    const other = time.prepare();
    giveUp.abort(new Error('enough'));
    await expect(one).rejects.toThrow('enough');
    time.prepared();
    await other;
    await expect(time.prepare(giveUp.signal)).rejects.toThrow('enough');
  });

  it('waits for no answer once the tenure has ended', async () => {
    const waiting = time.prepare();
    ended = new LeaseReleasedError(0, 1);
    time.end(ended);
    await expect(waiting).rejects.toBe(ended);
    await expect(time.prepare()).rejects.toBe(ended);
    expect(time.signal.reason).toBe(ended);
  });

  it('confirms a wider width only when all its listeners have adopted it', async () => {
    let goOn: () => void = () => undefined;
    const widths: number[] = [];
    time.onWidth((idWidth) => void widths.push(idWidth));
    time.onWidth(() => new Promise<void>((resolve) => (goOn = resolve)));
    time.widen(9);
    await settled();
    expect({ widths, adopted }).toEqual({ widths: [9], adopted: [] });
    goOn();
    await settled();
    expect(adopted).toEqual([9]);
  });

  it('confirms the wider of two widths only when all its listeners have adopted it', async () => {
    const waiting = new Map<number, () => void>();
    time.onWidth((idWidth) => new Promise<void>((resolve) => waiting.set(idWidth, resolve)));
    time.widen(9);
    time.widen(10);
    waiting.get(9)?.();
    await settled();
    expect(adopted).toEqual([9]);
    waiting.get(10)?.();
    await settled();
    expect(adopted).toEqual([9, 10]);
  });

  it('notifies no listener that was removed, and none twice', () => {
    const widths: number[] = [];
    const forget = time.onWidth((idWidth) => void widths.push(idWidth));
    time.widen(10);
    time.widen(9);
    forget();
    time.widen(11);
    expect(widths).toEqual([10]);
    expect(time.idWidth).toBe(11);
  });
});
