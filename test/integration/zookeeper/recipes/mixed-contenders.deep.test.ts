import { afterEach, expect, inject, test } from 'vitest';
import { stopLinePeers } from '../../../support/peers/line-peer.js';
import {
  type ContenderReport,
  type Contest,
  type RecipeKind,
  startCuratorRecipes,
  startKazooRecipes,
  startOurRecipes,
} from '../../../support/peers/recipe-peer.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import { contenders } from './recipe-suite.js';

const { connect } = inject('zookeeper');
const FOR_MS = 60_000;

/** A tenure of one of them, by the numbers of transactions. */
interface Held {
  readonly contender: string;
  readonly shared: boolean;
  readonly token: bigint;
  readonly from: bigint;
  readonly to: bigint;
}

afterEach(async () => {
  await Promise.all([closeClients(), stopLinePeers()]);
});

type Starter = typeof startOurRecipes;

/** Processes of contenders, each of which has a session of its own, contend at the same time. */
async function contest(
  path: string,
  processes: readonly (readonly [Starter, Omit<Contest, 'path' | 'witness'>])[],
): Promise<ContenderReport[]> {
  const peers = await Promise.all(processes.map(([start]) => start({ connect })));
  const reported = processes.map(
    ([, each], index) => peers[index]?.contend({ ...each, path, witness: `${path}-witness/${index}` }) ?? [],
  );
  return (await Promise.all(reported)).flat();
}

/** In the order of their beginnings. */
function tenures(reports: readonly ContenderReport[]): Held[] {
  const all = reports.flatMap(({ contender, kind, tenures: had }) =>
    had.map(({ token, from, to }) => ({
      contender,
      shared: kind === 'read',
      token: BigInt(token),
      from: BigInt(from),
      to: BigInt(to),
    })),
  );
  return all.sort((a, b) => (a.from < b.from ? -1 : 1));
}

/** Pairs of tenures at the same time of which one excludes the other. */
function overlaps(all: readonly Held[]): string[] {
  const found: string[] = [];
  let open: Held[] = [];
  for (const next of all) {
    open = open.filter(({ to }) => to > next.from);
    for (const held of open)
      if (!(held.shared && next.shared))
        found.push(`${next.contender} within ${held.contender} at ${next.from}`);
    open.push(next);
  }
  return found;
}

/**
 * Tenures that began before one with a lower token, which had come earlier, although one of the two excludes
 * the other.
 */
function overtaken(all: readonly Held[]): string[] {
  const found: string[] = [];
  let highest = 0n;
  let highestOfWriters = 0n;
  for (const { contender, shared, token } of all) {
    if (token < (shared ? highestOfWriters : highest)) found.push(`${contender} with ${token}`);
    if (token > highest) highest = token;
    if (!shared && token > highestOfWriters) highestOfWriters = token;
  }
  return found;
}

test.each<[string, readonly RecipeKind[]]>([
  ['a lock', ['lock']],
  ['a read/write lock', ['write', 'read', 'read']],
])(
  '50 contenders of Java, nodelease and kazoo for %s: one at a time, each in its turn, none stuck, nothing left',
  { timeout: FOR_MS + 120_000 },
  async (_, kinds) => {
    const path = `${uniqueChroot('mixed')}/it`;
    const ofJava = { kinds, count: 20, forMs: FOR_MS };
    const ofOthers = { kinds, count: 10, forMs: FOR_MS };
    const reports = await contest(path, [
      [startCuratorRecipes, ofJava],
      [startOurRecipes, ofOthers],
      [startOurRecipes, ofOthers],
      [startKazooRecipes, ofOthers],
    ]);
    const all = tenures(reports);
    expect(reports).toHaveLength(50);
    for (const { contender, tenures: had } of reports)
      expect(`${contender}: ${had.length > 0}`).toBe(`${contender}: true`);
    expect(overlaps(all)).toEqual([]);
    expect(overtaken(all)).toEqual([]);
    expect(await contenders(path)).toBe(0);
    expect(await client(connect).children(path)).toEqual([]);
  },
);

test('the judgement finds the overlaps where Java does not see kazoo’s own names, and kazoo gets Java’s', async () => {
  const path = `${uniqueChroot('mixed')}/it`;
  const reports = await contest(path, [
    [startCuratorRecipes, { kinds: ['lock'], count: 5, forMs: 5_000 }],
    [startKazooRecipes, { kinds: ['lock-extra'], count: 5, forMs: 5_000 }],
  ]);
  expect(overlaps(tenures(reports)).length).toBeGreaterThan(0);
});
