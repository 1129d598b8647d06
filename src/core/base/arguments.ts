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
  for (const [name, value] of Object.entries(given)) {
    const { is, expected } = kinds[name] ?? ARGUMENTS[name] ?? usual(name) ?? OBJECT;
    if (!is(value)) throw new ConfigError(name, value, expected);
  }
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
  checkArguments({ [label]: options }, { [label]: OBJECT });
  const given = options as Readonly<Record<string, unknown>>;
  for (const name of usuals)
    if (!Object.hasOwn(kinds, name) && given[name] !== undefined && usual(name))
      checkArguments({ [name]: given[name] });
  for (const name of Object.keys(kinds)) checkArguments({ [name]: given[name] }, kinds);
  return options;
}
