// `npm run simulate`: the part that touches the process.

import { ALL_PLANTS } from './all-plants.js';
import { MUSEUM_PLANTS } from './museum-plants.js';
import { plantTree } from './plant-tree.js';
import { simulateCommand } from './seeds/simulate-command.js';

const interruption = new AbortController();
// The second one ends the process at once, as if there were no listener.
process.once('SIGINT', () => interruption.abort());
// A reader that has read enough, such as head, wants no more.
process.stdout.on('error', () => process.exit());

let written = Promise.resolve();

process.exitCode = await simulateCommand(
  process.argv.slice(2),
  { folder: new URL('./', import.meta.url), plants: [...ALL_PLANTS, ...MUSEUM_PLANTS], plantTree },
  {
    stdout: (text) => {
      written = new Promise((resolve) => process.stdout.write(text, () => resolve()));
    },
    stderr: (text) => process.stderr.write(text),
    columns: () => (process.stderr.isTTY ? process.stderr.columns || 80 : undefined),
    interrupted: interruption.signal,
  },
);
await written;
