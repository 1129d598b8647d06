// `npm run bench:shards`: what shards cost, compared with a lease for each shard, in virtual time. Exits
// with 1 where a promise is not kept.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { useQuickAbort } from '../../test/simulation/world/quick-abort.js';
import { packageRoot } from '../../test/support/package-root.js';
import { writeTables } from '../storm/page.js';
import { isKept } from '../storm/promises.js';
import { countCosts } from './count-costs.js';
import { shardPromises } from './promises.js';
import { changeTable, shardChart, steadyTable } from './tables.js';

const { shards, write, ...fleet } = new Command('npm run bench:shards --')
  .option('--nodes <n>', 'nodes of the fleet', Number, 100)
  .option('--shards <list>', 'numbers of shards', '64,256,1024,4096')
  .option('--crashes <n>', 'nodes that crash, one after the other', Number, 3)
  .option('--seed <s>', 'decides how long each request takes, and what nodes draw', Number, 1)
  .option(
    '--write',
    'puts the tables into docs/operate/costs.md and docs/design/shards.md, the chart into docs/images',
  )
  .parse()
  .opts<{ nodes: number; shards: string; crashes: number; seed: number; write?: boolean }>();

useQuickAbort();
const rows = await countCosts(shards.split(',').map(Number), fleet, (row) =>
  process.stderr.write(`${steadyTable([row])}\n${changeTable([row])}\n`),
);
const [steady, changes] = [steadyTable(rows), changeTable(rows)];
process.stdout.write(`${steady}\n\n${changes}\n\n`);
for (const promised of shardPromises(rows)) {
  if (!isKept(promised)) process.exitCode = 1;
  const { what, value, side, bound } = promised;
  process.stdout.write(
    `${isKept(promised) ? 'ok  ' : 'FAIL'}  ${what}: ${value.toFixed(2)}, at ${side} ${bound}\n`,
  );
}
if (write) {
  writeTables('docs/operate/costs.md', { 'shards-steady': steady });
  writeTables('docs/design/shards.md', { 'shards-changes': changes });
  writeFileSync(join(packageRoot, 'docs/images/shards.svg'), shardChart(rows));
}
