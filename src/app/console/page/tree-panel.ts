import { type ComponentChildren, createContext, h } from 'preact';
import { useContext, useState } from 'preact/hooks';
import type {
  Contender,
  EntryReport,
  FleetReport,
  Standing,
  TreeReport,
} from '../../../node/wire/cluster-snapshot.js';
import type { ClusterModel } from '../model/cluster-model.js';
import { counted, formatDuration } from '../model/format.js';
import { bad, mark, memo, nodeButton, note, panel, quiet } from './ui.js';

/** Announcements of one folder that are listed. */
const MAX_LISTED = 40;
/** Folders of one level that are listed. */
const MAX_BRANCHES = 200;
/** A folder with more of them is closed at first. */
const MAX_OPEN = 12;

/** The wall clock when the page was last fresh, in milliseconds: ages follow it without a new tree. */
export const Now = createContext(0);

/**
 * The discovery tree: nodes, services and endpoints as ZooKeeper has them, the locks that are followed, and
 * which node runs which configuration. None without ZooKeeper.
 */
export function treePanel({ tree, cluster }: ClusterModel) {
  if (!tree && !cluster?.discovery && !cluster?.allocation) return null;
  const draw = () => {
    const none = 'It cannot be read: ZooKeeper does not answer.';
    const content = tree === null ? quiet(none) : [quiet(h('code', null, tree.zookeeper)), drawTree(tree)];
    return panel('tree', 'Discovery tree', null, content);
  };
  return memo(draw, [tree]);
}

function drawTree({ exists, nodes, services, endpoints, foreign, locks, configurations }: TreeReport) {
  const entries = (name: string, all: readonly EntryReport[], isOpen: boolean) =>
    folder(name, all, entryItem, isOpen, MAX_LISTED);
  const service = ({ service, nodes }: TreeReport['services'][number]) =>
    entries(service, nodes, nodes.length <= MAX_OPEN && services.length === 1);
  const endpoint = ({ endpoint, keys }: TreeReport['endpoints'][number]) =>
    folder(endpoint, keys, ({ key, refs }) => entries(key === '_' ? 'no key' : key, refs, false), false);
  const others = `${counted(foreign.length, 'znode')} not of this tree: ${foreign.slice(0, 5).join(', ')}`;
  return [
    !exists && quiet('There is nothing in it yet.'),
    exists && entries('nodes', nodes, nodes.length <= MAX_OPEN),
    exists && services.length > 0 && folder('services', services, service, true),
    exists && endpoints.length > 0 && folder('endpoints', endpoints, endpoint, false),
    exists && foreign.length > 0 && quiet(others),
    locks !== undefined && folder('locks', locks ?? [], lockFolder, true),
    locks === null && quiet('They cannot be read.'),
    configurations?.length ? folder('configuration', configurations, configurationFolder, true) : null,
    configurations === null && quiet('The configurations cannot be read.'),
  ];
}

/** A lock: its holders, and after them the waiting tasks in the order of their turns. */
function lockFolder({ path, kind, holders, waiting }: Standing) {
  const all = [...holders, ...waiting];
  const item = ({ data, token, since }: Contender, at: number) => {
    const state = at < holders.length ? `token ${token}, ` : 'waiting, ';
    const about = h('span', { class: 'entry-note quiet' }, state, h(Age, { since }));
    return h('li', null, h('span', { class: 'id-chip' }, data || 'no name'), about);
  };
  return folder(`${path} (${kind})`, all, item, all.length <= MAX_OPEN, MAX_LISTED);
}

function Age({ since }: { readonly since: number }) {
  return h('span', null, formatDuration(useContext(Now) - since));
}

/** A configuration: which revision each node runs, the late ones first. */
function configurationFolder({ context, revisions, nodes }: FleetReport) {
  const late = nodes.filter(({ behind }) => behind.length > 0);
  const all = [...late, ...nodes.filter(({ behind }) => behind.length === 0)];
  const item = ({ nodeId, revisions, behind }: FleetReport['nodes'][number]) =>
    h(
      'li',
      null,
      nodeButton(nodeId),
      h('span', { class: 'entry-note' }, `revision ${revisions[context] ?? 0}`),
      behind.length > 0 && bad(mark('damaged'), ` behind in ${behind.join(' ')}`),
    );
  const name = `${context}, revision ${revisions[context] ?? 0}: ${late.length} of ${nodes.length} behind`;
  return folder(name, all, item, late.length > 0, MAX_LISTED, context);
}

/** An announcement, as the node id that it is of. */
function entryItem({ path, nodeId, version, taskId, address, port, problem }: EntryReport) {
  const name = path.split('/').at(-1);
  const where = address === null ? taskId : `${address}${port === null ? '' : `:${port}`}`;
  return h(
    'li',
    { title: path },
    nodeId === null ? h('span', { class: 'id-chip' }, name) : nodeButton(nodeId),
    h('span', { class: 'entry-note' }, version !== null && note(`v${version} `), where),
    problem !== null && nodeId !== null && mark('damaged'),
    problem !== null && bad(problem),
  );
}

/** A folder of list items, or of further folders, of which the first ones are drawn. */
function folder<T>(
  name: string,
  all: readonly T[],
  draw: (each: T, at: number) => ComponentChildren,
  isOpen: boolean,
  max = MAX_BRANCHES,
  key = name,
) {
  const drawn = all.slice(0, max).map(draw);
  const rest = all.length > max && quiet(`and ${all.length - max} more`);
  const content = [max === MAX_LISTED ? h('ul', { class: 'entries' }, drawn) : drawn, rest];
  return h(Folder, { key, name, count: all.length, isOpen }, content);
}

interface FolderProps {
  readonly name: string;
  readonly count: number;
  /** Whether it is open until the reader closes it. */
  readonly isOpen: boolean;
  readonly children?: ComponentChildren;
}

function Folder({ name, count, isOpen, children }: FolderProps) {
  const [open] = useState(isOpen);
  const summary = h('summary', null, h('span', null, name), h('span', { class: 'count' }, count));
  return h('details', { class: 'branch', open }, summary, children);
}
