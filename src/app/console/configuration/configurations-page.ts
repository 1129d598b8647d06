import { type ComponentChildren, h } from 'preact';
import type {
  ConfigContext,
  ConfigEntry,
  ConfigHistory,
  ConfigNode,
} from '../../../node/wire/entries-wire.js';
import { EntriesModel } from '../model/entries-model.js';
import { drawFoldersPage, type Folder, foldersFrame, payload, type Row, rowButton } from '../page/folders.js';
import { bad, mark } from '../page/ui.js';
import { browserClock } from '../page-clock.js';

/** A table with more rows is closed at first. */
const MAX_OPEN = 100;
const API = 'api/configurations';
/** The columns with others' texts, of any length. */
const OTHERS = new Set(['Value', 'Old', 'New', 'Message', 'Keys']);

/** A history, or why it cannot be read. */
type Answer = Partial<ConfigHistory> & { readonly message?: string };

// The page of configurations: all contexts, and of one its values, nodes, history and differences.

const model = new EntriesModel<ConfigEntry>(browserClock, () => undefined);
const frame = foldersFrame({
  stream: API,
  what: 'the configurations',
  model,
  draw,
});
/** The context that is shown, and the revisions to compare: `#context=shop&from=3&to=5`. */
let address = new URLSearchParams();
let contextName = '';
/** The history that is shown, or has been asked for; with the revision of the context. */
let asked = '';
let answer: Answer = {};
let folders: readonly Folder[] | undefined;
let isNew = true;

function draw() {
  const { about, store, entries } = model;
  address = new URLSearchParams(location.hash.slice(1));
  const name = address.get('context') ?? '';
  if (name !== contextName) show({});
  contextName = name;
  const entry = entries.get(name);
  const context = entry && 'nodes' in entry ? entry : undefined;
  void ask(context);
  const isChanged = model.takeChange() || isNew;
  if (isChanged && (folders || store.isWhole)) {
    isNew = false;
    folders = tables(context);
  }
  drawFoldersPage({
    frame,
    heading: 'Configurations',
    settings: about ? `${about.zookeeper} ${about.path}` : '',
    tools: null,
    placeholder: 'a key, a value, behind, …',
    notice: folders && name && !context ? `There is no context ${name}.` : '',
    folders,
    none: folders ? `There are no configurations below ${about?.path}.` : 'Connecting …',
  });
}

/** Asks for the history: again after each revision, and after each gap. */
async function ask(context: ConfigContext | undefined) {
  const url = `${API}/${encodeURIComponent(contextName)}?${address}`;
  const wanted = context && model.staleSince === undefined ? `${url} ${context.revision}` : '';
  if (wanted === asked) return;
  asked = wanted;
  if (wanted === '') return;
  const found = await frame.get<Answer>(url).catch(() => ({ message: 'It cannot be read.' }));
  if (wanted === asked) show(found);
}

function show(found: Answer) {
  answer = found;
  isNew = true;
}

function tables(context: ConfigContext | undefined) {
  const { revisions = [], changes = [], from, to, message } = answer;
  const entries = [...model.entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
  const contexts = entries.flatMap((entry) => {
    if ('key' in entry) return [];
    const { context, revision, keys, nodes, problem } = entry;
    const late = nodes.filter(({ behind }) => behind.includes(context)).length;
    return [[context, revision, keys, nodes.length, problem ?? (late > 0 ? `${late} behind` : '')]];
  });
  const values = entries.flatMap((entry) =>
    'key' in entry && entry.context === contextName ? [[entry.key, entry.value]] : [],
  );
  const isBehind = ({ behind }: ConfigNode) => behind.includes(contextName);
  const lateFirst = [...(context?.nodes ?? [])].sort((a, b) => Number(isBehind(b)) - Number(isBehind(a)));
  const nodes = lateFirst.map((node) => {
    const { nodeId, revisions, at, follows } = node;
    return [nodeId, revisions[contextName] ?? 0, at, follows, isBehind(node) ? 'behind' : ''];
  });
  const published = revisions.map(({ revision, at, author, message: why, keys }) => [
    revision,
    at,
    author,
    why,
    keys.join(', '),
    revision,
  ]);
  const differences = changes.map(({ key, old, new: now }) => [
    key,
    old === null ? 'added' : now === null ? 'removed' : 'changed',
    old ?? '',
    now ?? '',
  ]);
  return [
    table('Contexts', '', ['Context', 'Revision', 'Values', 'Nodes', 'Notes'], contexts),
    table('Values', `of ${contextName}`, ['Key', 'Value'], values),
    table('Nodes', `of ${contextName}`, ['Node id', 'Revision', 'Since', 'Follows', 'Notes'], nodes),
    table(
      'History',
      `of ${contextName}`,
      ['Revision', 'At', 'Author', 'Message', 'Keys', 'Compare'],
      published,
      message,
    ),
    table('Differences', `from ${from} to ${to}`, ['Key', 'Change', 'Old', 'New'], differences),
  ].filter(({ rows, problem }) => rows.length > 0 || problem !== null);
}

/** A folder that is open while it is short. */
function table(
  title: string,
  about: string,
  columns: readonly string[],
  lines: readonly (readonly (string | number)[])[],
  problem: string | null = null,
): Folder {
  const rows = lines.map((line): Row => {
    const texts = line.map(String);
    const [path = ''] = texts;
    const text = texts.join('\n');
    const cells = () => texts.map((each, at) => cell(columns[at] ?? '', each, path));
    return { path, text, source: text, cells };
  });
  return {
    key: title + about,
    title,
    note: about,
    problem,
    count: rows.length.toLocaleString('en'),
    columns,
    rows,
    isOpenAtFirst: rows.length <= MAX_OPEN,
  };
}

/** @param path what its row is of */
function cell(column: string, text: string, path: string): ComponentChildren {
  if (column === 'Context') return h('a', { href: `#${new URLSearchParams({ context: text })}` }, text);
  if (column === 'Notes') return text && bad(mark('damaged'), ` ${text}`);
  if (column === 'Compare')
    return ['from', 'to'].map((end) => [
      rowButton(end, `revision ${text}`, text, () => compare(end, text)),
      ' ',
    ]);
  return OTHERS.has(column) && text ? payload(`${column} ${path}`, text) : text;
}

/** Chooses one of the revisions to compare. */
function compare(end: string, revision: string) {
  const compared = new URLSearchParams(location.hash.slice(1));
  compared.set(end, revision);
  location.hash = `${compared}`;
}

document.title = 'configurations · nodelease';
frame.links([['./', 'Node ids']]);
frame.start();
