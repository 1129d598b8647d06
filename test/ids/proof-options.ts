import { parseArgs } from 'node:util';
import { PLANTS, type Plant } from './planted-ids.js';
import { LAYOUTS, type ProofOptions } from './proof-run.js';

const DEFAULTS = {
  ids: '2e7',
  tenures: '60',
  threads: '10',
  nodes: '8',
  speed: '8',
  layout: 'cluster16',
} as const;

export const USAGE = `usage: npm run prove:ids -- [options]

Makes unique ids in threads that take node ids from each other, and looks at every one of them.

  --ids N       how many, 1e9 for one                      (${DEFAULTS.ids})
  --tenures N   how many at least                          (${DEFAULTS.tenures})
  --threads N   that contend for the node ids              (${DEFAULTS.threads})
  --nodes N     node ids, fewer than threads               (${DEFAULTS.nodes})
  --speed N     how many times faster time passes          (${DEFAULTS.speed})
  --layout L    ${Object.keys(LAYOUTS).join(', ').padEnd(42)} (${DEFAULTS.layout})
  --seed N      decides what the threads try               (by chance)
  --plant P     a fault of the generators, to be found:
${Object.entries(PLANTS)
  .map(([name, what]) => `                ${name}: ${what}`)
  .join('\n')}

Exits with 1 where something is wrong with an id, with 64 for a wrong call.
`;

/** What was asked for, or what is wrong with it. */
export function parseProofOptions(
  args: readonly string[],
): ProofOptions | 'help' | { readonly problem: string } {
  const text = { type: 'string' } as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        ids: text,
        tenures: text,
        threads: text,
        nodes: text,
        speed: text,
        layout: text,
        seed: text,
        plant: text,
        help: { type: 'boolean' },
      },
    });
    if (values.help) return 'help';
    const { layout = DEFAULTS.layout, plant } = values;
    if (!isKeyOf(LAYOUTS, layout)) return unknown('--layout', layout, LAYOUTS);
    if (plant !== undefined && !isKeyOf(PLANTS, plant)) return unknown('--plant', plant, PLANTS);
    return {
      ids: whole('--ids', values.ids ?? DEFAULTS.ids, 1, 1e11),
      tenures: whole('--tenures', values.tenures ?? DEFAULTS.tenures, 0, 1e6),
      threads: whole('--threads', values.threads ?? DEFAULTS.threads, 1, 64),
      nodes: whole('--nodes', values.nodes ?? DEFAULTS.nodes, 1, 64),
      speed: whole('--speed', values.speed ?? DEFAULTS.speed, 1, 1_000),
      seed: whole('--seed', values.seed ?? `${Math.floor(Math.random() * 1e9)}`, 0, 2 ** 32),
      layout,
      plant: plant as Plant | undefined,
    };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw new Error(`${name}: expected a whole number from ${least} to ${most}, got ${JSON.stringify(text)}`);
}

function isKeyOf<T extends object>(of: T, name: string): name is keyof T & string {
  return Object.hasOwn(of, name);
}

function unknown(name: string, got: string, known: object): { readonly problem: string } {
  return { problem: `${name}: expected ${Object.keys(known).join(' or ')}, got ${JSON.stringify(got)}` };
}
