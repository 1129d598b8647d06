/**
 * Whether a line matches a JSON filter pattern of CloudWatch Logs, of which it knows what is used here:
 * `$.field = "text"`, `$.field NOT EXISTS`, `&&`, `||` and brackets. As in CloudWatch, a line that is no JSON object matches
 * nothing.
 *
 * Source: Amazon CloudWatch Logs User Guide, "Filter pattern syntax for metric filters".
 *
 * @throws Error for a pattern with anything else in it
 */
export function matches(pattern: string, line: string): boolean {
  const tokens = pattern.match(/"(?:[^"\\]|\\.)*"|\$\.[\w.]+|&&|\|\||[(){}=]|[^\s()]+/g) ?? [];
  const reader = new PatternReader(tokens, objectIn(line));
  reader.expect('{');
  const result = reader.either();
  reader.expect('}');
  if (reader.more) throw new Error(`more behind the pattern ${pattern}`);
  return result;
}

class PatternReader {
  #at = 0;

  constructor(
    private readonly tokens: readonly string[],
    private readonly object: Readonly<Record<string, unknown>> | undefined,
  ) {}

  get more(): boolean {
    return this.#at < this.tokens.length;
  }

  expect(token: string): void {
    const next = this.#next();
    if (next !== token) throw new Error(`expected ${token} in the pattern, got ${next}`);
  }

  either(): boolean {
    let result = this.#both();
    while (this.tokens[this.#at] === '||') {
      this.#at += 1;
      const other = this.#both();
      result ||= other;
    }
    return result;
  }

  #both(): boolean {
    let result = this.#one();
    while (this.tokens[this.#at] === '&&') {
      this.#at += 1;
      const other = this.#one();
      result &&= other;
    }
    return result;
  }

  #one(): boolean {
    const next = this.#next();
    if (next === '(') {
      const result = this.either();
      this.expect(')');
      return result;
    }
    if (!next.startsWith('$.')) throw new Error(`expected a field in the pattern, got ${next}`);
    const value = this.object?.[next.slice(2)];
    const operator = this.#next();
    if (operator === 'NOT') {
      this.expect('EXISTS');
      return this.object !== undefined && value === undefined;
    }
    if (operator !== '=') throw new Error(`expected = or NOT in the pattern, got ${operator}`);
    return value === JSON.parse(this.#next());
  }

  #next(): string {
    const token = this.tokens[this.#at];
    if (token === undefined) throw new Error('the pattern ends too early');
    this.#at += 1;
    return token;
  }
}

function objectIn(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
