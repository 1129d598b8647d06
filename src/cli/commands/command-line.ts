import { Command, CommanderError, Option } from 'commander';
import { ConfigError } from '../../base/errors.js';
import { withoutSecrets } from '../../base/redaction.js';
import { ENDPOINTS_VARIABLE } from '../../settings/endpoints.js';
import { readSettings, type Settings } from '../../settings/settings.js';
import { environmentName, SETTINGS } from '../../settings/settings-table.js';
import { unknownVariables } from '../../settings/unknown-variables.js';
import { whyNoDefaultStore } from '../../store/default-store.js';
import { ExitCode, UsageError } from '../exit-codes.js';
import type { CommandRow, OptionRow, WithZooKeeper } from '../kit/command-row.js';
import type { Io } from '../terminal/io.js';
import { COMMANDS, GROUPS } from './commands.js';

/**
 * Runs one command line. Resolves to the exit code and never rejects for what a user may do wrong: that is
 * one line on standard error and exit code 64.
 *
 * @param args what follows the program's name
 * @param version what `--version` answers
 */
export async function runCommandLine(
  args: readonly string[],
  surroundings: Io,
  version: string,
): Promise<number> {
  // Complaints may quote what was given, those of the command line's parser too.
  const io: Io = {
    ...surroundings,
    stderr: (text) => surroundings.stderr(withoutSecrets(text)),
    onWarning: (listener) => {
      surroundings.onWarning(listener);
      for (const problem of unknownVariables(surroundings.env)) listener(new Error(problem));
    },
  };
  let exitCode: number = ExitCode.ok;
  let called: Command | undefined;
  const program = new Command('nodelease')
    .description('Leases a small, unique, fenced node id to each container from a compare-and-swap store.')
    .version(version);
  settleOutput(program, io);

  const named = COMMANDS.find(({ name }) => name.split(' ').every((word, at) => args[at] === word));
  // Split by hand: all words after the first -- are the child's.
  const split = named?.example === undefined ? -1 : args.indexOf('--');
  const [own, childCommand] = split < 0 ? [args, undefined] : [args.slice(0, split), args.slice(split + 1)];

  const made = new Map([['', program]]);
  const make = (name: string, description = GROUPS[name] ?? ''): Command => {
    const words = name.split(' ');
    const group = words.slice(0, -1).join(' ');
    const command = new Command(words.at(-1)).description(description).allowExcessArguments(false);
    settleOutput(command, io);
    (made.get(group) ?? make(group)).addCommand(command);
    made.set(name, command);
    return command;
  };
  // All of them, with their options, take a tenth of the start of a run.
  for (const row of named === undefined ? COMMANDS : [named]) {
    const command = make(row.name, row.description);
    for (const argument of row.arguments ?? []) command.argument(...argument);
    for (const option of [...(row.options ?? []), ...settingOptions(row)]) addOption(command, option);
    if (row.example !== undefined) {
      command.usage(
        `[options] ${(row.arguments ?? []).map(([name]) => `${name} `).join('')}-- command [argument...]`,
      );
      if (childCommand === undefined)
        settleOutput(command, io, `; the command to run goes after --, as in "nodelease ${row.example}"`);
    }
    command.action(async () => {
      called = command;
      // A row that needs ZooKeeper gets settings with it.
      const settings = settingsOf(command, row, io) as WithZooKeeper;
      const act = await row.load();
      const words = [...command.processedArgs.flat(), ...(childCommand ?? [])];
      exitCode = await act({ options: command.opts<never>(), settings, io }, ...words);
    });
  }

  try {
    if (own.length === 0) throw new UsageError('no command given: see nodelease --help');
    if (Object.hasOwn(GROUPS, own.join(' ')))
      throw new UsageError(`no command given: see nodelease ${own.join(' ')} --help`);
    await program.parseAsync([...own], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    if (!(error instanceof UsageError || error instanceof ConfigError)) throw error;
    // Below the command line a setting has its name, without dashes.
    const flag = 'setting' in error && `--${error.setting}`;
    const isFlag = called?.options.some(({ long }) => long === flag);
    io.stderr(`nodelease: ${isFlag ? '--' : ''}${error.message}\n`);
    return ExitCode.usage;
  }
}

/** Makes commander throw instead of ending the process, and complain in one line. */
function settleOutput(command: Command, io: Io, hint = ''): void {
  command
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: io.stdout,
      writeErr: io.stderr,
      outputError: (text, write) => {
        // A suggestion is on a line by itself, a sentence ends in a full stop: neither suits one line
        // that may go on.
        const line = text
          .replace(/^error: /, '')
          .trim()
          .replace(/\s+/g, ' ')
          .replace(/\.$/, '');
        write(`nodelease: ${line}${hint}\n`);
      },
    });
}

