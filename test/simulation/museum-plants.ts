import { CARRIES, DEADLINE, type Edit, type Plant, wallClockExpiry } from './plants.js';

const claim = 'src/core/lease/acquire/claim.js';
const holder = 'src/core/lease/hold/holder.js';
const keeper = 'src/core/lease/hold/keeper.js';
const tenureTime = 'src/core/lease/hold/store-tenure-time.js';
const supervisor = 'src/app/supervisor/supervisor.js';
const plan = 'src/node/shards/plan.js';

function plant(name: string, breaks: string, ...edits: readonly Edit[]): Plant {
  return { name, breaks, edits };
}

/** Mistakes of other projects that are none of the engine's own planted bugs. */
export const MUSEUM_PLANTS: readonly Plant[] = [
  plant(
    'ends-when-refused',
    'a contender uses its own wall clock, and a holder believes until a renewal is refused',
    ...wallClockExpiry('config.graceMs'),
    { file: keeper, from: DEADLINE, to: 'return this.#sentAt + 600_000;' },
    { file: keeper, from: CARRIES, to: 'durationMs' },
  ),
  plant(
    'bounded-skew',
    'a contender uses its own wall clock, less a bound of a minute for its error',
    ...wallClockExpiry('60_000'),
  ),
  plant('stale-to-itself', 'a holder gives up a lease that is old by its own wall clock', {
    file: keeper,
    from: 'async attempt(begun) {',
    to: `async attempt(begun) {
        const { clock } = this.options;
        const wroteAt = this.wroteAt;
        this.wroteAt = clock.now();
        if (this.wroteAt - wroteAt > this.#held.durationMs)
            return this.loseTo('it is stale');`,
  }),
  plant('twice-the-duration', 'a holder believes in its lease for two durations', {
    file: keeper,
    from: DEADLINE,
    to: 'return this.#sentAt + 2 * this.#held.durationMs;',
  }),
  plant(
    'granted-before-retry',
    'after a lost race for an id without a holder, the task has it before it has written again',
    {
      file: claim,
      from: 'if (applied === undefined || clock.monotonic() >= stopAt)\n            return undefined;',
      to: `if (applied === undefined) {
            const seen = await session.read(leaseKey(id)).catch(() => undefined);
            const state = seen && nativeCodec.decode(seen.body, seen.metadata);
            if (state?.kind !== 'released' || state.durationMs > 0)
                return undefined;
            const again = acquired(state, { ...held, storeNow: session.storeNow().min, stampedUntil });
            void session.write(leaseKey(id), nativeCodec.encode(again), seen.etag).catch(() => undefined);
            return { id, held: again, etag: seen.etag, sentAt: clock.monotonic(), graceMs, stampedUntil };
        }
        if (clock.monotonic() >= stopAt)
            return undefined;`,
    },
  ),
  plant(
    'late-grant',
    'an acquiring write that is answered late counts, from its answer on',
    {
      file: claim,
      from: 'if (applied === undefined || clock.monotonic() >= stopAt)',
      to: 'if (applied === undefined)',
    },
    {
      file: claim,
      from: 'return { id, held, etag: applied, sentAt, graceMs, stampedUntil, previous: former };',
      to: 'return { id, held, etag: applied, sentAt: clock.monotonic(), graceMs, stampedUntil, previous: former };',
    },
  ),
  plant('any-answer-renews', 'a renewal counts whatever the store answers, unless it is a conflict', {
    file: keeper,
    from: "if (!(error instanceof StoreError && error.outcome === 'not-applied'))\n                this.#uncertain = true;\n            throw error;",
    to: "this.#adopt(next, this.#etag);\n            return 'written';",
  }),
  plant(
    'unlocks-in-any-case',
    'a release ends the lease of the task that holds the id by then',
    {
      file: holder,
      from: 'if (mine)\n            await this.#giveBack();',
      to: 'await this.#giveBack();',
    },
    { file: keeper, from: 'if (this.#uncertain) {\n            const', to: 'if (true) {\n            const' },
    {
      file: keeper,
      from: "if (state.kind !== 'held' || state.nonce !== this.#held.nonce)",
      to: "if (state.kind !== 'held')",
    },
    { file: keeper, from: 'if (state.renewal > last.renewal)', to: '' },
  ),
  plant('first-claim-overwrites', 'the first claim of an id has no condition', {
    file: claim,
    from: 'await this.options.session.write(key, object, etag, { expiresAfterMs });',
    to: 'await this.options.session.write(key, object, etag ?? (await this.options.session.read(key))?.etag, { expiresAfterMs });',
  }),
  plant(
    'time-is-proof',
    'a task knows its own lease by the millisecond in which it was acquired',
    {
      file: claim,
      from: "state?.kind === 'held' && state.nonce === held.nonce ?",
      to: "state?.kind === 'held' && state.acquiredAt === held.acquiredAt ?",
    },
    {
      file: keeper,
      from: "if (state.kind === 'held' && state.nonce === this.#held.nonce && state.version === this.version) {",
      to: "if (state.kind === 'held' && state.acquiredAt === this.#held.acquiredAt) {",
    },
  ),
  { ...plant('usual-protocol', 'wall clocks, and a release that forgets the version'), engine: 'plain' },
  plant(
    'ninety-seconds',
    'a command without a guard is ended 90 s after its lease was lost',
    {
      file: supervisor,
      from: 'lost.then((reason) => () => afterTheLease(reason, child, options)),',
      to: 'lost.then((reason) => options.clock.sleep(90_000).then(() => () => afterTheLease(reason, child, options))),',
    },
    {
      file: 'test/simulation/world/simulated-child.js',
      from: 'extend(deadline) {',
      to: 'extend(deadline) {\n        return;',
    },
  ),
  {
    ...plant(
      'steals-shards',
      'a shard that is to move is given to its next owner at once',
      { file: plan, from: 'balance(shards, loads, loadOf);', to: 'balance(shards, loads, loadOf, epoch);' },
      {
        file: plan,
        from: 'function balance(shards, loads, loadOf) {',
        to: 'function balance(shards, loads, loadOf, epoch) {',
      },
      {
        file: plan,
        from: 'shards[at] = { ...shard, next: to.member === shard.owner ? undefined : to.member };',
        to: 'shards[at] = { ...shard, owner: to.member, token: epoch, next: undefined };',
      },
    ),
    engine: 'shards',
  },
  plant(
    'ids-without-lease',
    'the generator of unique ids does not ask whether the lease is held',
    { file: tenureTime, from: 'this.options.check();', to: '' },
    { file: tenureTime, from: 'return this.options.before();', to: 'return Number.POSITIVE_INFINITY;' },
  ),
];
