import { type ComponentChildren, h } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { DataEntry, DataReport, DatumReport, TreeReport } from '../../../node/wire/cluster-snapshot.js';
import { counted } from '../model/format.js';
import { question } from '../page/dialogs.js';
import { type Folder, Folders, type Row, rowButton } from '../page/folders.js';
import type { Frame } from '../page/frame.js';
import { bad, note, panel, quiet, search } from '../page/ui.js';
import { actsOn } from './data-acts.js';

/** A collection with more entries is closed at first. */
const MAX_OPEN = 12;
const COLUMNS = ['Key', 'Value', 'Type', 'Owner', 'Notes'];

interface DataProps {
  readonly tree: TreeReport | null;
  readonly frame: Frame;
  /** Whether holders of the token may change entries. */
  readonly isWritable: boolean;
}

/** Monastery's shared data, where it is followed: each datum with its entries, their types and owners. */
export function DataPanel({ tree, frame, isWritable }: DataProps) {
  const [filter, setFilter] = useState('');
  const [notice, setNotice] = useState('');
  const last = useRef<readonly DataReport[] | undefined>(undefined);
  // Without ZooKeeper's answer it is not known either whether any data is followed.
  if (tree !== null) last.current = tree.data === undefined ? undefined : (tree.data ?? last.current ?? []);
  const all = last.current;
  const folders = useMemo(() => {
    const change = async (request: RequestInit) => setNotice(await frame.change('api/data', request));
    return all?.flatMap(({ root, data }) =>
      data.map((datum) => folderOf(root, datum, isWritable ? change : undefined)),
    );
  }, [all, isWritable]);
  if (all === undefined || folders === undefined) return null;
  const entries = all.flatMap(({ data }) => data).reduce((sum, { size }) => sum + size, 0);
  const where = all.map(({ root, zookeeper }) => `${root} of ${zookeeper}`).join(', ');
  const sum = `${counted(folders.length, 'datum', 'data')} with ${counted(entries, 'entry', 'entries')} at ${where}.${isWritable ? '' : ' Read-only.'}`;
  return panel(
    'data',
    'Shared data',
    search('Entries that contain', 'containing …', filter, setFilter),
    quiet(tree?.data ? sum : 'It cannot be read at present.'),
    h('p', { role: 'status' }, notice),
    h('div', { class: 'folders' }, h(Folders, { folders, filter })),
  );
}

type Change = (request: RequestInit) => void;

function folderOf(root: string, datum: DatumReport, change: Change | undefined): Folder {
  const { name, scope, kind, lifespan, path, size, entries, problem } = datum;
  return {
    key: root + path,
    title: name ?? path,
    note: [scope ? `of scope ${scope}` : '', lifespan, kind ?? 'unknown'].filter(Boolean).join(' '),
    problem,
    count: String(size),
    columns: COLUMNS,
    rows: entries.map((entry) => rowOf(entry, change && toolsOf(root, datum, entry, change))),
    more: size - entries.length,
    isOpenAtFirst: size <= MAX_OPEN && kind !== null,
  };
}

function rowOf(entry: DataEntry, tools: ComponentChildren): Row {
  const { path, key, scalar, place, owner, node, problem } = entry;
  const keyText = key?.value ?? (scalar === null ? path.slice(path.lastIndexOf('/') + 1) : '');
  const facts = [scalar?.value, scalar?.type, node ?? owner];
  const hasType = key !== null && key.type !== 'String' && key.type !== 'Integer';
  const collides = place !== null && place > 0 && note(`collides: place ${place} `);
  return {
    path,
    text: [keyText, key?.type, ...facts, problem].join('\n'),
    source: entry,
    cells: () => [
      [keyText, hasType && note(` ${key.type}`)],
      ...facts,
      [collides, problem !== null && bad(problem), tools],
    ],
  };
}

/** The buttons of an entry. */
function toolsOf(root: string, datum: DatumReport, entry: DataEntry, change: Change): ComponentChildren {
  const { name, scope, kind } = datum;
  const { path, key, scalar, version: ifVersion } = entry;
  const { mayChange, mayRemove } = actsOn(datum, entry);
  if (scalar === null) return null;
  const named = key ?? scalar;
  const what = kind === 'scalar' ? `${name}` : `${named.value} of ${name}`;
  const ask = (method: 'PUT' | 'DELETE', facts: object) =>
    change({ method, body: JSON.stringify({ root, name, scope, kind, ifVersion, ...facts }) });
  const set = async () => {
    const text = `The new text of the ${scalar.type}, for all nodes.`;
    const value = await question(`Change ${what}`, text, 'Change', scalar.value);
    if (value !== undefined) ask('PUT', { key, value: { type: scalar.type, value } });
  };
  const remove = async () => {
    const answer = await question(`Remove ${what}?`, 'It is removed for all nodes.', 'Remove');
    if (answer !== undefined) ask('DELETE', { entry: named });
  };
  return [
    mayChange && rowButton('Change', what, path, set),
    ' ',
    mayRemove && rowButton('Remove', what, path, remove),
  ];
}
