import { canonicalJson } from './canonical-json.js';
import type { Scalar } from './data-report.js';
import { bigintOf, fromScalar, type ScalarType, TypedText } from './scalar-codec.js';

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
