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

For users of the command line and of containers: every setting, as an option \`--name\` and as an environment variable. The option wins. Many are also options of
the library's \`acquire()\`, where a time is a number of milliseconds.

\`\`\`console
$ NODELEASE_NODES=3 nodelease run --duration 30s -- sh -c 'echo I am node $NODE_ID'
\`\`\`

\`nodelease COMMAND --help all\` shows the settings of one command. A wrong value ends the command with exit code 64 and a message that names the setting; an
empty variable is wrong, too. A time is a number with a unit: \`500ms\`, \`1.5s\`, \`2m\`, \`1h\`. Commas without blanks separate the items of a list. Except for
JSON, a value has no control characters, and neither blanks nor quotes at its ends. Variables that Kubernetes sets for a Service named \`nodelease\` are ignored.

This page is made from the table in the code: \`npx vitest run --project unit settings-page -u\` writes it.
`;

const WITH_ZOOKEEPER = 'These need `--zookeeper`. Some also need another setting, which their row names.';

const code = (text: string) => `\`${text}\``;
const cell = (text: string) => text.replaceAll('|', '\\|');

/** Whether the settings of a heading are those of ZooKeeper. */
const isOfZooKeeper = (group: string) => group.includes('ZooKeeper');

function row({ name, group, kind, option, default: standard, sentence, needs }: NamedSetting): string {
  const value = [kind.argument ?? 'switch', kind.range].filter((each) => each !== undefined).join(': ');
  // Of these, `discovery` commands have the path of the services, and no `--service`.
  const of = needs === 'service' ? ` for ${code('run')} and ${code('serve')}` : '';
  const condition =
    needs === undefined || (needs === 'zookeeper' && isOfZooKeeper(group))
      ? ''
      : `; with ${code(`--${needs}`)} only${of}`;
  const special = ROWS.filter(({ defaults }) => defaults?.[name] !== undefined);
  const groups = new Set(special.map((row) => code(`${row.name.split(' ')[0]} …`)));
  const other = special[0] ? `; ${special[0].defaults?.[name]} for ${[...groups].join(', ')}` : '';
  const cells = [
    code(`--${name}`),
    code(environmentName(name)),
    option ? code(option) : '',
    value,
    (standard ?? '') + other,
    sentence + condition,
  ];
  return `| ${cells.map(cell).join(' | ')} |`;
}

function commandsOf({ name }: NamedSetting): string {
  const all = having(name);
  // A list that has all commands with ZooKeeper begins with them.
  const [most, rest] = [having('zookeeper'), all.filter((each) => !having('zookeeper').includes(each))];
  const commands = most.every((each) => all.includes(each)) ? [...most, ...rest] : all;
  return [...new Set(commands.map((command) => code(shortened(command, commands))))].join(', ');
}

/** `zk …` where all commands of that group are among these. */
function shortened(command: string, among: readonly string[]): string {
  const [first] = command.split(' ');
  const group = ROWS.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => name);
  return group.length > 1 && group.every((name) => among.includes(name)) ? `${first} …` : command;
}

function page(): string {
  const table = (settings: readonly NamedSetting[]) => [
    '| option | variable | library | value | default | meaning |',
    '|---|---|---|---|---|---|',
    ...settings.map(row),
    '',
  ];
  const [plain, ofZooKeeper] = [false, true].map((is) =>
    SETTINGS.filter(({ group }) => isOfZooKeeper(group) === is),
  );
  const storeOnly = SETTINGS.filter(({ storeOnly }) => storeOnly).map(({ name }) => code(`--${name}`));
  const commands = [
    '| commands | their settings |',
    '|---|---|',
    ...[...byCommands()].map(([who, names]) => `| ${who} | ${names.join(', ')} |`),
  ];
  return [
    INTRODUCTION,
    '## Without ZooKeeper',
    '',
    ...table(plain ?? []),
    `Not with ${code('--provider zookeeper')}: ${storeOnly.join(', ')}.`,
    '',
    '## With ZooKeeper',
    '',
    WITH_ZOOKEEPER,
    '',
    ...table(ofZooKeeper ?? []),
    '## Which command has which',
    '',
    ...commands,
    '',
  ].join('\n');
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
