/** The middle one. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/**
 * Prints a table: what was measured, how much it is, and how many times the baseline, which is the first row.
 */
export function report(
  title: string,
  rows: readonly (readonly [what: string, value: string, ratio: string])[],
): void {
  const width = (column: 0 | 1) => Math.max(...rows.map((row) => row[column].length));
  const lines = rows.map(
    ([what, value, ratio]) => `  ${what.padEnd(width(0))}  ${value.padStart(width(1))}  ${ratio}`,
  );
  process.stdout.write(`\n${title}\n${lines.join('\n')}\n`);
}
