import { ConfigError } from '../base/errors.js';
import { DISCOVERY_PATH, ENDPOINTS_PATH, NODES_PATH, parseHexPair, SERVICES_PATH, STAMPS_PATH } from '../discovery/tree-paths.js';
import { CLUSTER_NODE_ID_OFFSET, nodeIdOf } from '../id/cluster-node-id.js';
import { pathProblem } from '../zookeeper/znode-path.js';

/** What a path in the discovery tree stands for, by its names alone. */
export type TreePath =
  /** A znode that others stand below: the root, a branch, a group, a service, an endpoint, a key. */
  | { readonly kind: 'folder' }
  | { readonly kind: 'node'; readonly nodeId: number; readonly clusterNodeId: number }
  | { readonly kind: 'service'; readonly service: string; readonly ref: string }
  | { readonly kind: 'endpoint'; readonly endpoint: string; readonly key: string; readonly ref: string }
  /** What node ids from ZooKeeper alone need besides: no node announces anything there. */
  | { readonly kind: 'internal' }
  /** Nothing that the tree has a place for; left alone. */
  | { readonly kind: 'foreign' };

/** A path where nodes announce something. */
export type EntryPath = Extract<TreePath, { kind: 'node' | 'service' | 'endpoint' }>;

const FOLDER: TreePath = { kind: 'folder' };
const INTERNAL: TreePath = { kind: 'internal' };
const FOREIGN: TreePath = { kind: 'foreign' };

/**
 * What stands at a path, or would.
 *
 * @param path `/discovery`, or below
 */
export function parsePath(path: string): TreePath {
  if (path === DISCOVERY_PATH) return FOLDER;
  const [, , branch, first, second, third, ...rest] = path.split('/');
  if (rest.length > 0) return FOREIGN;
  switch (`${DISCOVERY_PATH}/${branch}`) {
    case STAMPS_PATH:
      return third === undefined ? INTERNAL : FOREIGN;
    case NODES_PATH:
      return third === undefined ? nodePlace(first, second) : FOREIGN;
    case SERVICES_PATH:
      if (third !== undefined) return FOREIGN;
      return first !== undefined && second !== undefined ? { kind: 'service', service: first, ref: second } : FOLDER;
    case ENDPOINTS_PATH:
      if (first === undefined || second === undefined || third === undefined) return FOLDER;
      return { kind: 'endpoint', endpoint: first, key: second, ref: third };
    default:
      return FOREIGN;
  }
}

function nodePlace(groupName: string | undefined, indexName: string | undefined): TreePath {
  if (groupName === undefined) return FOLDER;
  const group = parseHexPair(groupName);
  if (group === undefined) return FOREIGN;
  if (indexName === undefined) return FOLDER;
  const index = parseHexPair(indexName);
  if (index === undefined) return FOREIGN;
  const clusterNodeId = group * 256 + index;
  // The reserved ones are not leased: their holders were given them by hand, and are unknown to nodelease.
  return clusterNodeId < CLUSTER_NODE_ID_OFFSET ? FOREIGN : { kind: 'node', nodeId: nodeIdOf(clusterNodeId), clusterNodeId };
}

/** The node id that a reference of a service or an endpoint ends in: `7`, `orders:7`; undefined where it names none. */
export function nodeIdOfRef(ref: string): number | undefined {
  const digits = ref.slice(ref.lastIndexOf(':') + 1);
  return /^\d{1,5}$/.test(digits) ? Number(digits) : undefined;
}

/**
 * Parses the path of a request: within the chroot, with or without the `/discovery` that all of them begin with.
 *
 * @throws {ConfigError} when it is not a path there
 */
export function parseDiscoveryPath(text: string): string {
  const path = text.startsWith('/') ? text : `${DISCOVERY_PATH}/${text}`;
  const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  if (text === '' || pathProblem(trimmed) !== undefined || `/${trimmed.split('/')[1]}` !== DISCOVERY_PATH) {
    throw new ConfigError('path', text, `${DISCOVERY_PATH} or a path below it, such as ${NODES_PATH}`);
  }
  return trimmed;
}
