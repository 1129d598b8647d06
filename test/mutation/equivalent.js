// Mutants that change nothing that a caller can see, by file: the line, what is changed in it, and why it makes no
// difference. `npm run mutate` prints survivors in this form.
export const EQUIVALENT = {
  'src/core/lease/acquire/acquirer.ts': [
    {
      line: "const ALL_PAGES: ScanPlan = { pages: 'all' };",
      from: "'all'",
      to: '""',
      why: 'what is not one is all',
    },
    {
      line: "const ALL_PAGES: ScanPlan = { pages: 'all' };",
      from: "{ pages: 'all' }",
      to: '{}',
      why: 'what is not one is all',
    },
    {
      line: 'while (former !== undefined && clock.monotonic() < limit) {',
      from: 'clock.monotonic() < limit',
      to: 'clock.monotonic() <= limit',
      why: 'an instant',
    },
    {
      line: 'if (outcome.notBefore !== undefined) this.#scanner.dismiss(candidate, outcome.notBefore);',
      from: 'outcome.notBefore !== undefined',
      to: 'true',
      why: 'a candidate that is dismissed until undefined is tried',
    },
    {
      line: 'if (clock.monotonic() >= until && !this.#claimant.isFailing) this.#lateRounds += 1;',
      from: 'clock.monotonic() >= until',
      to: 'clock.monotonic() > until',
      why: 'an instant',
    },
    {
      line: "if (object === undefined) return { kind: 'lost' };",
      from: "{ kind: 'lost' }",
      to: '{}',
      why: 'only acquired and not-free are compared with',
    },
    {
      line: "if (object === undefined) return { kind: 'lost' };",
      from: "'lost'",
      to: '""',
      why: 'only acquired and not-free are compared with',
    },
    {
      line: "return { kind: object.etag === row.etag ? 'not-free' : 'lost', notBefore };",
      from: "'lost'",
      to: '""',
      why: 'only acquired and not-free are compared with',
    },
    {
      line: "if (tenure === undefined) return { kind: 'lost' };",
      from: "{ kind: 'lost' }",
      to: '{}',
      why: 'only acquired and not-free are compared with',
    },
    {
      line: "if (tenure === undefined) return { kind: 'lost' };",
      from: "'lost'",
      to: '""',
      why: 'only acquired and not-free are compared with',
    },
  ],
  'src/core/lease/acquire/bootstrap.ts': [
    {
      line: "if (cluster.config.bootstrapped) return 'known';",
      from: "'known'",
      to: '""',
      why: 'only completed and incomplete are compared with',
    },
    {
      line: 'for (let i = order.length - 1; i > 0; i -= 1) {',
      from: 'i > 0',
      to: 'i >= 0',
      why: 'the first of them changes places with itself',
    },
  ],
  'src/core/lease/acquire/claim.ts': [
    {
      line: "readonly #refusalSeen = { 'If-None-Match': false, 'If-Match': false };",
      from: "{ 'If-None-Match': false, 'If-Match': false }",
      to: '{}',
      why: 'an undefined field is as false',
    },
    {
      line: 'return this.options.clock.monotonic() < (this.#failingUntil ?? 0);',
      from: 'this.options.clock.monotonic() < (this.#failingUntil ?? 0)',
      to: 'this.options.clock.monotonic() <= (this.#failingUntil ?? 0)',
      why: 'an instant',
    },
    {
      line: "return result.status === 'written' ? result.etag : undefined;",
      from: "result.status === 'written'",
      to: 'true',
      why: 'a conflict has no etag',
    },
    {
      line: "return state?.kind === 'held' && state.nonce === held.nonce ? seen?.etag : undefined;",
      from: "state?.kind === 'held'",
      to: 'true',
      why: 'a tombstone has no nonce',
    },
    {
      line: "return state?.kind === 'held' && state.nonce === held.nonce ? seen?.etag : undefined;",
      from: 'state?.kind',
      to: 'state.kind',
      why: 'the read of an absent object is caught, too',
    },
    {
      line: "return state?.kind === 'held' && state.nonce === held.nonce ? seen?.etag : undefined;",
      from: 'seen?.etag',
      to: 'seen.etag',
      why: 'it has been read where it has a state',
    },
    {
      line: 'if (now >= this.#failingUntil) throw error;',
      from: 'now >= this.#failingUntil',
      to: 'now > this.#failingUntil',
      why: 'an instant',
    },
    {
      line: 'if (isStoreAway(error) && clock.monotonic() >= until) throw error;',
      from: 'clock.monotonic() >= until',
      to: 'clock.monotonic() > until',
      why: 'an instant',
    },
  ],
  'src/core/lease/acquire/settled-epoch.ts': [
    {
      line: "if (clock.monotonic() <= until) return { kind: 'settling', until };",
      from: 'clock.monotonic() <= until',
      to: 'clock.monotonic() < until',
      why: 'an instant',
    },
    {
      line: "if (clock.monotonic() <= until) return { kind: 'settling', until };",
      from: "'settling'",
      to: '""',
      why: 'only settled and recorded are compared with',
    },
  ],
  'src/core/lease/hold/holder.ts': [
    {
      line: "const RELEASING = new Error('it is being released');",
      from: "'it is being released'",
      to: '""',
      why: 'the reason of an abort inside the holder, which nobody reads',
    },
    {
      line: '#retrying = false;',
      from: 'false',
      to: 'true',
      why: 'each renewal sets it before its first request',
    },
    {
      line: 'readonly #chores: Promise<void>[] = [];',
      from: '[]',
      to: '["Stryker was here"]',
      why: 'a text among promises is awaited like one that has resolved',
    },
    {
      line: 'mayPass: (error) => error instanceof NodeLeaseError || error instanceof Overtaken,',
      from: 'error instanceof NodeLeaseError || error instanceof Overtaken',
      to: 'true',
      why: 'an attempt throws nothing else unless it has a bug',
    },
    {
      line: 'if (timeoutMs <= leftMs) return { timeoutMs, signal: this.ending };',
      from: 'timeoutMs <= leftMs',
      to: 'timeoutMs < leftMs',
      why: 'where both are equal, the time-out is the same',
    },
    {
      line: "this.#state = 'lost';",
      from: "'lost'",
      to: '""',
      why: 'only held and released are compared with',
    },
    {
      line: "if (mine) this.#state = 'released';",
      from: 'mine',
      to: 'true',
      why: 'a loss is remembered by the signal that has aborted',
    },
  ],
  'src/core/lease/hold/keeper.ts': [
    { line: '#workEnded = true;', from: 'true', to: 'false', why: 'each release sets it first' },
    {
      line: 'clock.monotonic() - this.#time.lookedAt >= settingsIntervalMs - this.timing.renewEveryMs / 2;',
      from: 'clock.monotonic() - this.#time.lookedAt >= settingsIntervalMs - this.timing.renewEveryMs / 2',
      to: 'clock.monotonic() - this.#time.lookedAt > settingsIntervalMs - this.timing.renewEveryMs / 2',
      why: 'a tie between two renewals may go either way',
    },
    {
      line: '} catch (error) {',
      from: '{\n      if (!(error instanceof NodeLeaseError)) throw error;\n    }',
      to: '{}',
      why: 'a session throws nothing else unless it has a bug',
    },
    {
      line: 'if (!(error instanceof NodeLeaseError)) throw error;',
      from: '!(error instanceof NodeLeaseError)',
      to: 'false',
      why: 'a session throws nothing else unless it has a bug',
    },
    {
      line: "if (this.isHeld && this.#sentAt < begun) throw new Overtaken('a write of our own came in between');",
      from: "'a write of our own came in between'",
      to: '""',
      why: 'the text of an attempt that is repeated',
    },
    {
      line: "if (result.status === 'conflict') throw new Overtaken('a renewal of our own came in between');",
      from: "'a renewal of our own came in between'",
      to: '""',
      why: 'the text of an attempt that is repeated',
    },
    {
      line: "if (state.kind === 'held' && state.nonce === this.#held.nonce && state.version === this.version) {",
      from: "state.kind === 'held'",
      to: 'true',
      why: 'a tombstone has no nonce',
    },
    {
      line: 'if (held.renewal < this.#held.renewal) return;',
      from: 'held.renewal < this.#held.renewal',
      to: 'held.renewal <= this.#held.renewal',
      why: 'that write has been adopted already',
    },
    {
      line: 'for (const renewal of this.#sent.keys()) if (renewal < held.renewal) this.#sent.delete(renewal);',
      from: 'renewal < held.renewal',
      to: 'false',
      why: 'it saves memory, and decides nothing',
    },
    {
      line: 'if (state.renewal > last.renewal) last = state;',
      from: 'state.renewal > last.renewal',
      to: 'state.renewal >= last.renewal',
      why: 'it is the same write',
    },
    {
      line: "if (state.kind !== 'held' || state.nonce !== this.#held.nonce) return;",
      from: "state.kind !== 'held'",
      to: 'false',
      why: 'a tombstone has no nonce',
    },
  ],
  'src/core/lease/hold/store-tenure-time.ts': [
    {
      line: 'this.adopted = { idWidth: options.idWidth, narrowIdsUntil: options.stampedUntil };',
      from: '{ idWidth: options.idWidth, narrowIdsUntil: options.stampedUntil }',
      to: '{}',
      why: 'no width is wider than an undefined one, either',
    },
  ],
  'src/core/lease/hold/tenure-time.ts': [
    {
      line: ') {',
      from: '{\n    this.adopted = value;\n  }',
      to: '{}',
      why: 'the first wider width is adopted in either case',
    },
    {
      line: 'if (idWidth <= this.adopted) return;',
      from: 'idWidth <= this.adopted',
      to: 'idWidth < this.adopted',
      why: 'each width is adopted once',
    },
  ],
  'src/core/lease/model/cluster-config.ts': [
    {
      line: 'return Number.isSafeInteger(at + from?.durationMs + from?.graceMs + to?.durationMs + to?.graceMs);',
      from: 'at + from?.durationMs + from?.graceMs + to?.durationMs + to?.graceMs',
      to: 'at + from?.durationMs + from?.graceMs + to?.durationMs - to?.graceMs',
      why: 'a difference is no number where a sum is none',
    },
    {
      line: 'return Number.isSafeInteger(at + from?.durationMs + from?.graceMs + to?.durationMs + to?.graceMs);',
      from: 'at + from?.durationMs + from?.graceMs + to?.durationMs',
      to: 'at + from?.durationMs + from?.graceMs - to?.durationMs',
      why: 'a difference is no number where a sum is none',
    },
    {
      line: 'return Number.isSafeInteger(at + from?.durationMs + from?.graceMs + to?.durationMs + to?.graceMs);',
      from: 'at + from?.durationMs + from?.graceMs',
      to: 'at + from?.durationMs - from?.graceMs',
      why: 'a difference is no number where a sum is none',
    },
    {
      line: 'return Number.isSafeInteger(at + from?.durationMs + from?.graceMs + to?.durationMs + to?.graceMs);',
      from: 'at + from?.durationMs',
      to: 'at - from?.durationMs',
      why: 'a difference is no number where a sum is none',
    },
  ],
  'src/core/lease/model/foreign-cluster.ts': [
    { line: '} catch {', from: '{\n    return {};\n  }', to: '{}', why: 'undefined fields count as none' },
  ],
  'src/core/lease/model/lease-codec.ts': [
    {
      line: "if (toNumber(metadata.version ?? '0') > version)",
      from: "'0'",
      to: '""',
      why: 'neither is above a version',
    },
    {
      line: "function hexMark(text = ''): string | undefined {",
      from: "''",
      to: '"Stryker was here!"',
      why: 'neither is a mark',
    },
    {
      line: "if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value;",
      from: "typeof value === 'number'",
      to: 'true',
      why: 'only numbers are safe integers',
    },
  ],
  'src/core/lease/model/lease-state.ts': [
    {
      line: "if (state.kind !== 'held' && state.stampedUntil !== undefined) return state.stampedUntil;",
      from: "state.kind !== 'held'",
      to: 'true',
      why: 'a held lease has no such field',
    },
    {
      line: "if (state.kind !== 'held' && state.stampedUntil !== undefined) return state.stampedUntil;",
      from: "'held'",
      to: '""',
      why: 'a held lease has no such field',
    },
    {
      line: "return epoch !== undefined && (state.kind === 'vacant' || state.epoch !== epoch);",
      from: "state.kind === 'vacant'",
      to: 'false',
      why: 'a vacant lease has no epoch',
    },
    {
      line: "return epoch !== undefined && (state.kind === 'vacant' || state.epoch !== epoch);",
      from: "'vacant'",
      to: '""',
      why: 'a vacant lease has no epoch',
    },
    {
      line: "if (state.kind === 'vacant') return undefined;",
      from: "state.kind === 'vacant'",
      to: 'false',
      why: 'a vacant lease has no history',
    },
    {
      line: "if (state.kind === 'vacant') return undefined;",
      from: "'vacant'",
      to: '""',
      why: 'a vacant lease has no history',
    },
  ],
  'src/core/lease/model/lease-tracer.ts': [
    {
      line: 'quietly(() => tracer?.past(name, attributes, tookMs, failure)),',
      from: 'tracer?.past',
      to: 'tracer.past',
      why: 'the failure of a tracer that is not there is dropped like any other',
    },
    {
      line: 'Promise.resolve(tracer?.span(name, attributes, once)).catch(() => undefined);',
      from: 'tracer?.span',
      to: 'tracer.span',
      why: 'the failure of a tracer that is not there is dropped like any other',
    },
  ],
  'src/core/lease/model/tenure-history.ts': [
    {
      line: "return (history?.split(' ') ?? []).flatMap((word) => {",
      from: '[]',
      to: '["Stryker was here"]',
      why: 'it is no tenure, and left out',
    },
    {
      line: 'const [, version, acquiredAt, endedAt, letter, taskId] = WORD.exec(word) ?? [];',
      from: '[]',
      to: '["Stryker was here"]',
      why: 'the whole word is not used',
    },
  ],
};
