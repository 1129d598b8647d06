import { ConfigError } from './errors.js';

/** What a value may be: for JavaScript, and for values whose declared type is wrong. */
export interface Kind {
  readonly is: (value: unknown) => boolean;
  /** The rest of the sentence "expected …". */
  readonly expected: string;
}
export type Kinds = Readonly<Record<string, Kind>>;

export const kind = (expected: string, is: Kind['is']): Kind => ({ expected, is });
export const OBJECT = kind('an object', (value) => typeof value === 'object' && value !== null);
export const TEXT = kind('a text', (value) => typeof value === 'string');
export const NAME = kind('a text of at least one character', (value) => TEXT.is(value) && value !== '');
export const FLAG = kind('true or false', (value) => typeof value === 'boolean');
export const FUNCTION = kind('a function', (value) => typeof value === 'function');
export const DATA = kind('a text or bytes', (value) => TEXT.is(value) || value instanceof Uint8Array);
export const BYTES = kind('bytes', (value) => value instanceof Uint8Array);
export const MS = kind(
  'a number of milliseconds of at least 0',
  (value) => typeof value === 'number' && value >= 0,
);
/** What is left of a time: none where it is negative. */
export const LEFT_MS = kind(
  'a number of milliseconds',
  (value) => typeof value === 'number' && !Number.isNaN(value),
);

