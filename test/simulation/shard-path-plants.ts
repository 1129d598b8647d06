import type { Edit, Plant } from './plants.js';

const plan = 'src/node/shards/plan.js';
const findMembers = 'src/node/shards/find-members.js';
const holdings = 'src/node/shards/holdings.js';
const member = 'src/node/shards/member.js';

function plant(name: string, breaks: string, ...edits: readonly Edit[]): Plant {
  return { name, breaks, edits, engine: 'shards' };
}

/** Changes of the ownership of shards that keep every promise, and are not the protocol: only the model finds them. */
export const SHARD_PATH_PLANTS: readonly Plant[] = [
  plant(
    'token-of-epoch-before',
    'a new owner has the epoch before the write as its token (T3)',
    {
      file: plan,
      from: '{ ...known, owner: next, token: epoch, next: undefined }',
      to: '{ ...known, owner: next, token: map.epoch, next: undefined }',
    },
    {
      file: plan,
      from: 'shards[at] = { ...shard, owner: load.member, token: epoch, next: undefined };',
      to: 'shards[at] = { ...shard, owner: load.member, token: map.epoch, next: undefined };',
    },
  ),
  plant(
    'token-of-followed-epoch',
    'a shard starts with the followed epoch as its token (T4)',
    {
      file: holdings,
      from: 'const owned = ownedBy(map, me);',
      to: 'this.epoch = map.epoch;\n        const owned = ownedBy(map, me);',
    },
    {
      file: holdings,
      from: 'new Holding(shard, token, this.options, onFailed, onEnded)',
      to: `new Holding(shard, token, {
            ...this.options,
            start: (it, work) => this.options.start(it, { ...work, token: this.epoch }),
        }, onFailed, onEnded)`,
    },
  ),
  plant(
    'left-is-over',
    'a task that leaves hands nothing on: its lease without a mark is the proof (T6)',
    {
      file: findMembers,
      from: "if (lease.kind === 'held' && lease.version > version)",
      to: "if (lease.kind === 'held' && (lease.version > version || lease.shards === undefined))",
    },
    {
      file: member,
      from: 'if (haveEnded && own === undefined)\n            return this.#handedOn();',
      to: 'if (haveEnded)\n            return own === undefined ? this.#handedOn() : undefined;',
    },
    { file: member, from: 'if (haveEnded || due.isNow)', to: 'if (due.isNow && !haveEnded)' },
    { file: member, from: 'const LEAVE_TIMEOUT_MS = 2_000;', to: 'const LEAVE_TIMEOUT_MS = 8_000;' },
  ),
];
