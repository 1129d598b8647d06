import { describe, expect, it } from 'vitest';
import type { CommandRow } from '../../kit/command-row.js';
import { environmentName, type NamedSetting, SETTINGS } from '../../settings/settings-table.js';
import { COMMANDS } from './commands.js';

/** These first, and then the others in the order of the help. */
const FIRST = ['run', 'serve', 'id', 'init', 'status', 'scale', 'release', 'doctor', 'console', 'lock'];
const rank = (name: string) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
const ROWS = COMMANDS.filter(({ settings }) => settings.length > 0).sort(
  (a, b) => rank(a.name) - rank(b.name),
);
const having = (setting: NamedSetting['name']) =>
  ROWS.filter(({ settings }) => settings.includes(setting)).map(({ name }) => name);

const INTRODUCTION = `# Settings

Each setting is an option of the command line, \`--name\`, and an environment variable; the option wins. Many are also options of the
library's \`acquire()\`, where a time is a number of milliseconds. An empty variable is an error. A time is a whole number with a unit:
\`500ms\`, \`15s\`, \`2m\`, \`1h\`.

A wrong value ends the command with exit code 64 and a message that names the setting as it was given. \`nodelease COMMAND --help\` shows the
settings of one command.

A value has no control characters, no byte order mark, and neither blanks nor quotes at its ends: an env file with line ends of Windows would
name another store, with the same node ids. Quotes in the env files of Docker are part of the value. JSON may have all of them. Commas
separate the items of a list, without blanks.

Variables that Kubernetes sets for a Service by the name of \`nodelease\` (\`NODELEASE_PORT=tcp://…\`, \`NODELEASE_SERVICE_HOST\`) are no settings.

This page is made from the table in the code (\`src/app/settings/settings-table.ts\`), and a test compares the two:
\`npx vitest run --project unit settings-page -u\` rewrites it.
`;

const code = (text: string) => `\`${text}\``;
const cell = (text: string) => text.replaceAll('|', '\\|');

function row({ name, kind, option, default: standard, sentence, needs, storeOnly }: NamedSetting): string {
  const value = [kind.argument ?? 'switch', kind.range].filter((each) => each !== undefined).join(': ');
  // Of these, `discovery` commands have the path of the services, and no `--service`.
  const of = needs === 'service' ? ` for ${code('run')} and ${code('serve')}` : '';
  const condition = needs === undefined ? '' : `; with ${code(`--${needs}`)} only${of}`;
  const store = storeOnly ? `; not with ${code('--provider zookeeper')}` : '';
  const special = ROWS.filter(({ defaults }) => defaults?.[name] !== undefined);
  const groups = new Set(special.map((row) => code(`${row.name.split(' ')[0]} …`)));
  const other = special[0] ? `; ${special[0].defaults?.[name]} for ${[...groups].join(', ')}` : '';
  const cells = [
    code(`--${name}`),
    code(environmentName(name)),
    option ? code(option) : '',
    value,
    (standard ?? '') + other,
    sentence + condition + store,
  ];
  return `| ${cells.map(cell).join(' | ')} |`;
}

function commandsOf({ name }: NamedSetting): string {
  const all = having(name);
  // A list that has all commands with ZooKeeper begins with them.
  const [most, rest] = [having('zookeeper'), all.filter((each) => !having('zookeeper').includes(each))];
  const commands = most.every((each) => all.includes(each)) ? [...most, ...rest] : all;
  return commands.map((command) => code(command)).join(', ');
}

function page(): string {
  const settings = [
    '| option | variable | library | value | default | meaning |',
    '|---|---|---|---|---|---|',
    ...SETTINGS.map(row),
  ];
  const commands = [
    '| commands | their settings |',
    '|---|---|',
    ...[...byCommands()].map(([who, names]) => `| ${who} | ${names.join(', ')} |`),
  ];
  return [INTRODUCTION, ...settings, '', '## Which command has which', '', ...commands, ''].join('\n');
}

/** The settings by the commands that have them. */
function byCommands(): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const setting of SETTINGS) {
    const who = commandsOf(setting);
    groups.set(who, [...(groups.get(who) ?? []), code(`--${setting.name}`)]);
  }
  return groups;
}

describe('the page of the settings', () => {
  it('says what the table in the code says', async () => {
    await expect(page()).toMatchFileSnapshot('../../../../docs/reference/settings.md');
  });
});

describe('the row of a command', () => {
  it('does not compile without its settings, or with a misspelt one', () => {
    const row = { name: 'x', description: 'x', load: async () => () => 0 };
    // @ts-expect-error there are no settings
    const without: CommandRow = row;
    // @ts-expect-error no setting has this name
    const misspelt: CommandRow = { ...row, settings: ['stroe'] };
    expect(without).not.toBe(misspelt);
  });
});
