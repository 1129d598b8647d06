import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../test/support/package-root.js';
import type { Cell } from './cell.js';
import { stormChart } from './chart.js';

/**
 * Puts tables into the page of the documentation, between the comments that bear their names, and the chart
 * next to it.
 *
 * @throws Error when the page has no place for one of them
 */
export function writePage(tables: Readonly<Record<string, string>>, charted: readonly Cell[]): void {
  writeTables('docs/design/boot-storms.md', tables);
  writeFileSync(join(packageRoot, 'docs/images/storm.svg'), stormChart(charted));
}

/** @throws Error when the page has no place for one of them */
export function writeTables(page: string, tables: Readonly<Record<string, string>>): void {
  const path = join(packageRoot, page);
  writeFileSync(path, withTables(readFileSync(path, 'utf8'), tables));
}

/** @throws Error when the page has no place for one of them */
export function withTables(page: string, tables: Readonly<Record<string, string>>): string {
  return Object.entries(tables).reduce((text, [name, table]) => {
    const [before, after] = [`<!-- ${name} -->\n`, `\n<!-- end of ${name} -->`];
    const [begin, end] = [text.indexOf(before), text.indexOf(after)];
    if (begin < 0 || end < begin) throw new Error(`there is no ${before.trim()} … ${after.trim()}`);
    return text.slice(0, begin + before.length) + table + text.slice(end);
  }, page);
}
