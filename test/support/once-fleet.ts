import { type Network, onceScene, UNREACHABLE } from './once-scene.js';
import { seededRandom } from './virtual-clock.js';

const HOSTS = 5;
const PERIOD = 60_000;

/** A run of the command, in milliseconds of the clock. */
interface OnceFleetRun {
  readonly tick: number;
  readonly at: number;
  until: number;
  readonly host: number;
  /** `done`: the work had ended, and the process was killed before it learned that this was recorded. */
  end: 'killed' | 'lost' | 'failed' | 'done' | 'succeeded';
}

/** Five hosts whose crons all run the same command for so many ticks, and are killed, and have a bad network. */
export async function onceFleet({ ticks, retry = 0, seed }: { ticks: number; retry?: number; seed: number }) {
  const scene = onceScene();
  const { clock } = scene;
  const random = seededRandom(seed);
  const chance = (share: number) => random.next() < share;
  const runs: OnceFleetRun[] = [];
  const faults = { kills: 0, lost: 0, late: 0, delayed: 0 };

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
      if (chance(0.02)) {
        faults.late += 1;
        void clock.sleep(random.next() * 100_000).then(apply);
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
      const row: OnceFleetRun = {
        ...{ tick: run.tick, at: begun, until: Number.POSITIVE_INFINITY },
        ...{ host, end: 'killed' },
      };
      runs.push(row);
      const worksMs = 500 + random.next() * 8_000;
      // The work ends with the process, and before the deadline: the guard sees to that.
      while (!isDead() && run.isValid() && clock.monotonic() < begun + worksMs) await clock.sleep(20);
      row.until = clock.monotonic();
      if (isDead()) {
        faults.kills += 1;
        return;
      }
      row.end = !run.isValid() ? 'lost' : retry > 0 && chance(0.1) ? 'failed' : 'done';
      if (row.end === 'done' && (await run.complete()) && !isDead()) row.end = 'succeeded';
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
  const startsOf = new Map<number, OnceFleetRun[]>();
  for (const run of runs) startsOf.set(run.tick, [...(startsOf.get(run.tick) ?? []), run]);
  const all = [...startsOf.keys()];
  const from = Math.min(...all);
  const span = (Math.max(...all) - from) / PERIOD + 1;
  return {
    runs,
    faults,
    startsOf,
    /** Ticks between the first one and the last one that no task has started. */
    missed: Array.from({ length: span }, (_, at) => from + at * PERIOD).filter((tick) => !startsOf.has(tick)),
    /** Runs that were started before an earlier one had ended. */
    overlapping: runs.filter((run, at) => runs.slice(0, at).some(({ until }) => until > run.at)),
  };
}
