import { isTrimmed } from '../support/setup/tiers.js';

/** What is claimed, and the command that tries to refute it: it ends with another code than 0 where that succeeds. */
export interface Proof {
  readonly claim: string;
  /** The command as a reader calls it. */
  readonly by: string;
  readonly command: readonly [program: string, ...args: string[]];
  /** How much was tried, and what was found, by the command's output. */
  readonly figures: (output: string) => readonly [tried: string, found: string];
}

/**
 * @param minutes how long all of it may take, about, on two cores
 */
export function proofs(minutes: number): readonly Proof[] {
  const share = (part: number) => Math.max(0.1, Number((minutes * part).toFixed(1)));
  return [
    simulated('a node id has one holder, and no version comes again', 'shipped', share(0.2)),
    simulated('a shard has one owner, and tokens increase', 'shards', share(0.1)),
    simulated('a task with a sticky key comes back to its id, and all of that', 'sticky', share(0.03)),
    simulated('the same where all report what they observe', 'observed', share(0.03)),
    simulated('the recipes on ZooKeeper exclude, and none hangs', 'recipes', share(0.02)),
    tested('each planted bug is found', 'test/integration/core/lease/planted-bugs.deep.test.ts'),
    tested('the models hold in every state, and each planted mistake is found', 'test/model'),
    harmed('s3', share(0.06)),
    harmed('etcd', share(0.06)),
    explained('s3', share(0.04)),
    explained('etcd', share(0.04)),
    harmed('postgres', share(0.05), '--lossy'),
    {
      claim: 'no unique id is made twice',
      by: 'npm run prove:ids -- --ids 1e8',
      command: ['node', '.harness/test/ids/main.js', '--ids', '1e8'],
      figures: (output) => [first(output, /^([\d,]+ ids)/m), 'none twice'],
    },
    {
      claim: 'tests notice what is changed in what holds a lease',
      by: 'npm run mutate -- src/core/lease/hold',
      command: ['node', 'test/mutation/mutate.js', 'src/core/lease/hold'],
      figures: (output) => [
        first(output, /of (\d+ mutants)/),
        `${first(output, /([\d.]+ %) of/)}, ${first(output, /(\d+) survive/)} survive`,
      ],
    },
  ];
}

function first(output: string, pattern: RegExp): string {
  return pattern.exec(output)?.[1] ?? 'not said';
}

function simulated(claim: string, engine: string, minutes: number): Proof {
  const traced = ['shipped', 'sticky', 'shards'].includes(engine) ? ['--traces'] : [];
  const args = ['--engine', engine, '--seconds', String(Math.round(minutes * 60)), ...traced];
  return {
    claim: traced.length > 0 ? `${claim}; each trace is a path of the model` : claim,
    by: `npm run simulate -- ${args.join(' ')}`,
    command: ['node', '--max-semi-space-size=64', '.harness/test/simulation/main.js', ...args],
    figures: (output) => [
      first(output, /in ([\d,]+ seeds from \d+)/),
      first(output, /^(no violation|\d+ violations?)/m),
    ],
  };
}

function tested(claim: string, ...files: string[]): Proof {
  return {
    claim,
    by: `${isTrimmed ? 'NODELEASE_TEST_DEEP=trimmed ' : ''}npx vitest run --project deep ${files.join(' ')}`,
    command: ['npx', 'vitest', 'run', '--project', 'deep', ...files],
    figures: (output) => [`${first(output, /Tests.*?(\d+) passed/)} tests`, 'all pass'],
  };
}

function harmed(store: string, minutes: number, ...options: string[]): Proof {
  const args = ['--store', store, '--minutes', String(minutes), '--linear', ...options];
  return {
    claim: `processes on ${store} that are harmed hold no id at once`,
    by: `npm run chaos -- ${args.join(' ')}`,
    command: ['node', '.harness/test/chaos/main.js', ...args],
    figures: (output) => [
      `${first(output, /^tenures +([\d,]+)/m)} tenures, ${first(output, /^faults +([\d,]+)/m)} faults`,
      [
        `${first(output, /^overlaps +(\d+)/m)} overlaps`,
        `${first(output, /^repeated versions +(\d+)/m)} repeated versions`,
        `${first(output, /^Porcupine: (\d+)/m)} histories not linear`,
      ].join(', '),
    ],
  };
}

/** The same of library tasks alone, which leave traces. */
function explained(store: string, minutes: number): Proof {
  const args = ['--store', store, '--minutes', String(minutes), '--traces'];
  return {
    claim: `what processes on ${store} that are harmed do to leases is a path of the model`,
    by: `npm run chaos -- ${args.join(' ')}`,
    command: ['node', '.harness/test/chaos/main.js', ...args],
    figures: (output) => [
      `${first(output, /(\d+ events) of \d+ leases/)}, ${first(output, /^faults +([\d,]+)/m)} faults`,
      `${first(output, /^traces +(a path|no path)/m)} of the model`,
    ],
  };
}
