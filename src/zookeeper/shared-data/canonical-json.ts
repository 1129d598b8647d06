/**
 * JSON in its canonical form: names in the order of their UTF-16 code units, no white space. Source: RFC
 * 8785.
 *
 * @throws {TypeError} for what JSON cannot hold, naming it
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value === 'string' && !LONE_SURROGATE.test(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${Array.from(value, canonicalJson).join(',')}]`;
  // A Date or a Map would be written as {}.
  if (Object.prototype.toString.call(value) !== '[object Object]')
    throw new TypeError(`JSON holds no ${typeof value === 'string' ? 'lone surrogate' : String(value)}`);
  const fields = Object.entries(value as object).filter(([, field]) => field !== undefined);
  const isLess = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);
  return `{${fields
    .sort(isLess)
    .map(([name, field]) => `${canonicalJson(name)}:${canonicalJson(field)}`)
    .join(',')}}`;
}

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
