import { describe, expect, it } from 'vitest';
import { Machine } from './machine.js';
import { Scheduler } from './scheduler.js';
import { SimulatedProcess } from './simulated-process.js';

const always = () => true;

function processOn(scheduler: Scheduler, machine = new Machine(0, 0, 0, 0)): SimulatedProcess {
  return new SimulatedProcess(scheduler, machine, () => 0);
}

describe('true time', () => {
  it('carries events out in the order of their times, and those of one time in the order in which they were planned', async () => {
    const scheduler = new Scheduler();
    const seen: string[] = [];
    for (const [time, name] of [
      [5, 'c'],
      [1, 'a'],
      [5, 'd'],
      [3, 'b'],
      [9, 'too late'],
    ] as const)
      scheduler.at(time, undefined, () => void seen.push(`${name}@${scheduler.now}`));
    await scheduler.run(8, always);
    expect(seen).toEqual(['a@1', 'b@3', 'c@5', 'd@5']);
    expect(scheduler.now).toBe(8);
  });

  it('lets every promise reaction of a process’ event happen before the next event, however long their chain', async () => {
    const scheduler = new Scheduler();
    let reactions = 0;
    scheduler.at(1, processOn(scheduler), () => {
      void (async () => {
        for (let i = 0; i < 1_000; i += 1) {
          await null;
          reactions += 1;
        }
      })();
    });
    let seen = -1;
    scheduler.at(1, undefined, () => {
      seen = reactions;
    });
    await scheduler.run(2, always);
    expect(seen).toBe(1_000);
  });

  it('ends as soon as a check after a step says so', async () => {
    const scheduler = new Scheduler();
    const seen: number[] = [];
    for (const time of [1, 2, 3]) scheduler.at(time, undefined, () => void seen.push(time));
    await scheduler.run(10, () => seen.length < 2);
    expect(seen).toEqual([1, 2]);
  });

  it('fails with the error that an event throws', async () => {
    const scheduler = new Scheduler();
    scheduler.at(1, undefined, () => {
      throw new Error('a mistake');
    });
    await expect(scheduler.run(2, always)).rejects.toThrow('a mistake');
  });
});

describe('a simulated process', () => {
  it('sleeps by its machine’s monotonic clock, however that drifts, and reads the wall clock as it is set', async () => {
    const scheduler = new Scheduler();
    const machine = new Machine(1_000_000, 0.5, 77, -0.5);
    const { clock } = processOn(scheduler, machine);
    let woken = Number.NaN;
    void clock.sleep(100).then(() => {
      woken = scheduler.now;
    });
    await scheduler.run(300, always);
    expect(woken).toBe(200);
    expect(clock.monotonic()).toBe(77 + 150);
    expect(clock.now()).toBe(1_000_000 + 450);
    machine.stepWall(-500_000);
    expect(clock.now()).toBe(500_450);
    expect(clock.monotonic()).toBe(227);
  });

  it('does nothing while it is stopped, and all that was missed at once, in its order, when it goes on', async () => {
    const scheduler = new Scheduler();
    const process = processOn(scheduler);
    const seen: string[] = [];
    for (const ms of [10, 20, 60])
      void process.clock.sleep(ms).then(() => seen.push(`${ms}@${scheduler.now}`));
    scheduler.at(5, undefined, () => process.stop());
    scheduler.at(50, undefined, () => process.resume());
    await scheduler.run(100, always);
    expect(seen).toEqual(['10@50', '20@50', '60@60']);
  });

  it('may hear all that was sent to it while it was stopped before it sees which timers have run out', async () => {
    const scheduler = new Scheduler();
    const process = new SimulatedProcess(scheduler, new Machine(0, 0, 0, 0), () => 0, 'replies');
    const seen: string[] = [];
    const never = new AbortController().signal;
    void process.clock.sleep(10).then(() => seen.push('timer 10'));
    void process.clock.sleep(20, never).then(() => seen.push('timer 20'));
    for (const at of [15, 30]) scheduler.at(at, process, () => void seen.push(`message ${at}`));
    scheduler.at(5, undefined, () => process.stop());
    scheduler.at(40, undefined, () => process.stop());
    scheduler.at(50, undefined, () => process.resume());
    scheduler.at(60, undefined, () => process.resume());
    await scheduler.run(100, always);
    expect(seen).toEqual(['message 15', 'message 30', 'timer 10', 'timer 20']);
  });

  it('goes on only when it has been continued as often as it was stopped', async () => {
    const scheduler = new Scheduler();
    const process = processOn(scheduler);
    let woken = Number.NaN;
    void process.clock.sleep(1).then(() => {
      woken = scheduler.now;
    });
    process.stop();
    process.stop();
    scheduler.at(10, undefined, () => process.resume());
    scheduler.at(20, undefined, () => process.resume());
    await scheduler.run(30, always);
    expect(woken).toBe(20);
  });

  it('never does anything again once it is killed, not even what was kept for it while it was stopped', async () => {
    const scheduler = new Scheduler();
    const process = processOn(scheduler);
    let acted = false;
    void process.clock.sleep(10).then(() => {
      acted = true;
    });
    process.stop();
    scheduler.at(20, undefined, () => process.kill());
    scheduler.at(30, undefined, () => process.resume());
    await scheduler.run(40, always);
    expect(acted).toBe(false);
  });

  it('rejects a sleep with the reason of the signal that ends it', async () => {
    const scheduler = new Scheduler();
    const process = processOn(scheduler);
    const { clock } = process;
    const waking = new AbortController();
    const slept = clock
      .sleep(100, waking.signal)
      .catch((error: Error) => `${error.message}@${scheduler.now}`);
    scheduler.at(30, process, () => waking.abort(new Error('enough')));
    await scheduler.run(200, always);
    expect(await slept).toBe('enough@30');
  });
});
