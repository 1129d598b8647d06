import { existsSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { simulateCommand } from './simulate-command.js';
import { emptyTally } from './tally.js';

const PLANT = { name: 'aba', breaks: 'a release writes an empty body' };

/**
 * A thread that simulates nothing: `each` says what becomes of a seed, by throwing, by waiting, or by
 * returning the text of a violation.
 */
const worker = (each: string) => `
import { parentPort, workerData } from 'node:worker_threads';
const control = new Int32Array(workerData.control);
const pulse = new Uint32Array(workerData.pulse);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const each = async (seed) => { ${each} };
parentPort.on('message', async ({ kind, first, count, seed }) => {
  if (kind === 'shrink') {
    const violation = { invariant: 'fencing', at: 2000, text: 'node id 3, the short of it' };
    parentPort.postMessage({ kind: 'shrunk', violation, hosts: ['host 1'], faults: ['one', 'two'], of: { hosts: 8, faults: 30 }, runs: 17, minimal: true, history: ['    1.000 s  task 1.1   #1 list ', '    2.000 s  VIOLATION  fencing'] });
    return;
  }
  const tally = ${JSON.stringify(emptyTally('shipped'))};
  let violated;
  for (let seed = first; seed < first + count && violated === undefined && Atomics.load(control, 1) === 0; seed += 1) {
    Atomics.store(pulse, 0, seed);
    Atomics.add(pulse, 1, 1);
    const text = await each(seed);
    tally.seeds += 1;
    tally.tenures += 1000;
    tally.faults.pause.times += 2;
    tally.faults.pause.seeds += 1;
    tally.faults['clock-drift'].times += 1;
    tally.faults['clock-drift'].seeds += 1;
    if (text === undefined) continue;
    tally.violations += 1;
    violated = { seed, violation: { invariant: 'fencing', at: 12345, text } };
  }
  parentPort.postMessage({ kind: 'ran', tally, violated, histories: workerData.recording ? [{ seed: first, lines: ['what happened'] }] : [] });
});
parentPort.postMessage({ kind: 'ready' });
`;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-simulate-'));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Aborts once a seed has written that file. */
function onceThere(path: string): AbortSignal {
  const controller = new AbortController();
  void expect
    .poll(() => existsSync(path))
    .toBe(true)
    .then(() => controller.abort());
  return controller.signal;
}

async function command(
  each: string,
  line: string,
  more: { columns?: number; interrupted?: AbortSignal } = {},
) {
  await writeFile(join(folder, 'seed-worker.js'), worker(each));
  const written = { out: '', err: '' };
  const planted: string[] = [];
  const url = pathToFileURL(`${folder}/`);
  const exitCode = await simulateCommand(
    line.split(' ').filter((word) => word !== ''),
    {
      folder: line.includes('--plant') ? new URL('nowhere/', url) : url,
      plants: [PLANT],
      plantTree: async ({ name }) => {
        planted.push(name);
        return pathToFileURL(folder);
      },
    },
    {
      stdout: (text) => {
        written.out += text;
      },
      stderr: (text) => {
        written.err += text;
      },
      columns: () => more.columns,
      interrupted: more.interrupted ?? new AbortController().signal,
    },
  );
  return { exitCode, planted, ...written };
}

describe('the simulation, without a violation', () => {
  it('exits with 0 and reports every kind of fault, how many seeds and how fast', async () => {
    const { exitCode, out, err } = await command('', '--seeds 100 --from 5 --jobs 2');
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' });
    expect(out).toMatch(/^100 seeds from 5 · 8 hosts × 4 ids × 75s · 2 jobs\n/);
    expect(out).toMatch(/\nseeds +100\ntenures +100,000\n/);
    expect(out).toMatch(/\nseeds\/s +[\d,.]+\nseeds\/s, each job +[\d,.]+\nseeds\/CPU second +[\d,.]+\n/);
    expect(out).toMatch(/\npause +200 +100\n/);
    expect(out).toMatch(/\nclock-drift +100 +100\n/);
    expect(out).toMatch(/\nfreeze +0 +0\n/);
    expect(out).toMatch(/\nno violation in 100 seeds from 5\n$/);
  });

  it('ends when the time is up that it was given', async () => {
    const { exitCode, out } = await command('await sleep(100)', '--seconds 0.3 --from 5 --jobs 2');
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^seeds for 0.3 s from 5 /);
    const seeds = Number(/\nseeds +(\d+)\n/.exec(out)?.[1]);
    expect(seeds).toBeGreaterThan(0);
    expect(seeds).toBeLessThan(50);
  });

  it('shows its progress on a terminal, in one line, cut to its width, and takes it away', async () => {
    const begun = performance.now();
    const { err } = await command('await sleep(2)', '--seeds 400 --from 5 --jobs 1', { columns: 30 });
    const tookMs = performance.now() - begun;
    const lines = err.split('\r\x1b[K');
    expect(lines[1]).toMatch(/^\d+ of 400 · \d+(\.\d)? seeds\/s · /);
    expect(lines.at(-1)).toBe('');
    expect(err).not.toContain('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBe(29);
    // Eight seeds of 2 ms each: every chunk would be more often than every 100 ms.
    expect(lines.length).toBeLessThan(5 + tookMs / 100);
  });
});

describe('the simulation, with a violation', () => {
  it('exits with 1, names the seed and the invariant, and says how to replay it with the same options', async () => {
    const { exitCode, out } = await command(
      "if (seed === 23) return 'two at once'",
      '--seeds 100 --from 5 --jobs 1 --hosts 9 --span 2m --only pause,slow',
    );
    expect(exitCode).toBe(1);
    expect(out).toContain('\nVIOLATION in seed 23, 12.345 s: fencing\ntwo at once\n');
    expect(out).toContain(
      '\nit still happens with 1 of 8 hosts and 2 of 30 faults (17 runs; none of them can be left out):\n',
    );
    expect(out).toContain(
      '\n    2.000 s  VIOLATION  fencing\n(1 line left out: reads, listings, marks of waiting tasks, and renewals and unique ids of other node ids)\n',
    );
    expect(out).toMatch(
      /\n {2}npm run simulate -- --seeds 1 --from 23 --only pause,slow --hosts 9 --span 2m\n$/,
    );
  });

  it('reports the lowest seed that fails, however many threads there are and whichever is faster', async () => {
    const each =
      "if (seed === 9) { await sleep(150); return 'late'; } if (seed === 13 || seed > 30) return 'early';";
    for (const jobs of [1, 2, 4]) {
      const { exitCode, out } = await command(each, `--seeds 1000 --from 5 --jobs ${jobs} --no-shrink`);
      expect({ exitCode, out }).toMatchObject({
        exitCode: 1,
        out: expect.stringContaining('VIOLATION in seed 9,'),
      });
    }
  });

  it('runs no further seeds', async () => {
    const { out } = await command(
      "if (seed === 20) return 'two at once'",
      '--seeds 100000 --from 0 --jobs 1 --no-shrink',
    );
    expect(out).toMatch(/\nseeds +21\n/);
    expect(out).not.toContain('it still happens');
  });

  it('is looked for in the planted code, and replayed with it', async () => {
    const { exitCode, out, planted } = await command(
      "return 'two at once'",
      '--seeds 3 --from 5 --jobs 1 --plant aba',
    );
    expect({ exitCode, planted }).toEqual({ exitCode: 1, planted: ['aba'] });
    expect(out).toMatch(/^3 seeds from 5 .* · planted aba: a release writes an empty body\n/);
    expect(out).toContain('npm run simulate -- --seeds 1 --from 5 --plant aba\n');
  });

  it('goes as one JSON object to standard output, and the header to standard error', async () => {
    const { exitCode, out, err } = await command(
      "if (seed === 6) return 'two at once'",
      '--seeds 2 --from 5 --jobs 1 --json --history',
    );
    expect(exitCode).toBe(1);
    expect(err).toMatch(/^2 seeds from 5 /);
    expect(out).toMatch(/^[^\n]+\n$/);
    expect(JSON.parse(out)).toMatchObject({
      from: 5,
      hosts: 8,
      jobs: 1,
      interrupted: false,
      seeds: 2,
      violations: 1,
      faults: { pause: { times: 4, seeds: 2 }, 'clock-drift': { times: 2, seeds: 2 } },
      seedsPerSecond: expect.any(Number),
      violation: {
        seed: 6,
        invariant: 'fencing',
        at: 12_345,
        text: 'two at once',
        shrunk: { hosts: ['host 1'], faults: ['one', 'two'], of: { hosts: 8, faults: 30 }, minimal: true },
        replay: 'npm run simulate -- --seeds 1 --from 6',
      },
      histories: [{ seed: 5, lines: ['what happened'] }, { seed: 6 }],
    });
  });
});

describe('the simulation, when something else goes wrong', () => {
  it('exits with 70 and names the seeds and the seed of a thread that dies', async () => {
    const { exitCode, err } = await command(
      "if (seed === 7) throw new Error('no such luck')",
      '--seeds 8 --from 5 --jobs 2',
    );
    expect(exitCode).toBe(70);
    expect(err).toMatch(/^simulate: the thread of seeds \d+ to \d+ died, at seed 7: no such luck\n$/);
  });

  it('exits with 70 when a thread ends without a word', async () => {
    const { exitCode, err } = await command('process.exit(3)', '--seeds 1 --from 5');
    expect(exitCode).toBe(70);
    expect(err).toMatch(/^simulate: the thread of seeds 5 to 5 ended with exit code 3, at seed 5\n$/);
  });

  it('reports what there is so far when it is interrupted, and exits with 130', async () => {
    const seen = join(folder, 'seen');
    const each = `await sleep(20); if (seed > 15) (await import('node:fs')).writeFileSync(${JSON.stringify(seen)}, '')`;
    const { exitCode, out } = await command(each, '--seeds 100000 --from 5 --jobs 2', {
      interrupted: onceThere(seen),
    });
    expect(exitCode).toBe(130);
    expect(out).toMatch(/\nseeds +[1-9]\d*\n/);
    expect(out).toContain('\ninterrupted: this is the report so far\nno violation in ');
  });

  it('does not let an interruption hide a violation', async () => {
    const begun = join(folder, 'begun');
    const goOn = join(folder, 'go-on');
    const each = `const fs = await import('node:fs'); fs.writeFileSync(${JSON.stringify(begun)}, ''); while (!fs.existsSync(${JSON.stringify(goOn)})) await sleep(5); return 'two at once'`;
    const interrupted = onceThere(begun);
    interrupted.addEventListener('abort', () => writeFileSync(goOn, ''));
    const { exitCode, out } = await command(each, '--seeds 100 --from 5 --jobs 1', { interrupted });
    expect(exitCode).toBe(1);
    expect(out).toContain('interrupted');
    expect(out).toContain('VIOLATION in seed 5');
  });

  it('exits with 64 for a wrong call, and says in one line what was expected', async () => {
    const { exitCode, out, err } = await command('', '--plant abba');
    expect({ exitCode, out }).toEqual({ exitCode: 64, out: '' });
    expect(err).toMatch(
      /^simulate: .*--plant.*expected one of aba \(a release writes an empty body\), got "abba"\n$/i,
    );
  });

  it('lists what can be planted, and explains itself, with exit code 0', async () => {
    expect(await command('', '--list-plants')).toMatchObject({
      exitCode: 0,
      out: 'aba  a release writes an empty body\n',
    });
    expect(await command('', '--help')).toMatchObject({
      exitCode: 0,
      out: expect.stringContaining('--seeds <n>'),
    });
  });
});
