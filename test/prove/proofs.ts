/** What is claimed, and the command that tries to refute it. It ends with another code than 0 where that succeeds. */
export interface Proof {
  readonly claim: string;
  readonly by: string;
  readonly command: readonly [program: string, ...args: string[]];
  /** How much was tried, and what was found, by the command's output. */
  readonly figures: (output: string) => readonly [tried: string, found: string];
}

const first = (output: string, pattern: RegExp): string => pattern.exec(output)?.[1] ?? 'not said';

function simulated(claim: string, engine: string, seconds: number, ...options: string[]): Proof {
  const args = ['--engine', engine, ...options];
  return {
    claim,
    by: `\`npm run simulate -- ${args.join(' ')}\``,
    command: [
      'node',
      ...['--max-semi-space-size=64', '.harness/test/simulation/main.js', '--seconds', `${seconds}`, ...args],
    ],
    figures: (output) => [
      first(output, /in (\d+ seeds from \d+)/),
      first(output, /^(no violation|\d+ violations?)/m),
    ],
  };
}

function tested(claim: string, by: string, file: string): Proof {
  return {
    claim,
    by,
    command: ['npx', 'vitest', 'run', '--project', 'deep', file],
    figures: (output) => [`${first(output, /Tests.*?(\d+) passed/)} of them`, 'all'],
  };
}

function harmed(store: string, minutes: number, ...options: string[]): Proof {
  const args = ['--store', store, '--minutes', `${minutes}`, '--linear', ...options];
  return {
    claim: `the same of real processes on ${store}, by an observer outside of them`,
    by: `\`npm run chaos -- ${args.join(' ')}\``,
    command: ['node', '.harness/test/chaos/main.js', ...args],
    figures: (output) => [
      `${first(output, /^tenures +(\d+)/m)} tenures, ${first(output, /^faults +(\d+)/m)} faults`,
      `${first(output, /^overlaps +(\d+)/m)} overlaps, ${first(output, /^repeated versions +(\d+)/m)} repeated versions; Porcupine: ${first(output, /^Porcupine: (\d+)/m)}; audit: ${first(output, /^audit +(.+)$/m)}`,
    ],
  };
}

export const PROOFS: readonly Proof[] = [
  simulated('no node id has two holders, no version comes again; 17 further promises', 'shipped', 600),
  simulated('a shard has one owner', 'shards', 300),
  simulated('a task with a sticky key gets its id back', 'sticky', 120),
  simulated('a holder observed by others ends in time', 'observed', 120),
  simulated('the recipes on ZooKeeper exclude', 'recipes', 60),
];
