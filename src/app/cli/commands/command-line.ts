import { Command, CommanderError, Option } from 'commander';
import { checkPlain, nearest } from '../../../core/base/arguments.js';
import { ConfigError } from '../../../core/base/errors.js';
import { withoutSecrets } from '../../../core/base/redaction.js';
import { whyNoDefaultStore } from '../../../core/store/store-settings.js';
import { fail } from '../../kit/answer.js';
import type { WithZooKeeper } from '../../kit/call.js';
import { type CommandRow, examplesOf, optionsOf, type SettingOption } from '../../kit/command-row.js';
import { ExitCode, type Io, UsageError } from '../../kit/io.js';
import { environmentName, readSettings, type Settings, unknownVariables } from '../../settings/settings.js';
import { COMMANDS, ROWS } from './commands.js';

/** The widest line of the help; and the narrowest column of descriptions that is still wrapped. */
const MAX_WIDTH = 100;
const MIN_TEXT_WIDTH = 20;

/** The most options that a help shows, unless it is asked for more. */
const MANY = 20;

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
  // Complaints may quote what was given.
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
    .version(version)
    .usage('<command> [options] | --version')
    .addHelpText('after', examplesOf({ examples: ['demo', 'run -- node server.js'] }));

  const { named, own, childCommand, asked } = callIn(args);

  /** Has commander throw instead of ending the process. */
  const settle = (command: Command) =>
    command.exitOverride((error) => {
      called = command;
      throw error;
    });
  const width = () => Math.min(io.screen()?.columns ?? 80, MAX_WIDTH);
  // Its commands inherit that. What is said of a mistake is left to us.
  settle(program)
    .configureHelp({
      minWidthToWrap: MIN_TEXT_WIDTH,
      visibleOptions: (command) => shownOptions(command, asked),
    })
    .configureOutput({
      getOutHelpWidth: width,
      getErrHelpWidth: width,
      writeOut: io.stdout,
      writeErr: io.stderr,
      outputError: () => undefined,
    });
  const made = new Map([['', program]]);
  const make = (name: string, description = ''): Command => {
    const words = name.split(' ');
    const group = words.slice(0, -1).join(' ');
    const command = (made.get(group) ?? make(group)).command(words.at(-1) ?? '');
    settle(command).description(description).allowExcessArguments(false);
    made.set(name, command);
    return command;
  };
  // All of them take a twentieth of the start of a run, and as much again with their options.
  for (const row of named === undefined ? ROWS : [named]) {
    const command = make(row.name, row.description);
    if (row.door) command.helpGroup(`${row.door}:`);
    if (!('load' in row) || named === undefined) continue;
    for (const argument of row.arguments ?? []) command.argument(...argument);
    for (const option of optionsOf(row)) addOption(command, option);
    // Before the options, which may fill screens.
    command.summary(row.description).description(`${row.description}\n${examplesOf(row)}`);
    if (row.runs)
      command.usage(
        `[options] ${(row.arguments ?? []).map(([name]) => `${name} `).join('')}-- command [argument...]`,
      );
    command.action(async () => {
      called = command;
      // A row that needs ZooKeeper gets settings with it.
      const settings = settingsOf(command, row, io) as WithZooKeeper;
      if (row.runs === true && !childCommand?.length)
        throw new UsageError(`no command given: expected one after --, as in "nodelease ${row.examples[0]}"`);
      const act = await row.load();
      const words = [...command.processedArgs.flat(), ...(childCommand ?? [])];
      exitCode = await act({ options: command.opts<never>(), settings, io }, ...words);
    });
  }
  program
    .commandsGroup('Try it, and learn:')
    .helpCommand('help [command] [group]', 'show the help of a command');

  try {
    const typed = own.filter((word) => word !== '--');
    if (typed.length === 0) program.outputHelp({ error: true });
    if (typed.length === 0 || ROWS.some((row) => !('load' in row) && row.name === typed.join(' ')))
      throw new UsageError(`no command given: see ${['nodelease', ...typed].join(' ')} --help`);
    await program.parseAsync([...own], { from: 'user' });
    // It was made without its action.
    if (!named) throw new UsageError('no command before --: see nodelease --help');
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      // The help command takes the exit code that the process has so far.
      if (error.exitCode === 0 || error.code === 'commander.help') return ExitCode.ok;
      const problem = called && mistakeIn(called, error.code, own);
      const hint =
        named?.runs && childCommand === undefined
          ? `; the command to run goes after --, as in "nodelease ${named.examples[0]}"`
          : error.code === 'commander.missingArgument' && named
            ? `, as in "nodelease ${named.examples[0]}"`
            : '';
      return problem === undefined ? ExitCode.usage : fail(io, 'USAGE', problem + hint);
    }
    if (!(error instanceof UsageError || error instanceof ConfigError)) throw error;
    // Below the command line a setting has its name, without dashes.
    const flag = 'setting' in error && `--${error.setting}`;
    const isFlag = called?.options.some(({ long }) => long === flag);
    const isMissing = error instanceof ConfigError && error.value === undefined;
    const text = isMissing ? `${error.setting}: expected ${error.expected}` : error.message;
    return fail(io, error.code, `${isFlag ? '--' : ''}${text}`);
  }
}