function addOption(command: Command, [flags, help, { default: standard, repeatable } = {}]: OptionRow): void {
  const option = new Option(flags, help);
  if (standard !== undefined) option.default(standard);
  if (repeatable)
    option.argParser((value, earlier: readonly string[] | undefined) => [...(earlier ?? []), value]);
  command.addOption(option);
}

/** The settings of a command as its options, in the order of the settings' table. */
function settingOptions({ settings, defaults = {} }: CommandRow): OptionRow[] {
  const own = SETTINGS.filter(({ name }) => settings.includes(name));
  return own.map(({ name, sentence, kind, default: usual, repeatable }) => {
    const standard = defaults[name] ?? usual;
    const facts = [kind.range, standard && `default: ${standard}`]
      .filter((fact) => fact !== undefined)
      .join('; ');
    const help = `${sentence}${facts && ` (${facts})`} [${environmentName(name)}]`;
    const flag = kind.argument === undefined ? `--${name}` : `--${name} <${kind.argument}>`;
    return [flag, help, repeatable ? { repeatable } : {}];
  });
}

/**
 * The settings that a command was given, as options and as variables. Variables of settings that it does not
 * have are not its business.
 *
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 * @throws {UsageError} when the command has no use for what was given, or lacks ZooKeeper
 */
function settingsOf(
  command: Command,
  row: CommandRow,
  { env: surroundings, hostname, containerSign }: Io,
): Settings {
  const flags: Record<string, string | readonly string[]> = {};
  const own = (row.options ?? []).filter(([, , more]) => more?.own).map(([text]) => new Option(text).long);
  for (const option of command.options) {
    const value: unknown = command.getOptionValue(option.attributeName());
    if (option.long === undefined || own.includes(option.long)) continue;
    if (typeof value === 'string' || Array.isArray(value)) flags[option.long.slice('--'.length)] = value;
    else if (value === true) flags[option.long.slice('--'.length)] = 'true';
  }
  const { settings: names, defaults } = row;
  const announces = names.includes('service');
  // A run within a run does not take the outer one's id for its own name.
  const known = [
    'NODE_ID_VERSION',
    ...(announces ? [ENDPOINTS_VARIABLE] : []),
    ...names.map(environmentName),
  ];
  const env = Object.fromEntries(known.map((name) => [name, surroundings[name]]));
  const settings = readSettings({ flags, env, hostname, announces, defaults });
  const allocates = settings.provider === 'zookeeper';
  const takesDefault = names.includes('store') && (flags.store ?? env.NODELEASE_STORE) === undefined;
  const why =
    takesDefault && !allocates && settings.nodeId === undefined
      ? whyNoDefaultStore(containerSign())
      : undefined;
  if (why !== undefined) {
    const reasons = [why, ...unknownVariables(surroundings)].join('; ');
    throw new UsageError(
      `no store given: expected --store s3://bucket/prefix, or NODELEASE_STORE (${reasons})`,
    );
  }
  if (row.zookeeper === 'required' && settings.zookeeper === undefined)
    throw new UsageError(
      'no ZooKeeper given: expected --zookeeper HOST:PORT[,HOST:PORT]...[/CHROOT], or NODELEASE_ZOOKEEPER',
    );
  // A variable may be there for other commands; an option is meant for this one.
  if (row.zookeeper === 'as-provider' && typeof flags.zookeeper === 'string' && !allocates) {
    const expected = `--provider zookeeper beside it (nodelease ${row.name} looks at the store otherwise)`;
    throw new ConfigError('--zookeeper', flags.zookeeper, expected);
  }
  const useless = row.storeOnly?.find((flag) => flag.slice('--'.length) in flags);
  if (allocates && useless)
    throw new UsageError(`${useless} is about a store: there is none with the provider zookeeper`);
  return settings;
}
