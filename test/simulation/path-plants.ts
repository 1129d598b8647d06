import type { Plant } from './plants.js';

const claim = 'src/core/lease/acquire/claim.js';
const holder = 'src/core/lease/hold/holder.js';
const keeper = 'src/core/lease/hold/keeper.js';
const leaseState = 'src/core/lease/model/lease-state.js';
const evict = 'src/core/lease/operate/evict.js';

/**
 * Changes that keep every promise, and are not the protocol: only the model finds them, with `--traces`. Each is one of which
 * the proofs no longer speak.
 */
export const PATH_PLANTS: readonly Plant[] = [
  {
    name: 'longer-renewals',
    breaks: 'a renewal has half a second more than the settings say, or than is left (rule 14)',
    edits: [
      {
        file: keeper,
        from: 'Math.max(durationMs, Math.ceil(this.deadline - sentAt))',
        to: 'Math.max(durationMs + 500, Math.ceil(this.deadline - sentAt))',
      },
    ],
  },
  {
    name: 'longer-claims',
    breaks: 'a claim has half a second more than the settings say (rule 14)',
    edits: [
      {
        file: claim,
        from: 'nonce: random.hex(12),\n            durationMs,',
        to: 'nonce: random.hex(12),\n            durationMs: durationMs + 500,',
      },
    ],
  },
  {
    name: 'late-stop',
    breaks: 'the stop point is at eleven twelfths of the duration (rule 6)',
    edits: [
      {
        file: holder,
        from: 'return this.deadline - this.timing.stopMarginMs;',
        to: 'return this.deadline - this.timing.stopMarginMs / 2;',
      },
    ],
  },
  {
    name: 'reads-before-renewing',
    breaks: 'a holder reads its lease before each renewal, without a doubt (rule 5)',
    edits: [
      {
        file: keeper,
        from: 'async attempt(begun) {\n        if (this.#uncertain) {',
        to: 'async attempt(begun) {\n        if (true) {',
      },
    ],
  },
  {
    name: 'resends-blindly',
    breaks: 'a holder whose renewal was refused renews again, without a look at the object (rule 5)',
    edits: [
      {
        file: keeper,
        from: 'this.#uncertain = true;\n        await this.#readBack();\n        if (this.isHeld',
        to: 'if (this.isHeld',
      },
    ],
  },
  {
    name: 'old-etag',
    breaks: 'a renewal has the etag of the one before it, is refused, and is sent again (rule 5)',
    edits: [{ file: keeper, from: 'this.#adopt(next, result.etag);', to: 'this.#adopt(next, this.#etag);' }],
  },
  {
    name: 'keeps-the-earlier-deadline',
    breaks: 'a holder that finds a later write of its own does not count from it (rule 5)',
    edits: [
      {
        file: keeper,
        from: 'this.#adopt(state, object.etag);',
        to: `const { deadline } = this;
            this.#adopt(state, object.etag);
            this.#sentAt = deadline - this.#held.durationMs;`,
      },
    ],
  },
  {
    name: 'early-deadline',
    breaks: 'the deadline is 100 ms early (rule 3)',
    edits: [
      {
        file: keeper,
        from: 'return this.#sentAt + this.#held.durationMs;',
        to: 'return this.#sentAt + this.#held.durationMs - 100;',
      },
      {
        file: keeper,
        from: 'Math.ceil(this.deadline - sentAt)',
        to: 'Math.ceil(this.deadline + 100 - sentAt)',
      },
    ],
  },
  {
    name: 'releases-blindly',
    breaks: 'a release does not look at the object, though the outcome of a renewal is unknown (rule 8)',
    edits: [
      {
        file: keeper,
        from: 'let last = this.#held;\n        // After the first attempt, or after a renewal of unknown outcome, the known etag may be outdated.\n        if (this.#uncertain) {',
        to: 'let last = this.#held;\n        if (false) {',
      },
    ],
  },
  {
    name: 'evicts-the-released',
    breaks: 'a forced release of a released id raises its version (rule 9)',
    edits: [
      {
        file: evict,
        from: "if (state.kind !== 'held')",
        to: "if (state.kind !== 'held' && state.kind !== 'released')",
      },
    ],
  },
  {
    name: 'evicts-as-held',
    breaks: 'a forced release of an expired lease leaves its id taken for a whole duration (rule 9)',
    edits: [
      {
        file: evict,
        from: "cluster !== undefined && availability(state, object.age, cluster.config.graceMs).kind === 'free'",
        to: 'false',
      },
    ],
  },
  {
    name: 'skips-a-version',
    breaks: 'a tenure has the version after the next (rule 2)',
    edits: [{ file: leaseState, from: ': versionOf(previous)) + 1,', to: ': versionOf(previous)) + 2,' }],
  },
];
