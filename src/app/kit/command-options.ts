import { environmentName, SETTINGS } from '../settings/settings-table.js';
import type { CommandRow, OptionRow } from './command-row.js';

/** An option with its heading in the help, where that is not the one of the command's own options. */
export type GroupedOption = readonly [
  flags: string,
  help: string,
  more: OptionRow[2] & { readonly group?: string; readonly choices?: readonly string[] | undefined },
];

/** All options of a command: its own, and its settings in the order of their table. */
export function optionsOf({ options = [], settings, defaults = {} }: CommandRow): GroupedOption[] {
  const own = options.map(([flags, help, more = {}]): GroupedOption => [flags, help, more]);
  const rows = SETTINGS.filter(({ name }) => settings.includes(name));
  const others = rows.map(({ name, group, sentence, kind, default: usual, repeatable }): GroupedOption => {
    const standard = defaults[name] ?? usual;
    const facts = [kind.range, standard && `default: ${standard}`]
      .filter((fact) => fact !== undefined)
      .join('; ');
    const help = `${sentence}${facts && ` (${facts})`} [${environmentName(name)}]`;
    const flag = kind.argument === undefined ? `--${name}` : `--${name} <${kind.argument}>`;
    return [flag, help, { group, choices: kind.choices, ...(repeatable && { repeatable }) }];
  });
  return [...own, ...others];
}

/** The examples of a command, below its help. */
export function examplesOf({ examples, zookeeper }: CommandRow): string {
  return examplesText(
    zookeeper === 'required' ? 'Examples, with NODELEASE_ZOOKEEPER=zk1:2181,zk2:2181' : 'Examples',
    examples,
  );
}

export function examplesText(heading: string, examples: readonly string[]): string {
  return [`\n${heading}:`, ...examples.map((example) => `  $ nodelease ${example}`)].join('\n');
}
