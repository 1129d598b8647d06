import { describe, expect, it } from 'vitest';
import { systemClock } from '../../base/system.js';
import { StoreError } from '../lease-store.js';
import { type MemoryCall, MemoryLeaseStore } from '../memory/memory-lease-store.js';
import { leaseStoreContract } from './contract.js';

/**
 * What becomes of one of the ten concurrent writes: `apply` carries it out, and says whether it was written.
 */
type Fate = (apply: () => unknown) => unknown;

const WRITTEN = { status: 'written', etag: 'an etag', storeTime: { min: 0, max: 0 } } as const;
const CONFLICT = { status: 'conflict' } as const;

const asUsual: Fate = (apply) => apply();
const fails = (outcome: StoreError['outcome']) => () => {
  throw new StoreError('socket hang up', { fault: 'unreachable', outcome });
};
const refused: Fate = () => CONFLICT;
const answersWith = (reply: unknown): Fate => {
  return (apply) => {
    apply();
    return reply;
  };
};

/**
 * The check of ten concurrent writes on a store on which the first, the second and all further ones fare like
 * this.
 */
function check(
  writes: 'creations' | 'replacements',
  [first, second, others]: readonly [Fate, Fate, Fate],
): Promise<void> {
  let raced = 0;
  const store = new MemoryLeaseStore({
    clock: systemClock,
    async intercept<Reply>(call: MemoryCall, apply: () => Reply) {
      if (!('body' in call && call.body.startsWith('writer '))) return apply();
      raced += 1;
      const fate = raced === 1 ? first : raced === 2 ? second : others;
      return fate(apply) as Reply;
    },
  });
  const name = `conditional writes: lets exactly one of ten concurrent ${writes} win`;
  const found = leaseStoreContract({ open: async () => store, ageResolutionMs: 1 }).find(
    (each) => each.name === name,
  );
  return found?.run() ?? expect.fail(`no check ${name}`);
}

describe.each(['creations', 'replacements'] as const)('ten concurrent %s', (writes) => {
  const lostReply: Fate = (apply) => {
    apply();
    return fails('unknown')();
  };

  it.each<[what: string, fates: [Fate, Fate, Fate]]>([
    ['no connection is lost', [asUsual, asUsual, asUsual]],
    ['a connection is lost whose write was applied', [lostReply, asUsual, asUsual]],
    ['a connection is lost whose write was not applied', [fails('unknown'), asUsual, asUsual]],
    ['the connections of all losers are lost', [asUsual, fails('unknown'), fails('unknown')]],
    ['all connections are lost after their writes', [lostReply, lostReply, lostReply]],
  ])('pass where one write is kept, and %s', async (_, fates) => {
    await expect(check(writes, fates)).resolves.toBeUndefined();
  });

  it.each<[what: string, fates: [Fate, Fate, Fate], says: RegExp]>([
    [
      'two writers get the answer that they have won',
      [asUsual, answersWith(WRITTEN), asUsual],
      /"writer 0" was kept, though writer 0: written, writer 1: written/,
    ],
    [
      'two get that answer, and a third one’s connection is lost',
      [answersWith(WRITTEN), answersWith(WRITTEN), fails('unknown')],
      /"writer 0" was kept, though/,
    ],
    [
      'no write is kept',
      [refused, refused, refused],
      /^(3\.json is missing|no concurrent write was kept: writer 0: conflict, .*)$/,
    ],
    [
      'no write is kept, and all connections are lost',
      [fails('unknown'), fails('unknown'), fails('unknown')],
      /is missing|no concurrent write/,
    ],
    [
      'the write of the winner is not kept, but another one',
      [() => WRITTEN, answersWith(CONFLICT), asUsual],
      /"writer 1" was kept, though writer 0: written/,
    ],
    [
      'the winner gets the answer that it has lost',
      [answersWith(CONFLICT), asUsual, asUsual],
      /"writer 0" was kept, though writer 0: conflict/,
    ],
    ['a write fails for certain', [asUsual, fails('not-applied'), asUsual], /^socket hang up$/],
  ])('fail where %s', async (_, fates, says) => {
    await expect(check(writes, fates)).rejects.toThrow(says);
  });
});

it.each([
  ['the milliseconds of the write', () => String(systemClock.now()), false],
  ['the same in a text', () => `"v-${systemClock.now()}"`, false],
  ['microseconds, as the generations of Google', () => `${systemClock.now()}123`, true],
  ['a random text', () => '"9a0364b9e99bb480dd25e1f0284c8555"', true],
])('an etag of %s is seen', async (_, etag, passes) => {
  const store = new MemoryLeaseStore({
    clock: systemClock,
    intercept: async <Reply>(_call: MemoryCall, apply: () => Reply) => ({ ...apply(), etag: etag() }),
  });
  const name = 'conditional writes: makes no etag of the time in milliseconds, which two writes may share';
  const run = leaseStoreContract({ open: async () => store, ageResolutionMs: 1 })
    .find((each) => each.name === name)
    ?.run();
  await (passes
    ? expect(run).resolves.toBeUndefined()
    : expect(run).rejects.toThrow(/is the time of the write/));
});

it('requires the resolution of ages, without which no age is compared', () => {
  const incomplete = { open: async () => new MemoryLeaseStore() };
  expect(() => leaseStoreContract(incomplete as never)).toThrow('ageResolutionMs: expected a number');
});
