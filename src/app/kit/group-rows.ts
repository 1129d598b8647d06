import type { WithZooKeeper } from './call.js';
import type { Command, CommandRow, OptionRow } from './command-row.js';
import { OF_ZOOKEEPER } from './command-settings.js';

/**
 * How to make the rows of a group whose commands all need ZooKeeper.
 *
 * @param shared the options that all of them have, before each one's own
 * @param facts what else they have in common
 */
export function zooKeeperRows(
  group: string,
  shared: readonly OptionRow[],
  facts: Partial<Pick<CommandRow, 'settings' | 'defaults'>> = {},
) {
  return (
    name: string,
    description: string,
    examples: CommandRow['examples'],
    args: CommandRow['arguments'] & {},
    options: readonly OptionRow[],
    load: () => Promise<Command<WithZooKeeper>>,
  ): CommandRow => ({
    name: `${group} ${name}`,
    description,
    arguments: args,
    examples,
    options: [...shared, ...options],
    settings: OF_ZOOKEEPER,
    zookeeper: 'required',
    load,
    ...facts,
  });
}
