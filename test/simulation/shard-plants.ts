import type { Edit, Plant } from './plants.js';

const member = 'src/node/shards/member.js';
const holdings = 'src/node/shards/holdings.js';
const programs = 'src/app/shards/program-shards.js';
const shardMap = 'src/node/shards/shard-map.js';
const repair = 'src/node/shards/repair-shards.js';
const clusterStore = 'src/core/lease/session/cluster-store.js';
const findMembers = 'src/node/shards/find-members.js';

function plant(name: string, breaks: string, ...edits: readonly Edit[]): Plant {
  return { name, breaks, edits, engine: 'shards' };
}

/** Every mistake in the ownership of shards that the simulator is known to find. */
export const SHARD_PLANTS: readonly Plant[] = [
  plant('blind-map', 'the map is written whatever it is by then (T1)', {
    file: member,
    from: 'session.write(SHARDS_KEY, content, object.etag, { signal })',
    to: 'session.write(SHARDS_KEY, content, (await session.read(SHARDS_KEY, { signal })).etag, { signal })',
  }),
  plant('map-goes-back', 'a tenure acts on an epoch below one that it has read (T2)', {
    file: member,
    from: 'usableMap(object, this.epoch, this.count)',
    to: 'usableMap(object, 1, this.count)',
  }),
  plant('token-kept', 'a shard keeps its token when it gets another owner (T3)', {
    file: 'src/node/shards/plan.js',
    from: 'shards[at] = { ...shard, owner: load.member, token: epoch, next: undefined };',
    to: 'shards[at] = { ...shard, owner: load.member, token: map.shards[at].token || epoch, next: undefined };',
  }),
  plant('owner-by-id', 'a tenure starts what an earlier one of its node id owns (T4)', {
    file: member,
    from: 'member.id === id && member.version === version',
    to: 'member.id === id',
  }),
  plant('token-started-again', 'a tenure starts a shard again that it has given up (T5)', {
    file: holdings,
    from: 'if (this.#all.has(shard) || this.#givenUp.get(shard) === token)',
    to: 'if (this.#all.has(shard))',
  }),
  plant(
    'handed-on-running',
    'a shard is handed on while its work still ends (T5)',
    {
      file: holdings,
      from: 'if (this.#all.has(shard))',
      to: "if (this.#all.has(shard) && this.#all.get(shard).state !== 'stopping')",
    },
    {
      file: holdings,
      from: 'if (this.#givenUp.get(shard) !== token)',
      to: 'if (!this.#all.has(shard) && this.#givenUp.get(shard) !== token)',
    },
  ),
  plant('handed-on-once', 'a hand-on that came to nothing is not sent again (T5, liveness)', {
    file: member,
    from: 'const due = this.#due(map);',
    to: `const due = this.#due(map);
        this.sent ??= new Map();
        due.given = new Set([...due.given].filter((shard) => this.sent.get(shard) !== map.shards[shard].token));
        for (const shard of due.given)
            this.sent.set(shard, map.shards[shard].token);`,
  }),
  plant('doubt-is-proof', 'a shard is taken from a tenure whose lease has not expired (T6)', {
    file: findMembers,
    from: "return availability(state, age, graceMs).kind === 'free';",
    to: 'return true;',
  }),
  plant('same-version-is-proof', 'a lease of the same version proves that the tenure is over (T6)', {
    file: findMembers,
    from: "lease.kind === 'held' && lease.version > version",
    to: "lease.kind === 'held' && lease.version >= version",
  }),
  plant('eviction-is-proof', 'an eviction counts at once, while the holder still trusts its lease (T6)', {
    file: findMembers,
    from: "lease.kind === 'held' && lease.version > version",
    to: "lease.kind !== 'held' || lease.version > version",
  }),
  plant('work-goes-on', 'work on shards is not ended at once when the lease is lost (T7)', {
    file: member,
    from: 'this.#holdings.abort(signal.reason)',
    to: 'this.#holdings.stop()',
  }),
  plant('takes-no-notice', 'a shard that a followed map takes away runs on (T8, T10)', {
    file: holdings,
    from: 'if (!isMine && !holding.isAborted)',
    to: 'if (false)',
  }),
  plant('repair-without-waiting', 'a repair opens the map while shards run by an earlier one (T10, 7)', {
    file: repair,
    from: '.filter((lease) => !hasStopped(lease, first, drawn.config))',
    to: '.filter(() => false)',
  }),
  plant('start-without-lease', 'a tenure whose lease is over starts what the map gives it (T4)', {
    file: holdings,
    from: 'if (this.isLeaving || !lease.isValid())',
    to: 'if (this.isLeaving)',
  }),
  plant('released-running', 'a release gives the lease back although a stop has rejected (T5, T7)', {
    file: 'src/core/lease/hold/keeper.js',
    from: 'if (!this.#workEnded)',
    to: 'if (false)',
  }),
  plant('shows-early', 'a lease shows the frozen epoch while work still ends (T10, 6)', {
    file: member,
    from: '(!map.frozen || this.#holdings.areIdle)',
    to: 'true',
  }),
  plant('mark-removed-early', 'a task that leaves removes its mark while work still ends (T10, 7)', {
    file: member,
    from: 'await this.#holdings.stop();',
    to: 'void home.mark({});\n        await this.#holdings.stop();',
  }),
  plant(
    'black-hole',
    'a node that cannot start shards gets them again, since it has the fewest (T9, liveness)',
    { file: 'src/node/shards/plan.js', from: 'if (load === giver)', to: 'if (false)' },
    { file: 'src/node/shards/start-limit.js', from: 'this.#limit = running;', to: '' },
  ),
  plant('hang-given-up', 'a start that hangs is given up although its work may begin (T5, T9)', {
    file: 'src/node/shards/holding.js',
    from: '.then(() => this.#begun)',
    to: '.then(() => this.#abort.signal.aborted ? undefined : this.#begun)',
  }),
  plant('no-look', 'no member looks whether others have gone (T9, liveness)', {
    file: member,
    from: 'random.next() < 2 / this.#map.members.length',
    to: 'false',
  }),
  plant('old-map-followed', 'a map that came back is followed (T11)', {
    file: member,
    from: 'this.#readMap(object, await this.#isSameStore())',
    to: 'this.#readMap(object, true)',
  }),
  plant('series-kept', 'a new epoch draws no series (T11)', {
    file: clusterStore,
    from: 'floor: nextFloor(cluster.config, session), created: true',
    to: '',
  }),
  plant('lost-map-begins', 'a task begins where a map may be lost (T11)', {
    file: shardMap,
    from: 'if (epoch?.mark !== undefined)',
    to: 'if (false)',
  }),
  plant(
    'repair-unsettled',
    'a repair trusts leases that came back (T11)',
    {
      file: repair,
      from: "if (epoch.kind !== 'settled')",
      to: "if (epoch.kind === 'recorded')",
    },
    {
      file: repair,
      from: "if (epoch.kind === 'settling')",
      to: 'if (false)',
    },
  ),
  plant('lost-epoch-kept', 'maps below a lost epoch are refused (T11, liveness)', {
    file: member,
    from: 'epoch: floorOf(config) };',
    to: 'epoch: Math.max(this.epoch, floorOf(config)) };',
  }),
  plant('hands-on-at-signal', 'a sidecar that is asked to end takes the work of its program for ended (T5)', {
    file: programs,
    from: 'if (!hasAsked || this.#allHaveEnded)',
    to: 'if (true)',
  }),
];
