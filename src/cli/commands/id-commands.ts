import { addCommand, type CommandGroup, checkZooKeeperUse } from './command-group.js';
import { addSettings, settingsOf } from './command-settings.js';
import type { DecodeOptions } from './decode-command.js';
import type { IdOptions } from './id-options.js';

/** Adds the commands that are about unique ids: `id` and `decode`. */
export function addIdCommands(group: CommandGroup): void {
  const { io, end } = group;
  const id = addCommand(group, 'id', 'print unique 64-bit ids: acquires a node id, makes them with it, and releases it')
    .option('-n, --count <k>', 'how many, 1 to 1000000000, one on a line', '1')
    .option('--format <name>', 'decimal, base32 (13 digits) or hex (16 digits)', 'decimal')
    .option('--layout <name>', 'cluster16, with as many bits for a node id as the cluster has, or snowflake (41/10/12)', 'cluster16')
    .option('--epoch <ms>', 'with --layout snowflake: what the time counts from, in milliseconds since 1970 (default: 1288834974657)')
    .addHelpText('after', '\nOnly warnings are logged unless a log level is given. A fixed node id (NODELEASE_NODE_ID) is of no use here.')
    .action(async (options: IdOptions) => {
      const { readIdOptions } = await import('./id-options.js');
      const wanted = readIdOptions(options, io.env);
      const settings = settingsOf(id, io);
      checkZooKeeperUse(id, settings);
      const { idCommand } = await import('./id-command.js');
      end(await idCommand(wanted, settings, io));
    });
  addSettings(id);

  addCommand(group, 'decode', 'take a unique id apart: its time, its node, its place in the sequence')
    .argument('<id>', 'the id: decimal, 13 base-32 digits, or 16 hex digits')
    .option('--width <bits>', 'how many bits a node id had when the id was made, 8 to 16: nodelease status tells how many it has now')
    .option('--layout <name>', 'cluster16, or snowflake (default: cluster16)')
    .option('--epoch <ms>', 'with --layout snowflake: what the time counts from, in milliseconds since 1970 (default: 1288834974657)')
    .option('--json', 'one JSON object, on one line')
    .action(async (text: string, options: DecodeOptions) => {
      const { decodeCommand } = await import('./decode-command.js');
      end(decodeCommand(text, options, io));
    });
}
