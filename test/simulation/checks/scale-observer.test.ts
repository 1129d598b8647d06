import { describe, expect, it } from 'vitest';
import type { ScaleOutcome } from '../../../src/core/lease/operate/scaling.js';
import { drawConditions } from '../world/conditions.js';
import { Machine } from '../world/machine.js';
import { SimulatedProcess } from '../world/simulated-process.js';
import { World } from '../world/world.js';
import { NEVER_HELD, type ObservedObject } from './observed-object.js';
import { type ReportedSize, reportedSize, ScaleObserver, type Sender } from './scale-observer.js';

const free: ObservedObject = { ...NEVER_HELD, version: 1 };
const held: ObservedObject = {
  ...free,
  held: true,
  nonce: 'n',
  taskId: 'task',
  version: 2,
  durationMs: 6_000,
};
const retiredIn = (generation: number): ObservedObject => ({ ...free, version: 2, retiredIn: generation });

/** A world of four ids without faults, and what its observer says. */
function observed() {
  const complaints: string[] = [];
  const world = new World(drawConditions(1, {}, new Set()));
  const objects = new Map<number, ObservedObject>();
  const believed = new Set<number>();
  const observer = new ScaleObserver({
    world,
    isHeld: (id) => believed.has(id),
    object: (id) => objects.get(id),
    fail: (text, invariant) => complaints.push(`${invariant}: ${text}`),
  });
  observer.onSettings({ size: 4, generation: 0 });
  const process = new SimulatedProcess(world.scheduler, new Machine(0, 0, 0, 0), () => 0);
  const said = () => complaints.splice(0).join('\n');
  return {
    ...{ world, observer, process, believed },
    settings: (size: number, generation: number) => observer.onSettings({ size, generation }),
    /** A write by one who had heard of these settings when it was sent. */
    write(id: number, now: ObservedObject, heard: ReportedSize | undefined, sentAt = 0) {
      const sender: Sender = { name: 'somebody', process, sentAt, heard };
      observer.afterWrite(id, objects.get(id) ?? NEVER_HELD, now, sender);
      objects.set(id, now);
      return said();
    },
    outcome(to: number, more: Partial<Extract<ScaleOutcome, { kind: 'scaled' }>> = {}) {
      const common = {
        kind: 'scaled',
        from: 4,
        idWidth: 8,
        widened: false,
        created: 0,
        reopened: 0,
        retired: 0,
        forced: [],
        damaged: [],
      } as const;
      observer.onOutcome('operator', { ...common, to, ...more });
      return said();
    },
    retiring(id: number, size: number) {
      observer.onRetiring('task', id, size);
      return said();
    },
  };
}

describe('the observer of growing and shrinking', () => {
  it('reads the settings for itself', () => {
    expect(reportedSize('{"size":3,"generation":2,"durationMs":1}')).toEqual({ size: 3, generation: 2 });
    expect(reportedSize('{"size":3}')).toEqual({ size: 3, generation: 0 });
  });

  it('has nothing against an id that is taken by a task that has not heard that it is given up', () => {
    const { settings, write, outcome } = observed();
    settings(2, 1);
    expect(write(3, held, { size: 4, generation: 0 })).toBe('');
    expect(outcome(3)).toBe('');
  });

  it('sees an id taken by one who knew better', () => {
    const { settings, write } = observed();
    settings(2, 1);
    expect(write(3, held, { size: 2, generation: 1 })).toBe(
      'retirement: somebody takes node id 3, and knew of 2 ids',
    );
  });

  it('sees an id taken that is retired, and lets one be taken that the cluster has again', () => {
    const { settings, write } = observed();
    settings(2, 1);
    write(3, retiredIn(1), { size: 2, generation: 1 });
    const taken = { ...held, version: 3 };
    expect(write(3, taken, { size: 4, generation: 0 })).toBe(
      'retirement: somebody takes node id 3, which is retired in generation 1 of 1',
    );
    write(2, retiredIn(1), { size: 2, generation: 1 });
    settings(4, 2);
    expect(write(2, taken, { size: 4, generation: 2 })).toBe('');
  });

  it('sees an id retired that stays', () => {
    const { settings, write } = observed();
    settings(2, 1);
    expect(write(1, retiredIn(1), { size: 2, generation: 1 })).toMatch(
      /^survivors: somebody retires node id 1/,
    );
  });

  it('sees a holder lose an id that stays, or one that goes before its time, and no other', () => {
    const { settings, write, observer, process, believed } = observed();
    observer.onCall(process, { forcesAt: 5_000 });
    settings(2, 1);
    const heard = { size: 2, generation: 1 };
    for (const id of [0, 2, 3]) write(id, held, { size: 4, generation: 0 });
    believed.add(0).add(2);
    const evicted = { ...free, version: 3, durationMs: 6_000 };
    expect(write(0, evicted, heard, 6_000)).toMatch(
      /^survivors: somebody takes node id 0, which the cluster keeps/,
    );
    expect(write(2, { ...retiredIn(1), version: 3 }, heard, 4_000)).toMatch(
      /^survivors: somebody takes node id 2 .* 1000 ms before/,
    );
    // Its holder does not believe in it any more.
    expect(write(3, { ...retiredIn(1), version: 3 }, heard, 4_000)).toBe('');
    // Its holder has lost it already.
    expect(write(2, { ...retiredIn(2), version: 3 }, heard, 4_000)).toBe('');
  });

  it('sees an end that leaves ids to be taken, as they were when the cluster shrank', () => {
    const { settings, write, outcome, world } = observed();
    write(3, held, { size: 4, generation: 0 });
    world.scheduler.now = 1_000;
    settings(2, 1);
    const heard = { size: 2, generation: 1 };
    write(2, retiredIn(1), heard);
    expect(outcome(2)).toBe('retirement: operator says that there are 2 node ids, and 3.json is not retired');
    write(3, { ...retiredIn(1), version: 3 }, heard);
    expect(outcome(2)).toBe('');
    // The cluster has had them again since.
    settings(4, 2);
    settings(2, 3);
    expect(outcome(2)).toMatch(/2\.json is not retired\nretirement: .*3\.json is not retired/);
  });

  it('sees damage without a cause', () => {
    const { outcome } = observed();
    expect(outcome(4, { damaged: [{ id: 3, problem: 'is absent' }] })).toMatch(
      /^retirement: operator finds damage/,
    );
  });

  it('sees a holder that is asked to give up an id that it may keep', () => {
    const { settings, retiring } = observed();
    settings(2, 1);
    expect(retiring(2, 2)).toBe('');
    expect(retiring(1, 2)).toBe('survivors: task is asked to give up node id 1 of 2');
    expect(retiring(3, 3)).toMatch(/^survivors/);
  });

  it('knows when the cluster should have which size', () => {
    const { settings, observer } = observed();
    observer.onWanted(0, 2);
    expect(observer.unfinished()).toMatch(/still busy giving the cluster 2 node ids; it has 4/);
    settings(2, 1);
    observer.onSettled(0, true);
    expect(observer.unfinished()).toBeUndefined();
    settings(3, 2);
    expect(observer.unfinished()).toBe('the cluster has 3 node ids, and should have 2');
    // Of two at once, either may have the last word.
    observer.onWanted(1, 2);
    observer.onWanted(2, 3);
    observer.onSettled(1, true);
    observer.onSettled(2, true);
    expect(observer.unfinished()).toBeUndefined();
  });
});
