import { parseArgs } from 'node:util';
import { explain } from '../../src/core/base/errors.js';
import type { Place, SeedRange } from './cell.js';
import { CLUSTERS, type ClusterName } from './clusters.js';
import { CONTESTANTS, type ContestantName } from './contestants.js';

/** What of the benchmark is wanted. */
export const PARTS = ['memory', 'large', 'surplus', 's3', 'servers'] as const;
export type Part = (typeof PARTS)[number];

export interface StormCommand {
  /** These storms on the memory store alone, and nothing is judged; undefined for the benchmark. */
  readonly places: readonly Place[] | undefined;
  readonly parts: readonly Part[];
  readonly seeds: SeedRange;
  /** Whether to put tables and chart into the documentation. */
  readonly write: boolean;
}

/** The command line is wrong. */
export class UsageError extends Error {}

const DEFAULT_SEEDS = 5;

export const USAGE = `usage: npm run bench:storm -- [options]

Lets many tasks start at once, and compares nodelease with a plain scan of the node ids: requests, time, dollars.

  --parts LIST       ${PARTS.join(', ').padEnd(45)} (all)
  --seeds N          storms on the memory store, of each kind              (${DEFAULT_SEEDS})
  --from S           the first seed                                        (1)
  --write            puts the tables into docs/design/boot-storms.md, the chart into docs/images

Storms of some kinds alone, on the memory store, without a judgement:

  --starters LIST    how many tasks
  --cluster LIST     ${Object.keys(CLUSTERS).join(', ')}
  --contestant LIST  ${Object.keys(CONTESTANTS).join(', ')}

Exits with 1 where a promise is not kept, with 64 for a wrong call.
`;

/**
 * Reads a command line.
 *
 * @returns 'help' where that is wanted
 * @throws {UsageError}
 */
export function readOptions(args: readonly string[]): StormCommand | 'help' {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const values = parsed(() => {
    const options = {
      parts: text,
      seeds: text,
      from: text,
      write: flag,
      starters: text,
      cluster: text,
      contestant: text,
      help: flag,
    };
    return parseArgs({ args: [...args], options }).values;
  });
  if (values.help) return 'help';
  const { starters, cluster, contestant, parts, write = false } = values;
  const some = starters ?? cluster ?? contestant;
  if (some !== undefined && (parts !== undefined || write))
    throw new UsageError('--parts, --write: not with --starters, --cluster, --contestant');
  const chosen =
    parts === undefined ? PARTS : each('--parts', parts, (part) => oneOf('--parts', part, PARTS));
  if (write && chosen.length < PARTS.length) throw new UsageError('--write: expected all parts');
  const seeds = {
    from: whole('--from', values.from ?? '1', 0, 2 ** 31),
    seeds: whole('--seeds', values.seeds ?? `${DEFAULT_SEEDS}`, 1, 1_000),
  };
  return {
    places: some === undefined ? undefined : places(starters, cluster, contestant),
    parts: chosen,
    seeds,
    write,
  };
}

function places(
  starters = '10,100,1000',
  cluster = 'empty,just-released,half-full',
  contestant = 'shipped',
): readonly Place[] {
  const counts = each('--starters', starters, (count) => whole('--starters', count, 1, 10_000));
  const clusters = each('--cluster', cluster, (name) =>
    oneOf('--cluster', name, Object.keys(CLUSTERS) as ClusterName[]),
  );
  const contestants = each('--contestant', contestant, (name) =>
    oneOf('--contestant', name, Object.keys(CONTESTANTS) as ContestantName[]),
  );
  return clusters.flatMap((cluster) =>
    counts.flatMap((starters) => contestants.map((contestant) => ({ contestant, cluster, starters }))),
  );
}

function each<T>(option: string, text: string, read: (item: string) => T): readonly T[] {
  const items = text.split(',').map((item) => item.trim());
  if (new Set(items).size !== items.length)
    throw new UsageError(`${option}: expected each once, got ${JSON.stringify(text)}`);
  return items.map(read);
}

function oneOf<Name extends string>(option: string, text: string, names: readonly Name[]): Name {
  const name = names.find((one) => one === text);
  if (name === undefined)
    throw new UsageError(`${option}: expected some of ${names.join(', ')}, got ${JSON.stringify(text)}`);
  return name;
}

function whole(option: string, text: string, least: number, most: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(
    `${option}: expected a whole number from ${least} to ${most}, got ${JSON.stringify(text)}`,
  );
}

function parsed<Values>(parse: () => Values): Values {
  try {
    return parse();
  } catch (error) {
    throw new UsageError(explain(error));
  }
}
