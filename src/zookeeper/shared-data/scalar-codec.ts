import { checkArguments, checked, NAME, TEXT } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { canonicalJson } from './canonical-json.js';
import type { Scalar } from './data-report.js';

/**
 * The types of Monastery's scalars that have a JavaScript side. `BigDecimal` and any other type are kept as
 * {@link TypedText}.
 */
export type ScalarType =
  | 'String'
  | 'Boolean'
  | 'Integer'
  | 'Long'
  | 'Double'
  | 'BigInteger'
  | 'BigDecimal'
  | 'Json'
  | 'Bytes'
  | 'Null';

/**
 * A value of a type that JavaScript has not, or that is to be written as just this type:
 * `new TypedText('BigDecimal', '1.10')`.
 */
export class TypedText implements Scalar {
  constructor(
    readonly type: string,
    readonly value: string,
  ) {
    checkArguments({ type, value }, { type: NAME, value: TEXT });
  }
}

/** What JSON holds as an object or array. */
export type SharedJson = { readonly [name: string]: unknown } | readonly unknown[];

/**
 * A shared value: a whole number of 32 bits is an `Integer`, another safe integer a `Long`, any other number
 * a `Double`; a bigint is a `BigInteger`, an object or array `Json`. Two values are equal where type and text
 * are: 3, 3n and "3" are three values.
 */
export type SharedValue = string | boolean | number | bigint | null | Uint8Array | TypedText | SharedJson;

/** @param label the argument that it comes from @throws {ConfigError} for what no scalar can hold */
export function toScalar(value: SharedValue, label = 'value'): Scalar {
  if (value === null) return { type: 'Null', value: 'null' };
  if (value instanceof TypedText) return { type: value.type, value: value.value };
  if (value instanceof Uint8Array) return { type: 'Bytes', value: Buffer.from(value).toString('base64') };
  if (typeof value === 'boolean') return { type: 'Boolean', value: String(value) };
  if (typeof value === 'bigint') return { type: 'BigInteger', value: String(value) };
  if (typeof value === 'number') return numberScalar(value);
  try {
    if (typeof value !== 'string' && typeof value !== 'object') throw new TypeError(typeof value);
    const json = canonicalJson(value);
    return typeof value === 'string' ? { type: 'String', value } : { type: 'Json', value: json };
  } catch {
    throw new ConfigError(
      label,
      value,
      'a text without lone surrogates, a boolean, number, bigint, bytes, null, TypedText, or what JSON holds',
    );
  }
}

function numberScalar(value: number): Scalar {
  if (!Number.isSafeInteger(value) || Object.is(value, -0))
    return { type: 'Double', value: Object.is(value, -0) ? '-0.0' : String(value) };
  return { type: value === (value | 0) ? 'Integer' : 'Long', value: String(value) };
}

/** A scalar of an unknown type, and one whose text its type does not allow, is a {@link TypedText}. */
export function fromScalar(scalar: Scalar): SharedValue {
  const { type, value } = checked(scalar, { type: TEXT, value: TEXT }, 'scalar');
  return (
    (Object.hasOwn(DECODERS, type) ? DECODERS[type]?.(value) : undefined) ??
    (type === 'Null' ? null : new TypedText(type, value))
  );
}

const integer = (text: string) =>
  /^[+-]?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
/** Of a text that may have a sign. */
const bigintOf = (text: string) => BigInt(text.replace('+', ''));
const DECODERS: Readonly<Record<string, (text: string) => SharedValue | undefined>> = {
  String: (text) => text,
  Boolean: (text) => (text === 'true' || text === 'false' ? text === 'true' : undefined),
  Integer: integer,
  Long: integer,
  Double: (text) => (DOUBLE.test(text) ? Number(text) : undefined),
  BigInteger: (text) => (/^[+-]?\d+$/.test(text) ? bigintOf(text) : undefined),
  Bytes: (text) =>
    BASE64.test(text) && text.length % 4 === 0 ? new Uint8Array(Buffer.from(text, 'base64')) : undefined,
  Json: (text) => {
    try {
      const json: unknown = JSON.parse(text);
      return typeof json === 'object' && json !== null ? (json as SharedJson) : undefined;
    } catch {
      return undefined;
    }
  },
};
/** What Java's Double.toString and JavaScript's String write. */
const DOUBLE = /^(NaN|[+-]?(Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?))$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Equal for equal scalars, and for no others. */
export const scalarId = ({ type, value }: Scalar) => `${type.length}:${type}${value}`;

/** A scalar's document, to the byte. */
export const encodeScalar = ({ type, value }: Scalar) => JSON.stringify({ type, value });

/** The scalar of a parsed document; undefined where it is none. Further fields are ignored. */
export function scalarOf(json: unknown): Scalar | undefined {
  if (typeof json !== 'object' || json === null) return undefined;
  const { type, value } = json as Partial<Record<string, unknown>>;
  return typeof type === 'string' && type && typeof value === 'string' ? { type, value } : undefined;
}

/** A map entry's document, to the byte. */
export const encodePair = (key: Scalar, value: Scalar) =>
  `{"key":${encodeScalar(key)},"value":${encodeScalar(value)}}`;

/** Monastery's types of scalars, and which texts each allows. */
const TEXTS: Readonly<Record<ScalarType, (scalar: Scalar) => boolean>> = {
  String: () => true,
  Boolean: isDecoded,
  Integer: ({ value }) => isWhole(value, 32),
  Long: ({ value }) => isWhole(value, 64),
  Double: isDecoded,
  BigInteger: isDecoded,
  BigDecimal: ({ value }) => /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(value),
  Json: (scalar) => isDecoded(scalar) && isCanonical(scalar),
  Bytes: isDecoded,
  Null: ({ value }) => value === 'null',
};

export const SCALAR_TYPES = Object.keys(TEXTS) as readonly ScalarType[];

/** What is wrong with a scalar, as a clause; undefined when nothing is. */
export function scalarProblem(scalar: Scalar): string | undefined {
  const { type } = scalar;
  if (!isScalarType(type)) return `unknown type ${type}`;
  return TEXTS[type](scalar) ? undefined : `its text is no ${type}`;
}

/** The scalar that a text is of that type, in the one way in which it is written; undefined for none. */
export function parseScalar(type: ScalarType, text: string): TypedText | undefined {
  const scalar = new TypedText(type, text);
  if (scalarProblem(scalar) !== undefined) return undefined;
  if (type === 'Json') return new TypedText(type, canonicalJson(JSON.parse(text)));
  const isNumber = type === 'Integer' || type === 'Long' || type === 'BigInteger';
  return isNumber ? new TypedText(type, String(bigintOf(text))) : scalar;
}

export function isScalarType(type: string): type is ScalarType {
  return Object.hasOwn(TEXTS, type);
}

function isDecoded(scalar: Scalar): boolean {
  return !(fromScalar(scalar) instanceof TypedText);
}

/** Whether it has a canonical form: one with a lone surrogate has none. */
function isCanonical({ value }: Scalar): boolean {
  try {
    return canonicalJson(JSON.parse(value)) !== '';
  } catch {
    return false;
  }
}

function isWhole(text: string, bits: number): boolean {
  return /^[+-]?\d{1,20}$/.test(text) && BigInt.asIntN(bits, bigintOf(text)) === bigintOf(text);
}
