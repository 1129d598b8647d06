import { expect, it } from 'vitest';
import { simulate } from '../test/simulation/simulation.js';
import { drawConditions } from '../test/simulation/world/conditions.js';
import { Dice } from '../test/simulation/world/dice.js';
import { Machine } from '../test/simulation/world/machine.js';
import { useQuickAbort } from '../test/simulation/world/quick-abort.js';
import { SimulatedProcess } from '../test/simulation/world/simulated-process.js';
import { SimulatedStore } from '../test/simulation/world/simulated-store.js';
import { World } from '../test/simulation/world/world.js';
import { report } from './report.js';

const SEEDS = 500;

/**
 * Sends requests through the simulated network, one after the other, with nothing that thinks about them;
 * faults included.
 */
async function bareRequests(count: number): Promise<void> {
  let left = count;
  for (let seed = 0; left > 0; seed += 1) {
    const world = new World(drawConditions(seed));
    const process = new SimulatedProcess(world.scheduler, new Machine(0, 0, 0, 0), () => 0);
    const store = new SimulatedStore({
      world,
      process,
      dice: new Dice(seed),
      name: 'bare',
      cutOff: () => false,
    });
    const send = async () => {
      for (; left > 0; left -= 1) {
        // A silent one would end this chain.
        await Promise.race([
          left % 2 === 0 ? store.list() : store.read('0.json'),
          process.clock.sleep(500),
        ]).catch(() => undefined);
      }
    };
    void send();
    await world.scheduler.run(world.conditions.endAt, () => left > 0);
  }
}

it('seeds a second that the simulator runs on one core', async () => {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  const undo = useQuickAbort();
  try {
    let requests = 0;
    const run = async () => {
      requests = 0;
      const begun = process.hrtime.bigint();
      for (let seed = 0; seed < SEEDS; seed += 1) requests += (await simulate(seed)).counts.requests;
      return Number(process.hrtime.bigint() - begun) / 1e9;
    };
    // Once to let it be compiled.
    await run();
    const seconds = await run();
    await bareRequests(requests);
    const begun = process.hrtime.bigint();
    await bareRequests(requests);
    const bare = Number(process.hrtime.bigint() - begun) / 1e9;
    report(
      `The simulator, ${SEEDS} seeds of 8 hosts × 4 ids × 60 s, ${Math.round(requests / SEEDS)} requests each`,
      [
        [
          'the same number of requests, without an engine',
          `${Math.round(SEEDS / bare)} seeds a second`,
          '1.00',
        ],
        [
          'with the engine, the supervisor, the observer',
          `${Math.round(SEEDS / seconds)} seeds a second`,
          (seconds / bare).toFixed(2),
        ],
      ],
    );
    expect(requests).toBeGreaterThan(100 * SEEDS);
  } finally {
    undo();
    Error.stackTraceLimit = limit;
  }
}, 120_000);
