/**
 * The password in the text of a password file; undefined if no line is for this connection.
 * https://www.postgresql.org/docs/current/libpq-pgpass.html
 *
 * @param connection host, port, database and user
 */
export function passwordIn(text: string, connection: readonly string[]): string | undefined {
  // Colons separate the fields. A backslash is before each colon and backslash in one.
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.match(/(\\.|[^\\:])+/g)?.map((field) => field.replace(/\\(.)/g, '$1')) ?? []);
  return lines.find((fields) => connection.every((value, i) => ['*', value].includes(fields[i] ?? '')))?.[4];
}
