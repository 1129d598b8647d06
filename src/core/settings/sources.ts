import { checkPlain } from '../base/arguments.js';
import { ConfigError } from '../base/errors.js';
import type { Setting, SettingKind, SettingRows } from './setting.js';

/** What the settings are read from: plain text, as it came from outside. */
export interface SettingSources {
  /** The flags that were given, by the names of settings. */
  readonly flags: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The name of this host, for `--node-id hostname`. */
  readonly hostname: string;
  /**
   * False for a command that announces no service: what is to be announced is of no use there.
   * @default true
   */
  readonly announces?: boolean;
  /** The defaults that differ from those of the rows. */
  readonly defaults?: Readonly<Record<string, string | undefined>> | undefined;
}

/** A value, and the name under which its user knows it. */
export interface Given {
  readonly label: string;
  readonly text: string;
  /** From the command line rather than from the environment. */
  readonly flag: boolean;
}

/** What the text of a setting is read as. */
export type ValueOf<Row extends Setting> = Row['kind'] extends SettingKind<infer Value> ? Value : never;

/** The settings under one heading of the help: those of one product. */
export interface SettingGroup {
  readonly rows: SettingRows;
  /** The commands that have all of them. Other commands name the settings that they have. */
  readonly commands?: readonly string[];
}

type NameOf<Rows> = keyof Rows & string;

/** Settings as one invocation has them. */
export class GivenSettings<Rows extends SettingRows> {
  constructor(
    readonly sources: SettingSources,
    private readonly rows: Rows,
  ) {}

  /**
   * All values of a setting: those of its flags, several where it is repeatable, and then its environment
   * variable's.
   * @throws {ConfigError} for a value that is no plain text, see `checkPlain`
   */
  findAll(name: NameOf<Rows>): readonly Given[] {
    const all = givenTo(this.sources, name);
    const { secret, verbatim } = this.#row(name);
    // A flag wins over the variable, whatever that is.
    const used = verbatim === true ? [] : all.filter(({ flag }) => flag || !all[0]?.flag);
    for (const { text, label } of used) checkPlain(text, label, secret && '…');
    return all;
  }

  /** The value of a setting: the last flag, else its environment variable; undefined where there is neither. */
  find(name: NameOf<Rows>): Given | undefined {
    const given = this.findAll(name);
    return given.findLast(({ flag }) => flag) ?? given[0];
  }

  /**
   * The first of some settings that is given as a flag, a secret one without its value. A variable may be there
   * for other programs; a flag is meant for this one.
   */
  firstFlag(isOne: (row: Setting, name: string) => boolean): Given | undefined {
    // Those that were given, which are few, first: asking all of them takes a start 6 MiB of V8's compilers.
    const name = Object.keys(this.rows).find(
      (each) => this.sources.flags[each] !== undefined && isOne(this.#row(each), each),
    );
    const given = name === undefined ? undefined : this.find(name);
    return given && name && this.#row(name).secret ? { ...given, text: '…' } : given;
  }

  /**
   * The value of a setting as its kind reads it; undefined where it is not given.
   *
   * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
   */
  read<Name extends NameOf<Rows>>(name: Name): ValueOf<Rows[Name]> | undefined {
    const given = this.find(name);
    return given && (this.#row(name).kind.parse(given.text, given.label) as ValueOf<Rows[Name]>);
  }

  /** The same, or else the default; for settings whose default is a value, and not described in words. */
  readOrDefault<Name extends NameOf<Rows>>(name: Name): ValueOf<Rows[Name]> {
    const { kind, default: usual = '' } = this.#row(name);
    const text = this.sources.defaults?.[name] ?? usual;
    return this.read(name) ?? (kind.parse(text, `--${name}`) as ValueOf<Rows[Name]>);
  }

  #row(name: string): Setting {
    return this.rows[name] as Setting;
  }
}

function givenTo({ flags, env }: SettingSources, name: string): readonly Given[] {
  const label = environmentName(name);
  const flag = flags[name];
  const given = [flag ?? []].flat().map((text) => ({ label: `--${name}`, text, flag: true }));
  const variable = env[label];
  // A command that was itself started by `nodelease run` inherits the id of that run, which must not name a
  // second one.
  if (variable === undefined || (name === 'task-id' && env.NODE_ID_VERSION)) return given;
  if (isServiceLink(label, variable)) return given;
  return [...given, { label, text: variable, flag: false }];
}

/** The name of the environment variable of a setting. */
export function environmentName(name: string): string {
  return `NODELEASE_${name.toUpperCase().replaceAll('-', '_')}`;
}

/** @throws {ConfigError} that names what was given, and what was expected */
export function refuse(
  { label, text }: { readonly label: string; readonly text: unknown },
  expected: string,
): never {
  throw new ConfigError(label, text, expected);
}

/** By name: the host and the ports of a service, and the parts of a port. */
const BY_NAME = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
/** `NODELEASE_PORT` can be a setting as well. */
const PORT = /_PORT$/;
const ADDRESS = /^(tcp|udp|sctp):\/\//;

/**
 * Whether an environment variable is one that Kubernetes gives every pod of a namespace, for each service in
 * it: a service named `nodelease` makes `NODELEASE_PORT=tcp://10.0.0.1:80`. Docker's links make the same.
 *
 * Source: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
export function isServiceLink(name: string, text: string): boolean {
  return BY_NAME.test(name) || (PORT.test(name) && ADDRESS.test(text));
}