/** A whole number. */
export const whole = (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  kind(
    max === Number.MAX_SAFE_INTEGER
      ? `a whole number of at least ${min}`
      : `a whole number from ${min} to ${max}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max,
  );

/** What has these methods. */
export const having = (expected: string, ...methods: readonly string[]) =>
  kind(expected, (value) => methods.every((method) => typeof Object(value)[method] === 'function'));

export const LEASE = having('the lease of a node id', 'isValid');
export const STORE = having('a store, such as openStore() returns', 'read', 'list');

/** An array of such values. */
export const listOf = ({ is, expected }: Kind) =>
  kind(`an array, each ${expected}`, (value) => Array.isArray(value) && value.every(is));

/** One of these texts. */
export const oneOf = (...texts: readonly string[]) =>
  kind(texts.map((text) => `'${text}'`).join(' or '), (value) => texts.some((text) => text === value));

/** Such a value, or undefined. */
export const maybe = ({ is, expected }: Kind) => kind(expected, (value) => value === undefined || is(value));

/** What these arguments and options are wherever they occur. */
const USUAL: Kinds = {
  signal: having('an AbortSignal', 'throwIfAborted', 'addEventListener'),
  clock: having('a clock, such as systemClock', 'now', 'monotonic', 'sleep'),
  random: having('a source of random numbers, such as systemRandom', 'next', 'hex'),
  timeoutMs: LEFT_MS,
  endpoint: maybe(TEXT),
  region: maybe(TEXT),
};

/** `onEvent` and its like are functions, and `settleMs` and its like are times. */
function usual(name: string): Kind | undefined {
  if (Object.hasOwn(USUAL, name)) return USUAL[name];
  return /^on[A-Z]/.test(name) ? FUNCTION : name.endsWith('Ms') ? MS : undefined;
}

/** What these arguments are; as options they may have another meaning. */
const ARGUMENTS: Kinds = {
  zookeeper: kind('a ZooKeeper client, such as openZooKeeper() returns', (value) =>
    ['children', 'watchChildren'].some((method) => typeof Object(value)[method] === 'function'),
  ),
  session: having('a StoreSession', 'read', 'write'),
  provider: having('a provider of instances', 'pick', 'noteError'),
  except: maybe(having('a set of instances', 'has')),
  listener: FUNCTION,
  label: TEXT,
  name: NAME,
  path: TEXT,
  data: DATA,
};

/**
 * Checks arguments by their names.
 *
 * @param kinds what is particular to the function @throws {ConfigError}
 */
export function checkArguments(given: object, kinds: Kinds = {}): void {
  const values = given as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(values))
    check(name, values[name], kinds[name] ?? ARGUMENTS[name] ?? usual(name) ?? OBJECT);
}

function check(name: string, value: unknown, { is, expected }: Kind): void {
  if (!is(value)) throw new ConfigError(name, value, expected);
}

/**
 * Checks options by their names, and returns them. Those that mean the same everywhere may be left out.
 *
 * @param kinds what is particular to the function
 * @param usuals which of the others are checked @throws {ConfigError}
 */
export function checked<T extends object>(
  options: T,
  kinds: Kinds = {},
  label = 'options',
  usuals: readonly string[] = Object.keys(Object(options)),
): T {
  check(label, options, OBJECT);
  const given = options as Readonly<Record<string, unknown>>;
  for (const name of usuals) {
    const value = given[name];
    const meant = value === undefined || Object.hasOwn(kinds, name) ? undefined : usual(name);
    if (meant) check(name, value, meant);
  }
  for (const name of Object.keys(kinds)) check(name, given[name], kinds[name] as Kind);
  return options;
}

/** The share of a name that may be misspelt. */
const MAX_EDITS = 1 / 2;

/**
 * Checks what the compiler checks in TypeScript: options are an object, their names are known, and `signal`,
 * `onEvent`, `clock` and `random` are what they are everywhere. What the compiler does not see: options that a copy
 * would lose, such as the getters of a class.
 *
 * @param setting what the options are called
 * @throws {ConfigError} that names the option, and the nearest known name
 */
export function checkKnown(options: object, names: readonly string[], setting = 'options'): void {
  checked(options, {}, setting, ['signal', 'onEvent', 'clock', 'random']);
  const own = Object.keys(options);
  const lost = names.find((name) => name in options && !own.includes(name));
  if (lost !== undefined)
    throw new ConfigError(setting, lost, 'only own properties, not a getter of a class');
  const unknown = own.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const near = nearest(unknown, names);
    const hint = near === undefined ? '' : ` (the nearest is ${near})`;
    throw new ConfigError(setting, unknown, `one of ${names.join(', ')}${hint}`);
  }
}

/** The known name that a misspelt one is most likely meant to be; undefined where none is near. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  const near = names.map((known) => ({ known, edits: editDistance(known, name) }));
  const { known, edits } = near.reduce((best, each) => (each.edits < best.edits ? each : best));
  return edits <= name.length * MAX_EDITS ? known : undefined;
}

/**
 * How many characters have to be inserted, removed or replaced to get from one text to the other
 * (Levenshtein's distance).
 */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1];
    for (let at = 0; at < to.length; at += 1) {
      const [diagonal = 0, above = 0] = row.slice(at, at + 2);
      next.push(Math.min(above + 1, (next[at] ?? 0) + 1, diagonal + (to[at] === character ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** A text may begin behind it as well. */
const SCHEME = '^(?:file:|digest:|[a-z][a-z0-9+.-]*://)?';
const BLANK = '[\\s\\p{Z}\\p{Cf}]';
/** Those of word processors too. */
const QUOTE = '["\'`\u00ab\u00bb\u2018-\u201f]';

/** What a text gets, unseen, from the way it is set, such as an env file with line ends of Windows. */
const STRAY: readonly (readonly [pattern: RegExp, expected: (found: string) => string])[] = [
  [/\r/, () => 'no carriage return in it, as in files with line ends of Windows'],
  [/\p{Cc}/u, (found) => `no control character in it (${nameOf(found)})`],
  [/\ufeff/, () => 'no byte order mark in it (U+FEFF)'],
  [new RegExp(`${SCHEME}${BLANK}|${BLANK}$`, 'iu'), noBlank],
  [new RegExp(`${SCHEME}${QUOTE}.*${QUOTE}$`, 'isu'), () => 'no quotes around it'],
];

/**
 * Checks that a text has no control characters and byte order marks, and neither blanks nor quotes at its
 * ends: with them it would be another value, such as the name of another store, that looks the same.
 *
 * @param shown what the error shows in its place: a secret is not shown
 * @throws {ConfigError} naming the setting `label`; also for what is no text, in JavaScript
 */
export function checkPlain(text: string, label: string, shown = text): void {
  if (typeof text !== 'string') throw new ConfigError(label, shown, 'a text');
  for (const [pattern, expected] of STRAY) {
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) throw new ConfigError(label, shown, expected(found));
  }
}

/**
 * The items of a list with commas between them.
 * @throws {ConfigError} naming the setting `label`, for a blank at an end of one, or a semicolon
 */
export function splitList(text: string, label: string): readonly string[] {
  if (text.includes(';')) throw new ConfigError(label, text, 'commas between the items, not semicolons');
  const items = text.split(',');
  for (const item of items) checkPlain(item, label);
  return items;
}

function noBlank(found: string): string {
  const blank = found.slice(-1);
  return `no blank at its start or end${blank === ' ' ? '' : ` (${nameOf(blank)})`}`;
}

function nameOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** The greatest port of TCP. */
export const MAX_PORT = 65_535;

/** Whether a value is the number of a port. */
export function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_PORT;
}
