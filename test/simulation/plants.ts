/** A change of one compiled file: `from` stands in it exactly once. */
export interface Edit {
  /** Below the compiled tree: `src/core/lease/hold/keeper.js`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/**
 * A mistake, as somebody might make it, planted into a copy of what is compiled. The simulator has to find
 * it.
 */
export interface Plant {
  readonly name: string;
  /** What is wrong, and which rule it breaks. */
  readonly breaks: string;
  /** What it is planted in. @default the lease engine */
  readonly engine?: string;
  readonly edits: readonly Edit[];
}

const claim = 'src/core/lease/acquire/claim.js';
const keeper = 'src/core/lease/hold/keeper.js';
const acquirer = 'src/core/lease/acquire/acquirer.js';
const leaseState = 'src/core/lease/model/lease-state.js';
const candidates = 'src/core/lease/acquire/candidates.js';
const partialListing = 'src/core/lease/acquire/partial-listing.js';
const retirement = 'src/core/lease/operate/retirement.js';
const tenureTime = 'src/core/lease/hold/store-tenure-time.js';
const settledEpoch = 'src/core/lease/acquire/settled-epoch.js';

/** Lines of the keeper, and what a renewal carries. */
export const DEADLINE = 'return this.#sentAt + this.#held.durationMs;';
export const CARRIES = 'Math.max(durationMs, Math.ceil(this.deadline - sentAt))';

/**
 * The other reading of durations that change: a renewal carries the settings' duration, and a holder believes
 * until the smallest deadline of its known write and of those that it has sent since. It takes promises back;
 * and with these mistakes two tasks hold an id.
 */
const smallestOfSent = (sent: string, more: readonly Edit[] = []): readonly Edit[] => [
  { file: keeper, from: CARRIES, to: 'durationMs' },
  {
    file: keeper,
    from: DEADLINE,
    to: `return Math.min(this.#sentAt + this.#held.durationMs, ...this.bounds?.values() ?? []);`,
  },
  {
    file: keeper,
    from: 'this.#sent.set(next.renewal, sentAt);',
    to: `this.#sent.set(next.renewal, sentAt);\n        this.bounds = new Map([${sent}[next.renewal, sentAt + next.durationMs]]);`,
  },
  {
    file: keeper,
    from: 'this.#sentAt = sentAt;\n        this.#limitRequests();',
    to: `this.#sentAt = sentAt;
        this.#limitRequests();
        for (const renewal of this.bounds?.keys() ?? [])
            if (renewal <= held.renewal)
                this.bounds.delete(renewal);`,
  },
  ...more,
];
const ALL_SENT = '...(this.bounds ?? []), ';

/**
 * A contender compares its own wall clock with the holder's timestamp.
 *
 * @param graceMs how much longer it waits: an expression
 */
export const wallClockExpiry = (graceMs: string): readonly Edit[] => [
  { file: claim, from: 'storeNow: session.storeNow().min', to: 'storeNow: clock.now()' },
  { file: keeper, from: 'storeNow: session.storeNow().min', to: 'storeNow: clock.now()' },
  {
    file: acquirer,
    from: 'const chance = availability(state, object.age, config.graceMs);',
    to: `const overdueMs = state.kind === 'held' ? clock.now() - state.timestamp - ${graceMs} : 0;
        const chance = state.kind !== 'held' ? availability(state, object.age, config.graceMs)
            : overdueMs > 0 ? { kind: 'free', from: 'expired' } : { kind: 'held', waitMs: 1 - overdueMs };`,
  },
  // Ages say nothing any more: every object has to be read.
  {
    file: candidates,
    from: 'if (row.size > nativeCodec.tombstoneMaxBytes && !mayExceed(row.age, needMs))',
    to: 'if (false)',
  },
];

/** Every mistake that the simulator is known to find, by the name that `--plant` takes. */
export const PLANTS: readonly Plant[] = [
  {
    name: 'aba',
    breaks: 'a release writes an empty body, whose etag comes back with every release (rule 2)',
    edits: [
      {
        file: 'src/core/lease/model/lease-codec.js',
        from: 'return { body: JSON.stringify(body), metadata: facts(state) };',
        to: "return { body: durationMs > 0 || 'retired' in kind ? JSON.stringify(body) : '', metadata: facts(state) };",
      },
    ],
  },
  {
    name: 'deadline-from-response',
    breaks: 'the deadline counts from the reply instead of the moment before the request (rule 3)',
    edits: [
      {
        file: claim,
        from: 'return { id, held, etag: applied, sentAt, graceMs, stampedUntil, previous: former };',
        to: 'return { id, held, etag: applied, sentAt: clock.monotonic(), graceMs, stampedUntil, previous: former };',
      },
      {
        file: keeper,
        from: "if (result.status === 'written')\n                this.#adopt(",
        to: "this.#sent.set(next.renewal, clock.monotonic());\n            if (result.status === 'written')\n                this.#adopt(",
      },
    ],
  },
  {
    name: 'wall-clock-expiry',
    breaks: "a contender compares its own wall clock with the holder's timestamp (rule 4)",
    edits: wallClockExpiry('config.graceMs'),
  },
  {
    name: 'no-read-back',
    breaks: 'a write of unknown outcome is taken as not written (rule 5)',
    edits: [
      {
        file: claim,
        from: "const applied = error.outcome === 'unknown' ? await this.#readBack(key, held, stopAt) : undefined;",
        to: 'const applied = undefined;',
      },
      {
        file: keeper,
        from: "if (!(error instanceof StoreError && error.outcome === 'not-applied'))\n                this.#uncertain = true;",
        to: '',
      },
      {
        file: keeper,
        from: "if (result === 'written' || !this.isHeld)\n            return;",
        to: "if (result === 'written' || !this.isHeld)\n            return;\n        return this.loseTo('its renewal was refused');",
      },
    ],
  },
  {
    name: 'sdk-retry',
    breaks:
      'the client repeats a conditional write whose reply was lost, and so takes its own write for a conflict (rule 5)',
    edits: ["operation: 'create', key, body", "operation: 'replace', key, body, etag"].map((request) => {
      const send = `this.#send({ ${request}, signal, apply })`;
      return {
        file: 'test/simulation/world/simulated-store.js',
        from: `return ${send};`,
        to: `const attempt = () => ${send};\n        return attempt().catch(attempt).catch(attempt);`,
      };
    }),
  },
  {
    name: 'delete-on-release',
    breaks: 'a release deletes the lease object, and its version with it (rule 2)',
    edits: [
      {
        file: keeper,
        from: 'const result = await session.write(key, nativeCodec.encode(released(last, this.#time.stampedUntil, session.storeNow().min)), this.#etag);',
        to: "await session.store.discardProbe(key);\n                const result = { status: 'written' };",
      },
    ],
  },
  {
    name: 'no-grace',
    breaks:
      "a contender waits for the duration alone: the store's servers may disagree, and clocks drift (rule 4)",
    edits: [
      {
        file: leaseState,
        from: 'return durationMs + Math.max(graceMs, leastGraceMs(durationMs));',
        to: 'return durationMs + 0 * graceMs;',
      },
    ],
  },
  {
    name: 'timer-validity',
    breaks: 'isValid() trusts that a timer has said so in time, instead of comparing clocks (rule 3)',
    edits: [
      {
        file: 'src/core/lease/hold/holder.js',
        from: 'return this.isHeld && this.holding.clock.monotonic() < this.deadline;',
        to: 'return this.isHeld;',
      },
    ],
  },
  {
    name: 'optimistic-age',
    breaks: "a contender goes by the upper bound of a lease's age (rule 4)",
    edits: [{ file: leaseState, from: 'return age.min > limitMs\n', to: 'return age.max > limitMs\n' }],
  },
  {
    name: 'own-settings',
    breaks:
      'a contender goes by its own duration and grace, not by those of the lease and the cluster (rule 4)',
    edits: [
      {
        file: acquirer,
        from: 'const chance = availability(state, object.age, config.graceMs);',
        to: "const own = this.options.wanted;\n        const chance = availability(state.kind === 'held' ? { ...state, durationMs: own.durationMs } : state, object.age, own.graceMs);",
      },
      {
        file: 'src/core/lease/acquire/acquire-lease.js',
        from: 'new Acquirer(context)',
        to: 'new Acquirer({ ...context, wanted: options })',
      },
      {
        file: candidates,
        from: 'if (row.size > nativeCodec.tombstoneMaxBytes && !mayExceed(row.age, needMs))',
        to: 'if (false)',
      },
    ],
  },
  {
    name: 'newest-write',
    breaks:
      'after a read-back the deadline counts from the newest write that was sent, not from the one that stands there (rule 3)',
    edits: [
      {
        file: keeper,
        from: 'const sentAt = this.#sent.get(held.renewal);',
        to: 'const sentAt = Math.max(...this.#sent.values());',
      },
    ],
  },
  {
    name: 'evict-at-once',
    breaks:
      'an id that was released by force may be taken at once, while its holder still trusts its lease (rules 1 and 9)',
    edits: [
      {
        file: leaseState,
        from: 'const durationMs = expired ? 0 : held.durationMs;',
        to: 'const durationMs = 0;',
      },
    ],
  },
  {
    name: 'late-deadline',
    breaks: 'the deadline is 60 ms late (rule 3)',
    edits: [
      {
        file: keeper,
        from: DEADLINE,
        to: 'return this.#sentAt + this.#held.durationMs + 60;',
      },
    ],
  },
  {
    name: 'revived',
    breaks: 'a renewal that is answered after the deadline brings the tenure back (rule 3)',
    edits: [
      {
        file: keeper,
        from: 'this.check();\n        this.#etag = etag;',
        to: 'this.#etag = etag;',
      },
    ],
  },
  {
    name: 'adopts-refused',
    breaks: 'a renewal that was certainly not applied prolongs the lease (rule 3)',
    edits: [
      {
        file: keeper,
        from: "if (!(error instanceof StoreError && error.outcome === 'not-applied'))\n                this.#uncertain = true;",
        to: "if (!(error instanceof StoreError && error.outcome === 'not-applied'))\n                this.#uncertain = true;\n            else\n                this.#adopt(next, this.#etag);",
      },
    ],
  },
  {
    name: 'deaf-supervisor',
    breaks:
      'the supervisor does not act on the loss of the lease, and leaves the command to its guard (rule 7)',
    edits: [
      {
        file: 'src/app/supervisor/supervisor.js',
        from: 'lost.then((reason) => () => afterTheLease(reason, child, options)),',
        to: '',
      },
    ],
  },
  {
    name: 'evict-no-bump',
    breaks: 'a forced release keeps the version (rule 9)',
    edits: [
      {
        file: leaseState,
        from: 'version: held.version + 1,\n        timestamp: held.timestamp,\n        durationMs,',
        to: 'version: held.version,\n        timestamp: held.timestamp,\n        durationMs,',
      },
    ],
  },
  {
    name: 'never-expires',
    breaks: 'an expired lease is not taken, so that the id of a killed task is lost for good (liveness)',
    edits: [
      { file: leaseState, from: 'return age.min > limitMs\n', to: 'return age.min > Number.MAX_VALUE\n' },
    ],
  },
  {
    name: 'task-id-only',
    breaks: 'a task knows its own write by task id and version alone, which another run may share (rule 5)',
    engine: 'sticky',
    edits: [
      {
        file: claim,
        from: "state?.kind === 'held' && state.nonce === held.nonce ?",
        to: "state?.kind === 'held' && state.taskId === held.taskId && state.version === held.version ?",
      },
      {
        file: keeper,
        from: "if (state.kind === 'held' && state.nonce === this.#held.nonce && state.version === this.version) {",
        to: "if (state.kind === 'held' && state.taskId === this.taskId && state.version === this.version) {",
      },
    ],
  },
  {
    name: 'wall-clock-ids',
    breaks: "unique ids are stamped with the host's wall clock, and with nothing else in view",
    edits: [
      {
        file: tenureTime,
        from: 'return this.options.session.storeNow().min;',
        to: 'return this.clock.now();',
      },
      { file: tenureTime, from: 'this.after = options.stampedUntil;', to: 'this.after = 0;' },
      { file: tenureTime, from: 'return this.options.before();', to: 'return Number.POSITIVE_INFINITY;' },
    ],
  },
  {
    name: 'stamps-past-timestamp',
    breaks:
      'in a burst, unique ids are stamped past the timestamp of the lease, where those of the next tenure begin',
    edits: [
      { file: tenureTime, from: 'return this.options.before();', to: 'return Number.POSITIVE_INFINITY;' },
    ],
  },
  {
    name: 'stamps-before-tenure',
    breaks: "unique ids are stamped with times that were the previous tenure's",
    edits: [{ file: tenureTime, from: 'this.after = options.stampedUntil;', to: 'this.after = 0;' }],
  },
  {
    name: 'forgets-stamps',
    breaks: 'a release does not say how far ahead unique ids were stamped',
    edits: [
      {
        file: keeper,
        from: 'released(last, this.#time.stampedUntil, ',
        to: 'released(last, this.#time.after, ',
      },
    ],
  },
  {
    name: 'ignores-widening',
    breaks: 'the generator goes on with narrow unique ids although its lease announces wider ones',
    edits: [
      {
        file: 'src/core/id/lease-ids.js',
        from: '? generator.adopt(cluster16(idWidth))',
        to: '? undefined',
      },
    ],
  },
  {
    name: 'publishes-before-adopting',
    breaks: 'a lease announces a width while narrower ids are still made',
    edits: [
      {
        file: tenureTime,
        from: 'return this.#width.onWidth(listener);',
        to: 'return this.#width.onWidth((idWidth) => void this.clock.sleep(5_000).then(() => listener(idWidth)));',
      },
    ],
  },
  {
    name: 'stale-width',
    breaks: 'a tenure trusts the width that was read before it began, perhaps long before',
    edits: [
      {
        file: tenureTime,
        from: 'if (Number.isFinite(this.lookedAt))\n            return;',
        to: 'if (this.signal !== undefined)\n            return;',
      },
    ],
  },
  {
    name: 'scale-without-waiting',
    breaks: 'a cluster grows at once, as if no task made narrow unique ids',
    edits: [
      {
        file: 'src/core/lease/operate/growth.js',
        from: 'if (idWidthFor(config.peak) < idWidth) {',
        to: 'if (config.idWidth < idWidth) {',
      },
    ],
  },
  {
    name: 'no-id-floor',
    breaks: 'a new node id stamps unique ids with times at which narrow ones were made',
    edits: [
      {
        file: claim,
        from: 'Math.max(this.#lastIdTimestamp(previous, longestMs, mark), idFloor);',
        to: 'this.#lastIdTimestamp(previous, longestMs, mark);',
      },
    ],
  },
  {
    name: 'delete-on-scale-down',
    breaks:
      'a cluster that shrinks deletes the lease objects of the ids that it gives up, and their versions with them (rule 2)',
    edits: [
      {
        file: retirement,
        from: 'const result = await session.write(leaseKey(id), nativeCodec.encode(tombstone), object.etag, call);',
        to: "await this.steps.options.session.store.discardProbe(leaseKey(id));\n        const result = { status: 'written', etag: object.etag };",
      },
    ],
  },
  {
    name: 'retired-acquirable',
    breaks: 'a contender that has old settings takes an id although it is retired',
    edits: [
      {
        file: leaseState,
        from: "return { kind: 'retired' };",
        to: "return { kind: 'free', from: 'released' };",
      },
    ],
  },
  {
    name: 'retire-frees-at-once',
    breaks:
      'an id that was retired by force may be taken as soon as the cluster has grown, while its old holder still trusts its lease (rule 1)',
    edits: [{ file: retirement, from: 'evicted(state, expired, [', to: 'evicted(state, true, [' }],
  },
  {
    name: 'retires-one-too-many',
    breaks: 'a cluster that shrinks retires the last of the ids that stay as well',
    edits: [
      {
        file: retirement,
        from: 'const beyond = [...rows].filter(([id]) => id >= cluster.config.size);',
        to: 'const beyond = [...rows].filter(([id]) => id >= cluster.config.size - 1);',
      },
    ],
  },
  {
    name: 'impatient-retirement',
    breaks: 'ids are taken from their holders without giving these the time that they were to have',
    edits: [
      {
        file: retirement,
        from: 'const forcing = this.#waited.size > 0 && clock.monotonic() >= this.#until;',
        to: 'const forcing = true;',
      },
    ],
  },
  {
    name: 'untold-holder',
    breaks: 'a holder does not hear that its id is to be given up',
    edits: [{ file: keeper, from: 'if (this.id < size', to: 'if (this.id < 65_536' }],
  },
  {
    name: 'never-revived',
    breaks: 'ids that were given up stay retired when the cluster has them again (liveness)',
    edits: [
      {
        file: leaseState,
        from: 'state.generation >= generation)',
        to: 'state.generation !== -1)',
      },
    ],
  },
  {
    name: 'first-page-is-all',
    breaks:
      'a listing is taken for complete after its first page, so that what comes after it counts as deleted',
    edits: [
      {
        file: partialListing,
        from: 'this.#after = last;',
        to: 'this.complete = true;',
      },
    ],
  },
  {
    name: 'key-is-a-right',
    breaks: 'a task takes a held id whose holder has the same sticky key (rule 4)',
    engine: 'sticky',
    edits: [
      {
        file: acquirer,
        from: "if (chance.kind === 'free')",
        to: "if (chance.kind === 'free' || (state.sticky !== undefined && state.sticky === this.options.sticky))",
      },
      {
        file: candidates,
        from: 'if (row.size > nativeCodec.tombstoneMaxBytes && !mayExceed(row.age, needMs))',
        to: 'if (false)',
      },
    ],
  },
  {
    name: 'history-without-evictions',
    breaks: 'a forced release leaves the evicted tenure out of the history',
    edits: [
      {
        file: leaseState,
        from: 'history: expired ? historyOf(held) : withPast(held, ...ended)',
        to: 'history: expired ? historyOf(held) : held.history',
      },
    ],
  },
  {
    name: 'age-from-request',
    breaks:
      'an observed age counts from the request of the first reply that showed the state, before which it may not have been written (rule 4)',
    engine: 'observed',
    edits: [
      {
        file: 'src/core/store/observed-age.js',
        from: 'this.#seen.set(key, { etag, since: arrivedAt });',
        to: 'this.#seen.set(key, { etag, since: sentAt });',
      },
    ],
  },
  {
    name: 'age-from-reply',
    breaks:
      'an observed age counts to the reply, and not to its request, after which the state may have been replaced (rule 4)',
    engine: 'observed',
    edits: [
      {
        file: 'src/core/store/observed-age.js',
        from: 'Math.max(0, sentAt - known.since)',
        to: 'Math.max(0, arrivedAt - known.since)',
      },
    ],
  },
  {
    name: 'age-of-the-key',
    breaks: 'an observed age does not begin again with a new etag (rule 4)',
    engine: 'observed',
    edits: [
      {
        file: 'src/core/store/observed-age.js',
        from: 'if (known?.etag === etag)',
        to: 'if (known !== undefined)',
      },
    ],
  },
  {
    name: 'repeating-etag',
    breaks:
      'the etags of a store that reports no time of writing repeat: a renewed lease looks like one that was not (rule 4)',
    engine: 'observed',
    edits: [
      {
        file: 'test/simulation/world/world.js',
        from: 'return String(revision);',
        to: 'return String(revision % 2);',
      },
    ],
  },
  {
    name: 'standing-clock',
    breaks: "a holder's clock stands while its machine is suspended, and so does its deadline (rule 3)",
    engine: 'observed',
    edits: [
      {
        file: 'test/simulation/world/simulated-process.js',
        from: 'monotonic: () => machine.monotonicAt(scheduler.now),',
        to: 'monotonic: () => machine.monotonicAt(scheduler.now) - (this.stoodMs ?? 0),',
      },
      {
        file: 'test/simulation/world/simulated-process.js',
        from: 'this.#stops += 1;',
        to: 'this.#stops += 1;\n        this.stoppedAt ??= this.scheduler.now;',
      },
      {
        file: 'test/simulation/world/simulated-process.js',
        from: 'this.resumedAt = this.scheduler.now;',
        to: 'this.resumedAt = this.scheduler.now;\n        this.stoodMs = (this.stoodMs ?? 0) + this.scheduler.now - this.stoppedAt;\n        this.stoppedAt = undefined;',
      },
    ],
  },
  {
    name: 'shorter-at-once',
    breaks:
      'a renewal carries the duration of the settings, and the deadline is that of the known write (rule 14)',
    edits: [{ file: keeper, from: CARRIES, to: 'durationMs' }],
  },
  {
    name: 'longer-once-read',
    breaks: 'a longer duration counts when it is read, and not when it is written (rule 14)',
    edits: [{ file: keeper, from: DEADLINE, to: 'return this.#sentAt + this.#settings.durationMs;' }],
  },
  {
    name: 'rounded-down',
    breaks: 'what is left until the deadline is rounded down (rule 14)',
    edits: [{ file: keeper, from: CARRIES, to: 'Math.max(durationMs, Math.floor(this.deadline - sentAt))' }],
  },
  {
    name: 'half-of-the-rest',
    breaks: 'a renewal goes back as far as half of what is left until the deadline (rule 14)',
    edits: [
      { file: keeper, from: CARRIES, to: 'Math.max(durationMs, Math.ceil((this.deadline - sentAt) / 2))' },
    ],
  },
  {
    name: 'read-back-clears',
    breaks: 'a read of the known write is taken for a proof that no later one is applied (rule 14)',
    edits: smallestOfSent(ALL_SENT, [
      {
        file: keeper,
        from: 'this.#adopt(state, object.etag);',
        to: 'this.bounds = undefined;\n            this.#adopt(state, object.etag);',
      },
    ]),
  },
  {
    name: 'newest-bound',
    breaks: 'only the latest write is thought of, not those before it that may be applied (rule 14)',
    edits: smallestOfSent(''),
  },
  {
    name: 'refusal-clears',
    breaks: 'a refusal is taken for a proof that no earlier write was applied (rule 14)',
    edits: smallestOfSent(ALL_SENT, [
      {
        file: keeper,
        from: "if (result === 'written' || !this.isHeld)\n            return;",
        to: "if (result === 'written' || !this.isHeld)\n            return;\n        this.bounds = undefined;",
      },
    ]),
  },
  {
    name: 'takes-by-settings',
    breaks: 'a contender goes by the duration of the settings, not by that of the lease (rule 4)',
    edits: [
      {
        file: acquirer,
        from: 'const chance = availability(state, object.age, config.graceMs);',
        to: "const chance = availability(state.kind === 'held' ? { ...state, durationMs: config.durationMs } : state, object.age, config.graceMs);",
      },
    ],
  },
  {
    name: 'forgets-the-longest',
    breaks: 'a shorter duration lowers the longest one that there ever was (rule 15)',
    edits: [
      {
        file: 'src/core/lease/operate/tune.js',
        from: 'const longestMs = Math.max(config.longestMs, durationMs);',
        to: 'const longestMs = durationMs;',
      },
    ],
  },
  {
    name: 'epoch-without-waiting',
    breaks: 'ids are taken as soon as a new epoch is recorded, while lost tenures still run (rule 10)',
    edits: [{ file: settledEpoch, from: 'if (epoch?.settling !== true)', to: 'if (true)' }],
  },
  {
    name: 'free-ids-at-once',
    breaks: 'in a new epoch only leases have to wait, not ids that look free (rule 10)',
    edits: [
      {
        file: acquirer,
        from: "if (step.kind === 'recorded')",
        to: "const candidates = scan.candidates.filter(({ row }) => row === undefined || row.size <= nativeCodec.tombstoneMaxBytes);\n            if (step.kind === 'settling' && candidates.length > 0)\n                return { ...scan, candidates };\n            if (step.kind === 'recorded')",
      },
    ],
  },
  {
    name: 'one-look-at-the-epoch',
    breaks: 'the epoch is not looked at again after the acquiring write (rule 11)',
    edits: [
      {
        file: claim,
        from: 'if (!(await this.#isSameEpoch(cluster, stopAt)))\n            return undefined;',
        to: '',
      },
    ],
  },
  {
    name: 'proof-in-another-epoch',
    breaks:
      'a store that goes back before the acquiring write is repeated counts as one that ignores conditions',
    edits: [
      {
        file: claim,
        from: 'if (!(await this.#isSameEpoch(cluster, stopAt)))\n                return false;',
        to: '',
      },
    ],
  },
  {
    name: 'probe-in-another-epoch',
    breaks: 'a store that goes back during the first probe counts as one that fails it',
    edits: [
      {
        file: 'src/core/lease/acquire/ensure-cluster.js',
        from: 'if ((await session.epoch({ signal })) !== reported)\n        return passProbe(options, cluster);',
        to: '',
      },
    ],
  },
  {
    name: 'next-version',
    breaks: 'the next version is one more, also where later ones may have been lost (rule 12)',
    edits: [
      {
        file: leaseState,
        from: '? leapt(versionOf(previous), tenure.storeNow)',
        to: '? versionOf(previous)',
      },
    ],
  },
  {
    name: 'leap-by-number',
    breaks: 'versions leap by a number alone, which comes again where a leap is lost (rule 12)',
    edits: [
      {
        file: leaseState,
        from: 'return byTime > from ? byTime : from + PER_SECOND;',
        to: 'return from + PER_SECOND;',
      },
    ],
  },
  {
    name: 'generation-kept',
    breaks: 'a late tombstone of a lost change of the size keeps its id for ever (liveness)',
    edits: [
      {
        file: 'src/core/lease/session/cluster-store.js',
        from: 'generation: leapt(generation, session.storeNow().min),',
        to: 'generation,',
      },
    ],
  },
  {
    name: 'older-is-lost',
    breaks: 'a holder gives up when its object shows an earlier write of its own (rule 13)',
    edits: [
      {
        file: keeper,
        from: 'if (held.renewal < this.#held.renewal)\n            return;',
        to: "if (held.renewal < this.#held.renewal)\n            return this.loseTo('its object is older');",
      },
    ],
  },
  {
    name: 'older-counts-anew',
    breaks: 'the deadline moves when the object shows an earlier write (rule 13)',
    edits: [
      {
        file: keeper,
        from: 'if (held.renewal < this.#held.renewal)\n            return;',
        to: 'if (held.renewal < this.#held.renewal) {\n            this.#sentAt = this.options.clock.monotonic();\n            return;\n        }',
      },
    ],
  },
];
