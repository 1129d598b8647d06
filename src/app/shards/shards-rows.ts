import { type CommandRow, JSON_LINE, OF_STORE } from '../kit/command-row.js';

/** The commands on shards. */
export const SHARDS_COMMANDS: readonly CommandRow[] = [
  {
    name: 'shards',
    door: 'Shards',
    description: 'show which node owns which shard, and what is waited for',
    examples: ['shards --store s3://bucket/prefix --watch', 'shards --json'],
    options: [JSON_LINE, ['--watch', 'look again every second, until interrupted']],
    settings: OF_STORE,
    load: async () => (await import('./shards-command.js')).shardsCommand,
  },
];
