import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installed } from '../installed.js';
import { isTrimmed } from '../setup/tiers.js';

const run = promisify(execFile);

/** How deep SPIN may search; it says so when that is not enough. */
const MAX_DEPTH = 3_000_000;

/** What SPIN says when it has not seen every state. */
const INCOMPLETE =
  /max search depth too small|Search not completed|out of memory|MEMLIM|Bit statespace|Partial Order Reduction/i;

export interface Verification {
  /** Every state was looked at: the search was exhaustive, and nothing cut it short. */
  readonly complete: boolean;
  readonly errors: number;
  readonly states: number;
  readonly depth: number;
  /** The assertion that does not hold. */
  readonly violated: string | undefined;
  readonly output: string;
}

/**
 * Checks a model with SPIN: every state of it, or up to the first violation.
 *
 * @param defines what is defined in the model's preprocessor
 * @throws Error when there is no SPIN and it cannot be installed; tests are never skipped for that
 */
export async function verify(model: string, defines: readonly string[]): Promise<Verification> {
  const { spin, gcc } = await findSpin();
  const cwd = await mkdtemp(join(tmpdir(), 'nodelease-spin-'));
  try {
    await run(spin, [...defines.map((name) => `-D${name}`), '-a', model], { cwd });
    // Without -O: the compiler would take longer than the search.
    await run(gcc, ['-DSAFETY', '-DNOREDUCE', '-w', '-o', 'pan', 'pan.c'], { cwd });
    const { stdout: output } = await run(join(cwd, 'pan'), [`-m${MAX_DEPTH}`], { cwd, maxBuffer: 2 ** 26 });
    return parse(output);
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/**
 * The rows of a page's tables that have what is defined in the model's preprocessor, and how many states SPIN
 * looks at: up to the violation, or all that there are.
 */
export function documentedStates(page: string): ReadonlyMap<string, number> {
  const rows = page.matchAll(/^\| `([A-Z_][A-Z_=\d ]*)` \|.*?\| ([\d,]+) \| [\d,]+ \| [\d.]+ \|$/gm);
  return new Map(
    [...rows].map(([, defines = '', states = '']) => [defines, Number(states.replaceAll(',', ''))]),
  );
}

/** Planted bugs and what finds them: all, and in the trimmed tier the first one that each property finds. */
export function firstOfEach<Property extends string>(
  foundBy: Readonly<Record<string, Property>>,
): [string, Property][] {
  const bugs = Object.entries(foundBy);
  const properties = Object.values(foundBy);
  return isTrimmed ? bugs.filter(([, property], index) => properties.indexOf(property) === index) : bugs;
}

function parse(output: string): Verification {
  const number = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  return {
    complete: output.includes('Full statespace search') && !INCOMPLETE.test(output),
    errors: number(/errors: (\d+)/),
    states: number(/(\d+) states, stored/),
    depth: number(/depth reached (\d+)/),
    violated: /assertion violated\s+(.*) \(at depth/.exec(output)?.[1],
    output,
  };
}

async function findSpin(): Promise<{ spin: string; gcc: string }> {
  const [spin = '', gcc = ''] = (
    await installed('install-spin.sh', [], 'put SPIN 6 and gcc on the PATH')
  ).split('\n');
  return { spin, gcc };
}
