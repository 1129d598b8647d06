import { describe, expect, it } from 'vitest';
import { renderTable } from './answer.js';
import type { Screen } from './io.js';
import { cut } from './terminal/text.js';

const screen = (columns: number, color = false): Screen => ({ columns, rows: 24, color });

describe('a table', () => {
  it('aligns its columns and leaves no blanks at the ends of lines', () => {
    const lines = renderTable(
      [['ID', 'right'], 'NAME', 'NOTE'],
      [
        ['7', 'seven', ''],
        ['12345', '', 'big'],
      ],
      undefined,
    );
    expect(lines).toEqual(['   ID  NAME   NOTE', '    7  seven', '12345         big']);
  });

  it('squeezes the columns that may be squeezed until it fits, the last one first', () => {
    const columns = ['A', ['B', 4], ['C', 6]] as const;
    const rows = [['fixed-one', 'abcdefghij', 'klmnopqrst']];
    expect(renderTable(columns, rows, screen(30))[1]).toBe('fixed-one  abcdefghij  klmnop…');
    expect(renderTable(columns, rows, screen(25))[1]).toBe('fixed-one  abcde…  klmno…');
  });

  it('colours the text and not the blanks, and only where colours are wanted', () => {
    const rows = [[['ok', 'green'] as const, 'x']];
    const columns = ['STATE', 'Y'];
    expect(renderTable(columns, rows, screen(80, true))[1]).toBe('\x1b[32mok\x1b[39m     x');
    expect(renderTable(columns, rows, undefined)[1]).toBe('ok     x');
  });

  it('may have any number of rows, such as all tenures of the largest cluster', () => {
    const rows = new Array<[string]>(9 * 65_528).fill(['7']);
    expect(renderTable(['ID'], rows, undefined)).toHaveLength(rows.length + 1);
  });

  it('keeps texts of a store from commanding the terminal', () => {
    const lines = renderTable(['TASK'], [['a\x1b[2Jb\nc']], undefined);
    expect(lines[1]).toBe('a\uFFFD[2Jb\uFFFDc');
  });
});

describe('a text that is cut', () => {
  it('never takes more room than there is', () => {
    expect([cut('abc', 3), cut('abcd', 3), cut('abcd', 1), cut('abcd', 0)]).toEqual(['abc', 'ab…', '…', '']);
  });
});
