import type { Edit, Plant } from './plants.js';

const plan = 'src/node/shards/plan.js';
const findMembers = 'src/node/shards/find-members.js';
const holdings = 'src/node/shards/holdings.js';
const member = 'src/node/shards/member.js';
const ownShards = 'src/node/shards/own-shards.js';
const repair = 'src/node/shards/repair-shards.js';
const shardMap = 'src/node/shards/shard-map.js';

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
  plant('map-before-mark', 'a tenure reads the map before its lease has the mark (T10, 5)', {
    file: ownShards,
    from: 'await orAborted(home.mark({ shards: { epoch: 0 }, address }), signal);',
    to: 'void home.mark({ shards: { epoch: 0 }, address });',
  }),
  plant('waits-before-freezing', 'a repair reads leases before its frozen map is there (T10, 7)', {
    file: repair,
    from: 'const frozen = await freeze();',
    to: `const early = await readLeases(session, waiting);
    waiting = early.filter((lease) => !hasStopped(lease, first, drawn.config)).map(({ id }) => id);
    const frozen = await freeze();`,
  }),
  plant(
    'repair-continued',
    'a repair continues from a frozen map that it finds (T10, 9)',
    {
      file: repair,
      from: 'const drawn = await changeCluster(',
      to: `const found = usableMap(await session.read(SHARDS_KEY), floorOf(cluster.config) + 1, count);
    const drawn = found.frozen ? cluster : await changeCluster(`,
    },
    {
      file: repair,
      from: 'throw superseded();\n        const result',
      to: 'return object.etag;\n        const result',
    },
  ),
  plant('gives-before-created', 'a task gives shards before it has read `created` (T10, 3)', {
    file: shardMap,
    from: "throw new Overtaken('another task makes the map');\n    }\n    return again();",
    to: "throw new Overtaken('another task makes the map');\n        return config;\n    }\n    return again();",
  }),
];