/** Which command is called, with its own words, those of the child's command, and the help that is asked for. */
function callIn(args: readonly string[]) {
  // `help run`, or `zk help lock`.
  const words = args.filter((word) => word !== 'help');
  const named = COMMANDS.find(({ name }) => name.split(' ').every((word, at) => words[at] === word));
  const name = named?.name.split(' ') ?? [];
  const isKnown = words.length === 0 || ROWS.some((row) => row.name === words[0]);
  const topic = named ? [...name, '--help', ...words.slice(name.length)] : isKnown ? args : words;
  const line = args[0] === 'help' ? topic : args;
  // Split by hand: all words after the first -- are the child's.
  const split = named?.runs ? line.indexOf('--') : -1;
  const own = split < 0 ? line : line.slice(0, split);
  // `--help tls`.
  const asked = own.find((word, at) => !word.startsWith('-') && ['-h', '--help'].includes(`${own[at - 1]}`));
  return { named, own, childCommand: split < 0 ? undefined : line.slice(split + 1), asked };
}

/**
 * The options in the help of a command, and how to see others.
 *
 * @param asked all, or a word of the heading of some. @default all, unless these are many
 * @throws {ConfigError} when there is no such heading
 */
function shownOptions({ options, commands }: Command, asked = options.length > MANY ? '' : 'all'): Option[] {
  if (commands.length > 0) return [];
  const namesOf = ({ helpGroupHeading = '' }: Option) => [
    'all',
    ...helpGroupHeading.toLowerCase().replace(':', '').split(' '),
  ];
  const known = [...new Set(['all', ...options.map((option) => namesOf(option)[1])])].filter(Boolean);
  if (asked && !known.includes(asked)) throw new ConfigError('--help', asked, known.join(', '));
  const shown = options.filter((option) => (asked ? namesOf(option).includes(asked) : !option.hidden));
  const help = new Option('-h, --help [group]', `which options to show: ${known.join(', ')}`);
  return [...shown, help.helpGroup(asked ? 'Help:' : 'More options:')];
}

/**
 * What is wrong, by the code of commander's error; undefined for its other ends, such as that of the help. An
 * option's value may be a secret in any form, and is not shown.
 *
 * @param words what was typed
 */
function mistakeIn(command: Command, code: string, words: readonly string[]): string | undefined {
  const { args, commands, options, registeredArguments } = command;
  switch (code) {
    case 'commander.unknownOption': {
      const [word = ''] = command.parseOptions([...args]).unknown;
      const [flag = ''] = word.split('=', 1);
      const known = [...options.map((option) => option.name()), 'help'];
      const name = flag.slice('--'.length);
      if (known.includes(name)) return `option '${flag}' takes no value`;
      const near = nearest(name, known);
      const order = commands.length > 0 ? ': options follow the command' : '';
      return `unknown option '${flag}'${near === undefined ? '' : ` (Did you mean --${near}?)`}${order}`;
    }
    case 'commander.unknownCommand': {
      const [name = ''] = args;
      const near = nearest(
        name,
        commands.map((each) => each.name()),
      );
      return `unknown command '${name}'${near === undefined ? '' : ` (Did you mean ${near}?)`}`;
    }
    case 'commander.optionMissingArgument': {
      const last = words.at(-1);
      const option = options.find(({ short, long }) => short === last || long === last);
      return `${option?.long ?? last} needs a value`;
    }
    case 'commander.missingArgument':
      return `missing required argument '${registeredArguments[args.length]?.name()}'`;
    case 'commander.excessArguments':
      return `too many arguments: expected ${registeredArguments.length}, got ${args.length}`;
    default:
      return undefined;
  }
}

function addOption(
  command: Command,
  [flags, help, { kind, default: standard, repeatable, setting, verbatim } = {}]: SettingOption,
) {
  const option = new Option(flags, help);
  if (setting) option.helpGroup(`${setting.group}:`).hideHelp(!setting.common);
  if (standard !== undefined) option.default(kind ? kind.parse(standard, flags) : standard);
  if (option.required)
    option.argParser((value, earlier: unknown) => {
      // The parser takes the next word, whatever it is.
      const [next = ''] = value.split('=', 1);
      if (command.options.some(({ short, long }) => [short, long].includes(next)))
        throw new UsageError(`${option.long} needs a value, and is followed by ${next}`);
      // The settings are checked as such.
      const label = option.long ?? flags;
      if (!setting && !verbatim) checkPlain(value, label);
      if (kind) return kind.parse(value, label);
      return repeatable ? [...(Array.isArray(earlier) ? earlier : []), value] : value;
    });
  command.addOption(option);
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
    if (value === undefined || own.includes(option.long)) continue;
    flags[option.name()] = Array.isArray(value) ? value : String(value);
  }
  const { settings: names, defaults } = row;
  const announces = names.includes('service');
  // A run within a run does not take the outer one's id for its own name.
  const known = ['NODE_ID_VERSION', ...names.map(environmentName)];
  const env = Object.fromEntries(known.map((name) => [name, surroundings[name]]));
  // The key is in the data directory of another command.
  if (env.NODELEASE_STICKY === 'file' && !names.includes('data-dir')) delete env.NODELEASE_STICKY;
  const settings = readSettings({ flags, env, hostname, announces, defaults });
  const allocates = settings.provider === 'zookeeper';
  const takesDefault =
    names.includes('store') &&
    defaults?.store === undefined &&
    (flags.store ?? env.NODELEASE_STORE) === undefined &&
    !allocates &&
    settings.nodeId === undefined;
  const why = takesDefault && whyNoDefaultStore(containerSign());
  if (why) {
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
    const expected = `--provider zookeeper with it (nodelease ${row.name} looks at the store otherwise)`;
    throw new ConfigError('--zookeeper', flags.zookeeper, expected);
  }
  const useless = row.storeOnly?.find((flag) => flag.slice('--'.length) in flags);
  if (allocates && useless)
    throw new UsageError(`${useless} is about a store: there is none with the provider zookeeper`);
  return settings;
}
