import { checkArguments, listOf, TEXT } from '../../core/base/arguments.js';
import { concurrently, REQUESTS_AT_ONCE } from '../../core/base/concurrently.js';
import type { Znode, ZnodeReader } from '../client/zookeeper.js';
import { inOrder } from './contest.js';
import type { Contender, Standing } from './standing.js';

/** The contenders at one path, the first one first; the number of them that hold, if it is no semaphore. */
type ContenderQueue = Pick<Standing, 'kind'> & {
  readonly contenders: readonly Contender[];
  readonly holding: number;
};

/** What the recipes call their znodes. */
const KINDS = [
  ['lock', ['lock-']],
  ['election', ['latch-']],
  ['semaphore', ['lease-']],
  ['read-write lock', ['__READ__', '__WRIT__']],
] as const;
/** Items of queues end so, too: no locks are below them. */
const NUMBERED = /\d{10}$/;

/** The locks, elections and semaphores at these paths and below, as the part `locks` of a `ClusterFollower`. */
export function followedLocks(paths: readonly string[]) {
  checkArguments({ paths }, { paths: listOf(TEXT) });
  return (zookeeper: ZnodeReader, signal: AbortSignal): Promise<readonly Standing[]> =>
    standingsBelow(zookeeper, paths, signal);
}

/**
 * The locks, elections and semaphores at these paths and below them that a task holds or waits for, by their
 * paths. They are read znode by znode: what changes meanwhile may be incomplete. Changes nothing.
 *
 * @throws {ZooKeeperError} when there is no answer, or something may not be read
 */
export async function standingsBelow(
  zookeeper: ZnodeReader,
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<readonly Standing[]> {
  const queues = new Map<string, ContenderQueue>();
  const visit = async (path: string, own: AbortSignal) => {
    const names = (await zookeeper.children(path, { signal: own })) ?? [];
    const below = path === '/' ? path : `${path}/`;
    for (const [kind, marks] of KINDS) {
      const ours = names.filter((name) => NUMBERED.test(name) && marks.some((mark) => name.includes(mark)));
      const order = inOrder(path, ours, marks);
      const znodes = await concurrently(
        order,
        REQUESTS_AT_ONCE,
        (name, each) => zookeeper.read(below + name, { signal: each }),
        own,
      );
      if (order.length > 0) queues.set(path, queueOf(kind, order, znodes));
    }
    return names.filter((name) => !NUMBERED.test(name)).map((name) => below + name);
  };
  for (let level = [...paths]; level.length > 0; )
    level = (await concurrently(level, REQUESTS_AT_ONCE, visit, signal)).flat();
  return [...queues]
    .flatMap(([path, queue]) => standingsOf(path, queue, queues))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

function queueOf(
  kind: Standing['kind'],
  order: readonly string[],
  znodes: readonly (Znode | undefined)[],
): ContenderQueue {
  const present = order.filter((_, at) => znodes[at] !== undefined);
  const writer = present.findIndex((name) => !name.includes('__READ__'));
  const contenders = znodes
    .filter((znode) => znode !== undefined)
    .map(({ data, stat }) => ({
      data: data.toString('utf8'),
      sessionId: stat.owner ?? null,
      token: String(stat.createdZxid),
      since: stat.createdAt,
    }));
  return { kind, contenders, holding: writer < 0 ? present.length : Math.max(1, writer) };
}

/**
 * A semaphore's leases are next to the lock under which they are taken. Its head has one more than allowed,
 * the last one, until another one is given back.
 */
function standingsOf(
  path: string,
  { kind, contenders, holding }: ContenderQueue,
  queues: ReadonlyMap<string, ContenderQueue>,
): Standing[] {
  const [, semaphore, branch] = /^(.*)\/(locks|leases)$/.exec(path) ?? [];
  if (kind === 'lock' && branch === 'locks' && queues.get(`${semaphore}/leases`)?.kind === 'semaphore')
    return [];
  if (kind !== 'semaphore')
    return [{ path, kind, holders: contenders.slice(0, holding), waiting: contenders.slice(holding) }];
  const waiting = queues.get(`${semaphore}/locks`)?.contenders ?? [];
  const [head] = waiting;
  const last = contenders.at(-1);
  const isHeads = last && last.sessionId === head?.sessionId && BigInt(last.token) > BigInt(head.token);
  const holders = isHeads ? contenders.slice(0, -1) : contenders;
  return [{ path: semaphore || path, kind, holders, waiting }];
}
