// `npm run bench:storm`: what it costs and how long it takes when many tasks start at once. Exits with 1
// where a promise is not kept.

import { cpus } from 'node:os';
import { explain } from '../../src/core/base/errors.js';
import { useQuickAbort } from '../../test/simulation/world/quick-abort.js';
import { startMinio } from '../../test/support/servers/minio.js';
import { s3StoreServer } from '../../test/support/stores/s3-store-server.js';
import { startStoreServer } from '../../test/support/stores/start-store-server.js';
import { SERVER_KINDS } from '../../test/support/stores/store-server.js';
import { type Cell, memoryCell } from './cell.js';
import { type Part, readOptions, type StormCommand, USAGE, UsageError } from './options.js';
import { writePage } from './page.js';
import { largeCells, memoryCells, type ServerCell, s3Cells, serverCells, surplusRows } from './parts.js';
import {
  isKept,
  largePromises,
  memoryPromises,
  type Promised,
  s3Promises,
  serverPromises,
  surplusPromises,
} from './promises.js';
import { comparisonTable, kindTable, serverTable, surplusTable } from './tables.js';

// The SDK's warning that it will need a newer Node one day is of no use in a measurement.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

const EX_USAGE = 64;
const EX_SOFTWARE = 70;

/** What a part of the benchmark came to. */
interface Outcome {
  readonly title: string;
  /** By their names in the documentation. */
  readonly tables: Readonly<Record<string, string>>;
  readonly promises: readonly Promised[];
  readonly cells: readonly Cell[];
}

const print = (text: string) => process.stdout.write(`${text}\n`);
const progress = (text: string) => void (process.stderr.isTTY && process.stderr.write(`${text}\n`));

try {
  await main(readOptions(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`storm: ${explain(error)}\n`);
  process.exitCode = error instanceof UsageError ? EX_USAGE : EX_SOFTWARE;
}

async function main(command: StormCommand | 'help'): Promise<void> {
  if (command === 'help') return void process.stdout.write(USAGE);
  if (command.places === undefined) return benchmark(command);
  const cells: Cell[] = [];
  for (const place of command.places) cells.push(await quickly(() => memoryCell(place, command.seeds)));
  print(kindTable(cells));
}

async function benchmark(command: StormCommand): Promise<void> {
  print(`Node ${process.version}, ${cpus()[0]?.model ?? 'an unknown processor'}, ${cpus().length} threads`);
  const outcomes: Outcome[] = [];
  for (const part of command.parts) {
    const outcome = await measure(part, command);
    print(`\n${outcome.title}\n\n${Object.values(outcome.tables).join('\n\n')}`);
    outcomes.push(outcome);
  }
  print('');
  for (const promised of outcomes.flatMap(({ promises }) => promises)) {
    if (!isKept(promised)) process.exitCode = 1;
    const { what, value, side, bound } = promised;
    print(`${isKept(promised) ? 'ok  ' : 'FAIL'}  ${what}: ${value.toFixed(2)}, at ${side} ${bound}`);
  }
  if (!command.write) return;
  const tables = Object.assign({}, ...outcomes.map((outcome) => outcome.tables));
  writePage(
    tables,
    outcomes.find(({ cells }) => cells.some(({ starters }) => starters === 1_000))?.cells ?? [],
  );
}

async function measure(part: Part, { seeds }: StormCommand): Promise<Outcome> {
  switch (part) {
    case 'memory': {
      const cells = await quickly(() => memoryCells(seeds, progress));
      const title = `On the memory store, as far away as S3: ${seeds.seeds} storms each, one of the plain scan with 1,000 tasks.`;
      const ours = cells.filter(({ contestant }) => contestant !== 'plain');
      return {
        title,
        tables: { memory: comparisonTable(cells), kinds: kindTable(ours) },
        promises: memoryPromises(cells),
        cells,
      };
    }
    case 'large': {
      const cells = await quickly(() => largeCells(seeds, progress));
      return {
        title: 'On the largest cluster.',
        tables: { large: kindTable(cells) },
        promises: largePromises(cells),
        cells: [],
      };
    }
    case 'surplus': {
      const rows = await quickly(() => surplusRows(seeds, progress));
      return {
        title: 'More tasks than node ids.',
        tables: { surplus: surplusTable(rows) },
        promises: surplusPromises(rows),
        cells: [],
      };
    }
    case 's3': {
      const server = await startMinio();
      try {
        const cells = await s3Cells(s3StoreServer(server), progress);
        return {
          title: `On ${server.description}.`,
          tables: { s3: comparisonTable(cells) },
          promises: s3Promises(cells),
          cells: [],
        };
      } finally {
        await server.stop();
      }
    }
    case 'servers': {
      const s3 = await startMinio();
      try {
        const cells: ServerCell[] = [];
        for (const kind of SERVER_KINDS) {
          const server = await startStoreServer(kind, s3);
          try {
            cells.push(...(await serverCells(server, progress)));
          } finally {
            await server.stop();
          }
        }
        return {
          title: 'On a server of each kind.',
          tables: { servers: serverTable(cells) },
          promises: serverPromises(cells),
          cells: [],
        };
      } finally {
        await s3.stop();
      }
    }
  }
}

/** With abort signals that cost less, as in simulations; not for what is done over a network. */
async function quickly<T>(work: () => Promise<T>): Promise<T> {
  const undo = useQuickAbort();
  try {
    return await work();
  } finally {
    undo();
  }
}
