import { type ComponentChildren, Fragment, h, render } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Frame, type FramedPage } from './frame.js';
import { bad, find, flag, mark, memo, note, quiet, search } from './ui.js';

/** A text that is shown without having to be opened, in characters. */
const SHORT = 60;

/** Rows under a heading that can be closed. */
export interface Folder {
  readonly key: string;
  readonly title: string;
  readonly note?: string;
  readonly problem: string | null;
  readonly count: string;
  /** The headings of the columns. */
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
  /** How many more there are than these. */
  readonly more?: number;
  readonly isOpenAtFirst: boolean;
}

export interface Row {
  readonly path: string;
  readonly state?: string;
  /** What the filter looks in. A row with another text replaces the one before, and is shown as new. */
  readonly text: string;
  /** Another object where the cells may be other ones. */
  readonly source: unknown;
  /** One content for each column. */
  readonly cells: () => readonly ComponentChildren[];
}

interface FoldersProps {
  readonly folders: readonly Folder[];
  /** Words: only rows that have all of them, with their headings, are shown, in folders that are open. */
  readonly filter: string;
}

/** Folders of rows that change while one looks at them, and can be filtered. */
export function Folders({ folders, filter }: FoldersProps) {
  // A button is replaced with its row: the keyboard focus goes to the new one.
  const focused = document.activeElement?.closest<HTMLElement>('[data-key]')?.dataset.key;
  useLayoutEffect(() => {
    if (focused !== undefined && document.activeElement === document.body)
      document.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  });
  const draw = () => folders.map((folder) => h(FolderDetails, { key: folder.key, folder, filter }));
  return useMemo(draw, [folders, filter]);
}

interface FolderProps extends Pick<FoldersProps, 'filter'> {
  readonly folder: Folder;
}

/** The filter opens and closes it; in between it stays as the reader leaves it. */
function FolderDetails({ folder, filter }: FolderProps) {
  const { title, problem, count, columns, rows, more = 0 } = folder;
  const [isOpenAtFirst] = useState(folder.isOpenAtFirst);
  const keyOf = ({ path, text }: Row) => `${path}\n${text}`;
  // The first rows are not new.
  const old = useRef(new Set<string>());
  if (old.current.size === 0) old.current = new Set(rows.map(keyOf));
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const heading = [title, folder.note, problem, count].join('\n');
  const fits = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  let hidden = !fits(heading);
  const drawn = rows.map((row) => {
    const { path: title, state, text, source } = row;
    const key = keyOf(row);
    const isHidden = !fits(`${heading}\n${text}`);
    hidden &&= isHidden;
    const attributes = {
      title,
      'data-new': flag(!old.current.has(key)),
      'data-state': state,
      hidden: isHidden,
    };
    const draw = () =>
      h(
        'tr',
        attributes,
        row.cells().map((cell, at) => h('td', { 'data-column': columns[at] }, cell)),
      );
    return memo(draw, [source, isHidden], key);
  });
  const head = columns.map((column) => h('th', { scope: 'col', 'data-column': column }, column));
  return h(
    'details',
    { class: 'branch', open: words.length > 0 || isOpenAtFirst, hidden },
    h(
      'summary',
      null,
      `${title} `,
      folder.note && note(folder.note),
      problem !== null && bad(mark('damaged'), ` ${problem}`),
      ' ',
      h('span', { class: 'count' }, count),
    ),
    h('table', null, h('thead', null, h('tr', null, head)), h('tbody', null, drawn)),
    quiet(more > 0 && `and ${more} more`),
  );
}

/** A button in a row: what it does, and with what. */
export function rowButton(act: string, what: string, path: string, onClick: () => void) {
  return h(
    'button',
    { type: 'button', 'aria-label': `${act} ${what}`, 'data-key': `${act} ${path}`, onClick },
    act,
  );
}

/** Others' text: at once where it is short, else behind its beginning, or what it says in short. */
export function payload(path: string, text: string, short = `${text.slice(0, SHORT)}…`) {
  if (text.length <= SHORT) return code(text);
  return h('details', null, h('summary', { 'data-key': `text ${path}` }, code(short)), code(text));
}

/** A text whose lines may end at its punctuation: JSON has no spaces. */
function code(text: string) {
  const parts = text.split(/(?<=[,;:{}[\]&])/);
  return h(
    'code',
    null,
    parts.map((part) => [part, h('wbr', null)]),
  );
}

interface FoldersPageProps {
  readonly frame: Frame;
  readonly heading: string;
  /** The text in the header. */
  readonly settings: string;
  /** What is next to the heading. */
  readonly tools: ComponentChildren;
  readonly placeholder: string;
  readonly notice: string;
  /** Undefined while they are not known. */
  readonly folders: readonly Folder[] | undefined;
  /** Shown without folders. */
  readonly none: string;
}

/** Draws a page that consists of folders. */
export function drawFoldersPage({
  frame,
  heading,
  settings,
  tools,
  placeholder,
  notice,
  folders,
  none,
}: FoldersPageProps): void {
  const content = [
    h(
      'div',
      { class: 'bar-of-tools' },
      h('h2', null, heading),
      tools,
      search('Filter', `Filter: ${placeholder}`, frame.filter, frame.filterBy, true),
    ),
    h('p', { class: 'bad', id: 'notice', role: 'alert' }, notice),
    !folders?.length && h('p', { class: 'empty quiet' }, none),
    h(
      'div',
      { class: 'panel folders', id: heading.toLowerCase() },
      folders && h(Folders, { folders, filter: frame.filter }),
    ),
  ];
  render(settings, find('settings'));
  render(h(Fragment, null, content), find('content'));
}

/** The frame of such a page: its filter leads to the first folder that is left. */
export function foldersFrame(page: Omit<FramedPage, 'focusFound' | 'onEscape'>): Frame {
  const frame: Frame = new Frame({
    ...page,
    focusFound: () => document.querySelector<HTMLElement>('.folders details:not([hidden]) summary')?.focus(),
    onEscape: () => frame.filterBy(''),
  });
  return frame;
}
