import { beforeEach, describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { LeaseReleasedError } from '../../lease/model/lease.js';
import { StoreError } from '../../store/lease-store.js';
import { SharedTenure, WorkerTenureTime } from './shared-tenure.js';

describe('the share of store time of a lease that another thread keeps', () => {
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

  it('is prepared once, however many ask', async () => {
    const both = Promise.all([time.prepare(), time.prepare()]);
    time.widen(9);
    time.prepared();
    await both;
    await time.prepare();
    expect(asked).toBe(1);
    expect(time.idWidth).toBe(9);
  });

  it('tells why it could not be prepared, and can be asked again', async () => {
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

  it('says that a wider width is used only when all who were told of it have gone over to it', async () => {
    let goOn: () => void = () => undefined;
    const told: number[] = [];
    time.onWidth((idWidth) => void told.push(idWidth));
    time.onWidth(() => new Promise<void>((resolve) => (goOn = resolve)));
    time.widen(9);
    await settled();
    expect({ told, adopted }).toEqual({ told: [9], adopted: [] });
    goOn();
    await settled();
    expect(adopted).toEqual([9]);
  });

  it('says that the wider of two widths is used only when all who were told of it have gone over to it', async () => {
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

  it('tells no listener that has gone, and none twice', () => {
    const told: number[] = [];
    const forget = time.onWidth((idWidth) => void told.push(idWidth));
    time.widen(10);
    time.widen(9);
    forget();
    time.widen(11);
    expect(told).toEqual([10]);
    expect(time.idWidth).toBe(11);
  });
});
