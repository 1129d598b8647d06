import { JSON_LINE, type TableRow } from '../kit/command-row.js';

const ROOT = ['<root>', 'the root, as --data-dir has it'] as const;

/** The group `data-dir` and its commands. */
export const DATA_DIR_COMMANDS: readonly TableRow[] = [
  {
    name: 'data-dir',
    door: 'Look and operate',
    description: 'look at the directories that follow the node ids, and clean up',
  },
  {
    name: 'data-dir ls',
    description:
      "show the versions of each node id's data directory, and which of them `gc` would remove, and why",
    examples: ['data-dir ls /data', 'data-dir ls /data --data-retention 3 --json'],
    arguments: [ROOT],
    options: [JSON_LINE],
    settings: ['data-retention'],
    load: async () => (await import('./data-dir-command.js')).listDataDirs,
  },
  {
    name: 'data-dir gc',
    description: 'remove old versions of data directories, and what an ended task has left unfinished',
    examples: ['data-dir gc /data', 'data-dir gc /data --data-retention 1'],
    arguments: [ROOT],
    options: [JSON_LINE],
    settings: ['data-retention'],
    load: async () => (await import('./data-dir-command.js')).cleanDataDirs,
  },
];
