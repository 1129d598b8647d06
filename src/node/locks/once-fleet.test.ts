import { describe, expect, it } from 'vitest';
import { type Network, onceScene, UNREACHABLE } from '../../../test/support/once-scene.js';
import { seededRandom } from '../../../test/support/virtual-clock.js';

const HOSTS = 5;
const PERIOD = 60_000;
const HOUR = 3_600_000;

/** Five hosts whose crons all run the same command for so many ticks, and are killed, and have a bad network. */
async function fleet({ ticks, retry = 0, seed }: { ticks: number; retry?: number; seed: number }) {
  const scene = onceScene();
  const { clock } = scene;
  const random = seededRandom(seed);
  const chance = (share: number) => random.next() < share;
  const runs: { tick: number; at: number; until: number; host: number; end: string }[] = [];
  const faults = { kills: 0, lost: 0, late: 0, delayed: 0 };
  let lastTick = 0;

  const network =
    (isDead: () => boolean): Network =>
    async (_, apply) => {
      await clock.sleep(5 + random.next() * 40);
      // What a dead process has sent may arrive still.
      if (isDead()) throw UNREACHABLE;
      if (chance(0.01)) {
        faults.lost += 1;
        if (chance(0.5)) apply();
        throw UNREACHABLE;
      }
      if (chance(0.01)) {
        faults.late += 1;
        void clock.sleep(random.next() * 20_000).then(apply);
        throw UNREACHABLE;
      }
      if (chance(0.01)) {
        faults.delayed += 1;
        await clock.sleep(random.next() * 4_000);
      }
      const reply = apply();
      await clock.sleep(5 + random.next() * 40);
      if (isDead()) throw UNREACHABLE;
      return reply;
    };

  /** One call by the cron of a host, which may be killed at any moment; the first host never is. */
  const call = async (host: number, offMs: number) => {
    const killAfterMs = host > 0 && chance(0.2) ? random.next() * 15_000 : Number.POSITIVE_INFINITY;
    const killAt = clock.monotonic() + killAfterMs;
    const isDead = () => clock.monotonic() >= killAt;
    const { once } = scene.process({ offMs, network: network(isDead) });
    const stop = new AbortController();
    if (killAfterMs < PERIOD) void clock.sleep(killAfterMs).then(() => stop.abort(UNREACHABLE));
    for (;;) {
      const run = await once({ every: PERIOD, retry, signal: stop.signal });
      if (run === undefined || isDead()) return;
      if (!run.isValid()) continue;
      const begun = clock.monotonic();
      const row = { tick: run.tick, at: begun, until: Number.POSITIVE_INFINITY, host, end: 'killed' };
      runs.push(row);
      lastTick = run.tick;
      const worksMs = 500 + random.next() * 8_000;
      // The work ends with the process, and before the deadline: the guard sees to that.
      while (!isDead() && run.isValid() && clock.monotonic() < begun + worksMs) await clock.sleep(20);
      row.until = clock.monotonic();
      if (isDead()) {
        faults.kills += 1;
        return;
      }
      row.end = !run.isValid() ? 'lost' : retry > 0 && chance(0.1) ? 'failed' : 'done';
      if (row.end === 'done' && (await run.complete())) row.end = isDead() ? 'killed' : 'succeeded';
      await run[Symbol.asyncDispose]();
      if (row.end === 'succeeded' || run.attempt > retry) return;
    }
  };

  const begun = clock.now();
  const cron = async (host: number) => {
    // Whole minutes and some seconds: the crons come together, before the tick and after it.
    const offMs = Math.round((random.next() * 2 - 1) * 60) * PERIOD + (random.next() * 4 - 2) * 1_000;
    for (let tick = 0; tick < ticks; tick += 1) {
      const at = begun + offMs + (tick + 1) * PERIOD;
      // By its own clock, at the minute; a cron is up to two seconds late.
      const due = Math.ceil(at / PERIOD) * PERIOD - offMs - begun + random.next() * 2_000;
      await clock.sleep(due - clock.monotonic());
      void call(host, offMs).catch(() => undefined);
    }
  };
  for (let host = 0; host < HOSTS; host += 1) void cron(host);
  await clock.advance(PERIOD * (ticks + 3));
  return { runs, faults, lastTick, begun };
}

describe('1,000 ticks on five hosts with clocks an hour off, that are killed and lose replies', () => {
  it('start at most once each', async () => {
    const { runs, faults } = await fleet({ ticks: 1_000, seed: 1 });
    console.log(faults, runs.length, new Set(runs.map(r => r.tick)).size);
    const ticks = runs.map(({ tick }) => tick);
    expect(new Set(ticks).size).toBe(ticks.length);
    expect(ticks.length).toBeGreaterThan(900);
    expect(Math.min(faults.kills, faults.lost, faults.late, faults.delayed)).toBeGreaterThan(20);
  }, 300_000);

  it('all run with --retry while a host lives, one at a time, and none after a success', async () => {
    const { runs, faults } = await fleet({ ticks: 1_000, seed: 2, retry: 20 });
    const all = [...new Set(runs.map(r => r.tick))];
    console.log(faults, runs.length, all.length, (Math.max(...all)-Math.min(...all))/PERIOD+1, new Set(runs.filter(r=>r.end==='succeeded').map(r=>r.tick)).size);
    for (const [at, run] of runs.entries()) for (const later of runs.slice(at+1, at+30)) {
      expect(later.at).toBeGreaterThanOrEqual(run.until);
      if (run.end === 'succeeded') expect(later.tick).toBeGreaterThan(run.tick);
    }
  }, 300_000);
});
