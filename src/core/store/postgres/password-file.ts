/**
 * The password in the text of a password file; undefined if no line is for this connection.
 * https://www.postgresql.org/docs/current/libpq-pgpass.html
 *
 * @param connection host, port, database and user
 */
export function passwordIn(text: string, connection: readonly string[]): string | undefined {
  const lines = text.split(/\r?\n/).filter((line) => !line.startsWith('#'));
  return lines
    .map(fieldsOf)
    .find((fields) =>
      connection.every((value, index) => fields[index] === '*' || fields[index] === value),
    )?.[4];
}

/** They have colons between them. A backslash is before each colon and backslash in one. */
function fieldsOf(line: string): readonly string[] {
  return [...line.matchAll(/((?:\\.|[^\\:])*)(?::|$)/g)].map(([, field = '']) =>
    field.replace(/\\(.)/g, '$1'),
  );
}
