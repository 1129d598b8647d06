import { isDeepStrictEqual } from 'node:util';
import type { JsonSchema, JsonType } from './openapi.js';

/** What {@link violations} understands: a keyword that is not among these would not be checked. */
export const KEYWORDS: ReadonlySet<string> = new Set([
  ...['$ref', 'description', 'type', 'const', 'enum', 'minimum', 'maximum', 'minLength', 'maxLength'],
  ...['items', 'properties', 'required', 'additionalProperties'],
]);

/**
 * Where a value is not as a schema has it, one line each; nothing when it is. Only the keywords that our own
 * documents use.
 *
 * @param schemas what `$ref` refers to, as `#/components/schemas/NAME`
 * @throws Error for a keyword, or a reference, that is not known
 */
export function violations(
  value: unknown,
  schema: JsonSchema,
  schemas: Readonly<Record<string, JsonSchema>>,
  at = '$',
): string[] {
  for (const keyword of Object.keys(schema))
    if (!KEYWORDS.has(keyword)) throw new Error(`${at}: keyword ${keyword} is not understood`);
  const { $ref, type, const: constant, enum: values, minimum, maximum, minLength, maxLength, items } = schema;
  if ($ref !== undefined) {
    const target = schemas[$ref.replace('#/components/schemas/', '')];
    if (!target) throw new Error(`${at}: ${$ref} refers to nothing`);
    return violations(value, target, schemas, at);
  }
  const found: string[] = [];
  const expect = (holds: boolean, what: string) =>
    void (holds || found.push(`${at}: expected ${what}, got ${JSON.stringify(value)}`));
  if (type !== undefined) {
    const types = [type].flat();
    expect(
      types.some((each) => isOfType(value, each)),
      types.join(' or '),
    );
  }
  if (constant !== undefined) expect(isDeepStrictEqual(value, constant), String(constant));
  if (values) expect(typeof value === 'string' && values.includes(value), values.join(' or '));
  if (typeof value === 'number') {
    if (minimum !== undefined) expect(value >= minimum, `at least ${minimum}`);
    if (maximum !== undefined) expect(value <= maximum, `at most ${maximum}`);
  }
  if (typeof value === 'string') {
    if (minLength !== undefined) expect(value.length >= minLength, `at least ${minLength} characters`);
    if (maxLength !== undefined) expect(value.length <= maxLength, `at most ${maxLength} characters`);
  }
  if (Array.isArray(value) && items)
    found.push(...value.flatMap((item, index) => violations(item, items, schemas, `${at}[${index}]`)));
  if (isOfType(value, 'object'))
    found.push(...fieldViolations(value as Record<string, unknown>, schema, schemas, at));
  return found;
}

function fieldViolations(
  value: Readonly<Record<string, unknown>>,
  { properties = {}, required = [], additionalProperties }: JsonSchema,
  schemas: Readonly<Record<string, JsonSchema>>,
  at: string,
): string[] {
  const found = required
    .filter((name) => !Object.hasOwn(value, name))
    .map((name) => `${at}.${name}: expected, but missing`);
  for (const [name, field] of Object.entries(value)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema) found.push(...violations(field, schema, schemas, `${at}.${name}`));
    else if (additionalProperties === false) found.push(`${at}.${name}: not expected`);
  }
  return found;
}

function isOfType(value: unknown, type: JsonType): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}
