import { describe, expect, it } from 'vitest';
import type { Screen } from './io.js';
import { renderTable } from './table.js';
import { cut } from './text.js';

const screen = (columns: number, color = false): Screen => ({ columns, rows: 24, color });

describe('a table', () => {
  it('aligns its columns and leaves no blanks at the ends of lines', () => {
    const lines = renderTable(
      [{ title: 'ID', align: 'right' }, { title: 'NAME' }, { title: 'NOTE' }],
      [
        [{ text: '7' }, { text: 'seven' }, { text: '' }],
        [{ text: '12345' }, { text: '' }, { text: 'big' }],
      ],
      undefined,
    );
    expect(lines).toEqual(['   ID  NAME   NOTE', '    7  seven', '12345         big']);
  });

  it('squeezes the columns that may be squeezed until it fits, the last one first', () => {
    const columns = [{ title: 'A' }, { title: 'B', minWidth: 4 }, { title: 'C', minWidth: 6 }];
    const rows = [[{ text: 'fixed-one' }, { text: 'abcdefghij' }, { text: 'klmnopqrst' }]];
    expect(renderTable(columns, rows, screen(30))[1]).toBe('fixed-one  abcdefghij  klmnop…');
    expect(renderTable(columns, rows, screen(25))[1]).toBe('fixed-one  abcde…  klmno…');
  });

  it('colours the text and not the blanks, and only where colours are wanted', () => {
    const rows = [[{ text: 'ok', color: 'green' as const }, { text: 'x' }]];
    const columns = [{ title: 'STATE' }, { title: 'Y' }];
    expect(renderTable(columns, rows, screen(80, true))[1]).toBe('\x1b[32mok\x1b[39m     x');
    expect(renderTable(columns, rows, undefined)[1]).toBe('ok     x');
  });

  it('keeps what stands in a store from commanding the terminal', () => {
    const lines = renderTable([{ title: 'TASK' }], [[{ text: 'a\x1b[2Jb\nc' }]], undefined);
    expect(lines[1]).toBe('a\uFFFD[2Jb\uFFFDc');
  });
});

describe('a text that is cut', () => {
  it('never takes more room than there is', () => {
    expect([cut('abc', 3), cut('abcd', 3), cut('abcd', 1), cut('abcd', 0)]).toEqual(['abc', 'ab…', '…', '']);
  });
});
