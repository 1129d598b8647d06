import { availableParallelism } from 'node:os';
import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { listPlants, readOptions } from './simulate-options.js';

const PLANTS = [
  { name: 'aba', breaks: 'a release writes an empty body' },
  { name: 'no-grace', breaks: 'a contender does not wait for the grace' },
];

function read(...args: string[]) {
  const written = { out: '', err: '' };
  const write = {
    out: (text: string) => {
      written.out += text;
    },
    err: (text: string) => {
      written.err += text;
    },
  };
  try {
    return { ...written, options: readOptions(args, PLANTS, write), exitCode: undefined };
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { ...written, options: undefined, exitCode: error.exitCode };
  }
}

describe('the options of the simulation', () => {
  it('are 1,000 seeds of 8 hosts, 4 ids and 75 s on all cores unless they say otherwise', () => {
    const { options } = read();
    expect(options).toMatchObject({
      seeds: 1_000,
      maxMs: undefined,
      plant: undefined,
      engine: 'shipped',
      only: undefined,
      jobs: availableParallelism(),
      size: { hosts: 8, ids: 4, spanMs: 75_000 },
      traces: false,
      history: false,
      shrink: true,
      json: false,
      listPlants: false,
    });
  });

  it('begin at another seed every time, below 2^31, unless they name one', () => {
    const seeds = Array.from({ length: 20 }, () => read().options?.from ?? -1);
    expect(new Set(seeds).size).toBeGreaterThan(15);
    expect(seeds.every((seed) => seed >= 0 && seed < 2 ** 31)).toBe(true);
    expect(read('--from', '4294967295', '--seeds', '1').options?.from).toBe(2 ** 32 - 1);
  });

  it('can all be given', () => {
    const line =
      '--seeds 5 --from 7 --plant aba --engine shards --only pause,slow --jobs 3 --hosts 20 --ids 9 --span 2.5m --traces --history --no-shrink --json';
    expect(read(...line.split(' ')).options).toMatchObject({
      seeds: 5,
      from: 7,
      plant: 'aba',
      only: ['pause', 'slow'],
      jobs: 3,
      size: { hosts: 20, ids: 9, spanMs: 150_000 },
      traces: true,
      history: true,
      shrink: false,
      json: true,
    });
  });

  it('with --seconds go on for that time, and never past the last seed there is', () => {
    expect(read('--seconds', '2.5', '--from', '0').options).toMatchObject({
      maxMs: 2_500,
      seeds: 100_000_000,
    });
    expect(read('--seconds', '2.5', '--from', '4294967290').options).toMatchObject({ seeds: 6 });
  });

  it.each([
    ['--seeds 0', /--seeds.*whole number from 1 to 100000000, got "0"/],
    ['--seeds 1.5', /--seeds.*whole number from 1 to 100000000, got "1.5"/],
    ['--seeds -3', /--seeds.*whole number/],
    ['--seeds', /--seeds.*argument missing/],
    ['--seeds 5 --seconds 5', /--seconds.*cannot be used with.*--seeds/],
    ['--seconds 0', /--seconds.*a number from 0.1 to 1000000, got "0"/],
    ['--from 4294967296', /--from.*whole number from 0 to 4294967295, got "4294967296"/],
    ['--from 4294967295 --seeds 2', /--from: expected at most 4294967294 for 2 seeds, got 4294967295/],
    ['--plant abba', /--plant.*one of aba \(a release writes an empty body\); no-grace \(.*\), got "abba"/],
    ['--engine fast', /--engine.*one of shipped.*got "fast"/],
    ['--only pause,stop', /--only.*kinds of faults \(.*pause.*\), got "stop"/],
    ['--only ', /--only.*kinds of faults/],
    ['--jobs 0', /--jobs.*whole number from 1 to 256, got "0"/],
    ['--hosts 0', /--hosts.*whole number from 1 to 10000, got "0"/],
    ['--ids 0', /--ids.*whole number from 1 to 10000, got "0"/],
    ['--span 60', /--span.*a time from 65s to 24h, got "60"/],
    ['--span 64s', /--span.*a time from 65s to 24h, got "64s"/],
    ['--history --seconds 3', /--history: expected --seeds from 1 to 1000/],
    ['--history --seeds 2000', /--history: expected --seeds from 1 to 1000/],
    [
      '--traces --engine observed',
      /--traces: expected one of shipped, sticky, shards as --engine, got observed/,
    ],
    ['--sedes 5', /unknown option '--sedes'/],
    ['5', /too many arguments/],
  ])('refuse "%s" in one line that says what was expected', (line, says) => {
    const { err, options, exitCode } = read(...line.split(' '));
    expect(options).toBeUndefined();
    expect(exitCode).toBeGreaterThan(0);
    expect(err).toMatch(/^simulate: [^\n]*\n$/);
    expect(err).toMatch(says);
  });

  it('explain themselves, without that being a failure', () => {
    const { out, exitCode } = read('--help');
    expect(exitCode).toBe(0);
    for (const option of ['--seeds', '--seconds', '--from', '--plant', '--only', '--history', '--json'])
      expect(out).toContain(option);
  });

  it('list the bugs that can be planted with what they break', () => {
    expect(listPlants(PLANTS)).toBe(
      'aba       a release writes an empty body\nno-grace  a contender does not wait for the grace\n',
    );
  });
});
