import type { Edit, Plant } from '../plants.js';

const contest = 'src/zookeeper/recipes/contest.js';
const ownZnode = 'src/zookeeper/recipes/own-znode.js';
const lockHandle = 'src/zookeeper/recipes/lock-handle.js';
const sessionDeadline = 'src/zookeeper/client/session-deadline.js';
const retry = 'src/zookeeper/client/retry.js';
const doubleBarrier = 'src/zookeeper/recipes/double-barrier.js';
const counter = 'src/zookeeper/recipes/counter.js';
const contribution = 'src/zookeeper/shared-data/contribution.js';
const queue = 'src/zookeeper/recipes/queue/queue.js';

function plant(name: string, breaks: string, ...edits: readonly Edit[]): Plant {
  return { name, breaks, edits, engine: 'recipes' };
}

/** Every mistake in the recipes that the simulator is known to find, by the name that `--plant` takes. */
export const RECIPE_PLANTS: readonly Plant[] = [
  plant(
    'watch-all-children',
    'a contender watches all children instead of the one before it, so that each release wakes all',
    {
      file: contest,
      from: 'return before === undefined ? undefined : { gone: before };',
      to: "return before === undefined ? undefined : 'children';",
    },
  ),
  plant(
    'delete-once',
    'a znode that is given up is deleted once, also where the connection breaks meanwhile',
    {
      file: retry,
      from: 'await retrying({ clock, random, mayPass })(',
      to: 'await retrying({ clock, random, mayPass: () => false })(',
    },
  ),
  plant(
    'orphan-after-lost-reply',
    'a creation whose reply was lost is repeated without a look for what it made',
    {
      file: ownZnode,
      from: 'const made = mayStand ? await findOwn(session, protectedTo, call.signal) : undefined;',
      to: 'const made = undefined;',
    },
  ),
  plant('not-discarded', 'a contender that gives up leaves its znode behind', {
    file: contest,
    from: 'void (own === undefined ? discard(recipe, session, protectedTo) : erase(recipe, session, own.path));',
    to: '',
  }),
  plant('stale-ready', 'a member of a double barrier goes in by a ready that an earlier round has left', {
    file: doubleBarrier,
    from: 'stat !== undefined && stat.modifiedZxid > znode.stat.createdZxid;',
    to: 'stat !== undefined;',
  }),
  plant(
    'timer-validity-of-locks',
    'isValid() of a lock trusts that a timer has said so in time, instead of comparing clocks',
    {
      file: 'src/core/lease/hold/holder.js',
      from: 'return this.isHeld && this.holding.clock.monotonic() < this.deadline;',
      to: 'return this.isHeld;',
    },
  ),
  plant('relay-forgotten', 'a deadline that takes what a server has answered for what the leader has heard', {
    file: sessionDeadline,
    from: 'this.heardBy(sentAt - timeoutMs * RELAY_SHARE)',
    to: 'sentAt',
  }),
  plant(
    'validity-from-reply',
    'a lock is taken to be valid for a time-out of its session from the reply to its heartbeat on',
    {
      file: lockHandle,
      from: 'deadline.answered(sentAt);',
      to: 'deadline.answered(this.recipe.clock.monotonic());',
    },
    {
      file: sessionDeadline,
      from: 'Math.min(this.sentAt + this.timeoutMs * MAX_SHARE, this.#heardAt + this.timeoutMs * (1 - RESERVE_SHARE))',
      to: 'this.sentAt + this.timeoutMs',
    },
  ),
  plant('heartbeat-by-read', 'a heartbeat is a read, which a server answers that has lost its leader', {
    file: lockHandle,
    from: "await session.multi([{ type: 'check', path }], { ...this.call(), reconnectOnTimeout: true });",
    to: "if (!(await session.read(path, { ...this.call(), reconnectOnTimeout: true }))) this.loseTo('');",
  }),
  plant(
    'deleted-on-loss',
    'the znode of a lost lock is deleted at once, while the work may go on until the deadline',
    {
      file: lockHandle,
      from: 'await sleepUntil(this.recipe.clock, deadline);',
      to: '',
    },
  ),
  plant('reader-ignores-writers', 'a reader does not wait for the writers before it', {
    file: 'src/zookeeper/recipes/read-write-lock.js',
    from: 'return before === undefined ? undefined : { gone: before };',
    to: 'return undefined;',
  }),
  plant('downgrade-behind-writers', 'a writer that lets readers in stands behind the writers that wait', {
    file: 'src/zookeeper/recipes/read-write-lock.js',
    from: 'protectedPath(recipe, READ) + number',
    to: "protectedPath(recipe, READ) + '9' + number.slice(1)",
  }),
  plant('one-lease-too-many', 'a semaphore gives out one lease more than it has', {
    file: 'src/zookeeper/recipes/semaphore.js',
    from: 'length < leases ?',
    to: 'length < leases + 1 ?',
  }),
  plant('session-blind', 'what was meant for one session is done in the next', {
    file: 'src/zookeeper/client/bound-session.js',
    from: 'return { ...call, sessionId: this.sessionId };',
    to: 'return { ...call };',
  }),
  plant('open-gate', 'a task at a barrier goes by the first answer, whatever it says', {
    file: 'src/zookeeper/recipes/barrier.js',
    from: '(znode) => znode === undefined',
    to: '() => true',
  }),
  plant('unheard-addition', 'an addition whose reply was lost is made again', {
    file: counter,
    from: 'if (!mayBeDone || (',
    to: 'if (true || (',
  }),
  plant('one-vote-for-all', 'one vote is counted for all sites', {
    file: 'src/zookeeper/recipes/transaction.js',
    from: 'sites.map((site) =>',
    to: 'sites.map((_, __, [site]) =>',
  }),
  plant('item-taken-twice', 'a taker goes by what it read, no matter which taker has removed the item', {
    file: queue,
    from: 'if (!value)\n        return [];',
    to: '',
  }),
  plant('broken-chain', 'a removal leaves a gap in its collision chain, which hides what stands behind it', {
    file: 'src/zookeeper/shared-data/collision-chain.js',
    from: 'found === last ? [cut, removal] : [cut, move, removal]',
    to: "[cut, { type: 'remove', path: found.path }]",
  }),
  plant('entry-of-another', 'a node contributes an ephemeral entry that another node contributes already', {
    file: contribution,
    from: 'first !== undefined && first.owner !== sessionId;',
    to: 'false;',
  }),
  plant('condition-unread', 'a conditional write of shared data is made whatever version stands there', {
    file: 'src/zookeeper/shared-data/collision-chain.js',
    from: '|| version === condition)',
    to: "|| version !== 'absent')",
  }),
  plant(
    'version-without-creation',
    'an entry that was made again counts as the earlier one, so that a replica keeps that after a lost connection',
    {
      file: 'src/zookeeper/shared-data/entry.js',
      from: '{createdZxid}.',
      to: "{''}.",
    },
  ),
];
