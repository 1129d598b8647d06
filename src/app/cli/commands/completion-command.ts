import { Option } from 'commander';
import { ConfigError } from '../../../core/base/errors.js';
import type { Call } from '../../kit/call.js';
import { optionsOf, type TableRow } from '../../kit/command-row.js';
import { ExitCode } from '../../kit/io.js';

/** A word that may follow: a command, or an option. */
interface Word {
  readonly text: string;
  readonly short?: string | undefined;
  readonly help: string;
  /** Whether a value follows. */
  readonly takesValue?: boolean;
  readonly choices?: readonly string[] | undefined;
}

/** The words that may follow, by the words before them: `zk barrier`. */
type Words = ReadonlyMap<string, readonly Word[]>;

const SCRIPTS: Readonly<Record<string, (words: Words) => string>> = {
  bash: bashScript,
  // Its bashcompinit runs completions of bash.
  zsh: (words) =>
    `autoload -Uz compinit bashcompinit\n(( $+functions[compdef] )) || compinit\nbashcompinit\n${bashScript(words)}`,
  fish: fishScript,
};

/** `nodelease completion SHELL`: prints a script for that shell, made from the table of commands. */
export const completionCommand =
  (rows: readonly TableRow[]) =>
  ({ io }: Call, shell: string): number => {
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
    if (script === undefined) throw new ConfigError('shell', shell, 'bash, zsh or fish');
    io.stdout(script(wordsOf(rows)));
    return ExitCode.ok;
  };

function wordsOf(rows: readonly TableRow[]): Words {
  const all = new Map<string, Word[]>();
  for (const row of rows) {
    const [, group = '', text = ''] = /^(?:(.*) )?(.*)$/.exec(row.name) ?? [];
    all.set(group, [...(all.get(group) ?? []), { text, help: row.description }]);
    if (!('load' in row)) continue;
    const options = optionsOf(row).map(([flags, help, more = {}]): Word => {
      const { long, short, required } = new Option(flags);
      // Ranges, defaults and variables are in the help.
      return {
        text: long ?? '',
        short,
        help: help.replace(/ [([].*/, ''),
        takesValue: required,
        choices: (more.setting ?? more).kind?.choices,
      };
    });
    all.set(row.name, [...options, { text: '--help', help: 'display help for command' }]);
  }
  return all;
}

function bashScript(words: Words): string {
  // The commands and options by the values that they take: an option may have others in another command.
  const values = new Map<string, string[]>();
  for (const [path, all] of words)
    for (const { text, takesValue, choices = [] } of all) {
      const shared = choices.join(' ');
      if (takesValue) values.set(shared, [...(values.get(shared) ?? []), `'${path} ${text}'`]);
    }
  const cases = (all: Iterable<readonly [string, string]>) =>
    Array.from(all, ([word, following]) => `    ${word}) words='${following}' ;;`).join('\n');
  return `_nodelease() {
  local at next path= words=
  for ((at = 1; at < COMP_CWORD; at++)); do
    next="\${path:+$path }\${COMP_WORDS[at]}"
    case "$next" in
      *--) return ;;
      ${quotedPaths(words).join('|')}) path="$next" ;;
    esac
  done
  case "$path" in
${cases(Array.from(words, ([path, all]) => [`'${path}'`, all.map(({ text }) => text).join(' ')]))}
  esac
  case "$path \${COMP_WORDS[COMP_CWORD - 1]}" in
${cases(Array.from(values, ([shared, calls]) => [calls.join('|'), shared]))}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _nodelease nodelease
`;
}

function fishScript(words: Words): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const lines = Array.from(words, ([path, all]) =>
    all.map(({ text, short, help, takesValue, choices }) => {
      const where = `complete -c nodelease -n ${quoted(`__nodelease_at "${path}"`)}`;
      const value = choices ? ` -x -a ${quoted(choices.join(' '))}` : takesValue ? ' -r' : '';
      const what = text.startsWith('--')
        ? `${short ? `-s ${short.slice(1)} ` : ''}-l ${text.slice(2)}${value}`
        : `-f -a ${text}`;
      return `${where} ${what} -d ${quoted(help)}\n`;
    }),
  );
  return `function __nodelease_at
  set -l path ''
  set -l words (commandline -opc)
  set -e words[1]
  for word in $words
    test "$word" = --; and return 1
    set -l next (string trim "$path $word")
    contains -- "$next" ${quotedPaths(words).join(' ')}; and set path $next
  end
  test "$path" = "$argv"
end
${lines.flat().join('')}`;
}

/** The paths of commands and groups. */
function quotedPaths(words: Words): string[] {
  return [...words.keys()].filter((path) => path !== '').map((path) => `'${path}'`);
}
