import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  COUNT,
  counts,
  type ServingNode,
  type ShardsAnswer,
  servedShards,
  warnings,
} from '../../../test/support/served-shards.js';
import { inVirtualTime, settled } from '../../../test/support/virtual-clock.js';

let { clock, node, close } = servedShards();
beforeEach(() => {
  ({ clock, node, close } = servedShards());
});
afterEach(() => close());

/** A sidecar that has all shards, whose program follows, and another one that could take them. */
async function sidecar(stopTimeoutMs = 30_000) {
  const first = await node({ stopTimeoutMs });
  const program = await first.follow();
  await clock.advance(5_000);
  const second = await node();
  await clock.advance(1_000);
  expect(await counts(first)).toEqual([COUNT, 0]);
  return { first, program, second };
}
const answerAll = async (first: ServingNode) => {
  for (const each of (await first.shards()).stopping) expect(await first.stopped(each)).toBe(204);
};
/** What a promise has resolved to; undefined before. */
const settling = <T>(promise: Promise<T>) => {
  const seen: { value?: T } = {};
  void promise.then((value) => {
    seen.value = value;
  });
  return seen;
};

describe('the end of a sidecar', () => {
  it('before it takes part begins no shard, and gives the node id back', async () => {
    const first = await node({ leaves: true });
    const program = await first.follow();
    await clock.advance(8_000);
    expect(program.of('start')).toEqual([]);
    const begun = clock.monotonic();
    await inVirtualTime(clock, first.lease.release());
    expect(clock.monotonic() - begun).toBeLessThan(1_000);
  });

  it('asks the program that follows to stop all shards, and hands them on once it has answered', async () => {
    const { first, program, second } = await sidecar();
    const left = settling(first.leave());
    await clock.advance(20_000);
    expect(program.of('stop')).toHaveLength(COUNT);
    expect([await counts(first), await counts(second), left.value]).toEqual([[0, COUNT], [0, 0], undefined]);
    await answerAll(first);
    await clock.advance(1_000);
    expect(left.value).toBe(true);
    await settled();
    expect(program.news().at(-1)).toEqual({ event: 'end', data: { reason: 'released' } });
    await clock.advance(5_000);
    expect(await counts(second)).toEqual([COUNT, 0]);
  });

  it('hands on what was answered, and leaves the lease to expire for the rest, where no answer comes in time (T5)', async () => {
    const { first, program, second } = await sidecar();
    const left = settling(first.leave());
    await clock.advance(29_000);
    expect(await first.stopped({ shard: 3 })).toBe(204);
    await clock.advance(2_000);
    expect(left.value).toBe(false);
    expect(await counts(second)).toEqual([1, 0]);
    expect(program.of('end').map(({ data }) => data)).toEqual([{ reason: 'expires' }]);
    expect(warnings(first)).toEqual([
      [
        'warn',
        expect.stringMatching(/^the node id is not given back, and expires: .* 7 shards \(0, 1, 2, 4/),
      ],
    ]);
    // As the process ends: nothing is renewed any more.
    first.isAway.value = true;
    await clock.advance(10_000);
    expect(await counts(second)).toEqual([1, 0]);
    await clock.advance(20_000);
    expect(await counts(second)).toEqual([COUNT, 0]);
  });

  it('does not take a stream that closes for the end of the work: the program may come back and answer', async () => {
    const { first, program, second } = await sidecar();
    const left = settling(first.leave());
    await clock.advance(1_000);
    program.leave();
    await clock.advance(4_000);
    expect([left.value, await counts(second)]).toEqual([undefined, [0, 0]]);
    const again = await first.follow();
    await clock.advance(10_000);
    expect([again.of('stop').length, left.value, await counts(second)]).toEqual([COUNT, undefined, [0, 0]]);
    await answerAll(first);
    await clock.advance(1_000);
    expect(left.value).toBe(true);
  });

  it('waits 5 s for a program whose stream has closed, and leaves the lease to expire', async () => {
    const { first, program, second } = await sidecar();
    program.leave();
    await clock.advance(1_000);
    const left = settling(first.leave());
    await clock.advance(6_000);
    expect([left.value, await counts(second)]).toEqual([false, [0, 0]]);
  });

  it('waits for no program that has said that all of its work has ended, before the end or during it', async () => {
    for (const isBefore of [true, false]) {
      const { first, program, second } = await sidecar();
      const say = async () => (await first.ask('/shards/stopped', { method: 'POST' })).status;
      if (isBefore) {
        expect(await say()).toBe(204);
        program.leave();
        await clock.advance(0);
      }
      const left = settling(first.leave());
      await clock.advance(100);
      if (!isBefore) {
        expect(await say()).toBe(204);
        program.leave();
      }
      await clock.advance(1_000);
      expect(left.value).toBe(true);
      await clock.advance(6_000);
      expect(await counts(second)).toEqual([COUNT, 0]);
      second.publisher.isWorking = false;
      await inVirtualTime(clock, first.lease.release());
      await inVirtualTime(clock, second.lease.release());
    }
  });

  it('waits for a program that still follows after one has said that all of its work has ended (T5)', async () => {
    const { first } = await sidecar();
    await first.ask('/shards/stopped', { method: 'POST' });
    const left = settling(first.leave());
    await clock.advance(4_000);
    expect(left.value).toBe(undefined);
  });

  it.each(['whose connection breaks', 'whose connection dies with the thread'])(
    'gives up what a program may work on %s, after another has said that its work has ended (T5)',
    async (how) => {
      const { first, program, second } = await sidecar();
      const other = await first.follow();
      await first.ask('/shards/stopped', { method: 'POST' });
      program.leave();
      await clock.advance(0);
      if (how === 'whose connection breaks') other.leave();
      else first.restartThread();
      const left = settling(first.leave());
      await clock.advance(8_000);
      expect(left.value).toBe(false);
      expect(await counts(second)).toEqual([0, 0]);
    },
  );

  it('forgets that all work has ended when a program follows again', async () => {
    const { first, program } = await sidecar();
    await first.ask('/shards/stopped', { method: 'POST' });
    program.leave();
    await first.follow();
    const left = settling(first.leave());
    await clock.advance(5_000);
    expect(left.value).toBe(undefined);
  });

  it('waits for a program that polls, which finds all shards in "stopping"; one of long ago may work on until the lease has expired (T5)', async () => {
    const first = await node();
    await clock.advance(5_000);
    const second = await node();
    await first.shards();
    await clock.advance(0);
    const left = settling(first.leave());
    for (let i = 0; i < 20; i += 1) {
      expect((await first.shards()).stopping).toHaveLength(i === 0 ? 0 : COUNT);
      await clock.advance(1_000);
    }
    expect([left.value, await counts(second)]).toEqual([undefined, [0, 0]]);
    await answerAll(first);
    await clock.advance(1_000);
    expect(left.value).toBe(true);
    await clock.advance(5_000);
    expect(await counts(second)).toEqual([COUNT, 0]);
    await clock.advance(31_000);
    const other = settling(second.leave());
    await clock.advance(6_000);
    expect(other.value).toBe(false);
  });

  it.each([
    ['first question', false],
    ['question after the end of all work', true],
  ])('knows of a program whose %s was answered in the same moment (T5)', async (_, hasEnded) => {
    const first = await node();
    await clock.advance(5_000);
    const second = await node();
    if (hasEnded) await first.ask('/shards/stopped', { method: 'POST' });
    await clock.advance(1_000);
    const answer = await first.ask('/shards');
    const left = settling(first.leave());
    expect(((await answer.json()) as ShardsAnswer).owned).toHaveLength(COUNT);
    await clock.advance(8_000);
    expect([left.value, await counts(second)]).toEqual([false, [0, 0]]);
  });

  it('hands out no shard to a program that asks or follows from then on, and does not wait for it', async () => {
    const first = await node();
    await clock.advance(5_000);
    const left = settling(first.leave());
    await settled();
    expect(await counts(first)).toEqual([0, 0]);
    const program = await first.follow();
    await clock.advance(1_000);
    expect([left.value, program.of('start')]).toEqual([true, []]);
  });

  it('shows a program that has shards all of them until it is asked to stop them', async () => {
    const first = await node();
    await clock.advance(5_000);
    await first.shards();
    const left = settling(first.leave());
    for (let turn = 0; turn < 5; turn += 1) {
      const { owned, stopping } = await first.shards();
      expect(owned.length + stopping.length).toBe(COUNT);
      await (turn === 0 ? settled() : clock.advance(0));
    }
    expect([left.value, await counts(first)]).toEqual([undefined, [0, COUNT]]);
  });

  it('sends nothing after the event "end"', async () => {
    const { first, program } = await sidecar();
    const hurry = new AbortController();
    const left = settling(first.leave(hurry.signal));
    await clock.advance(100);
    hurry.abort();
    await clock.advance(1_000);
    expect(left.value).toBe(false);
    expect(program.news().at(-1)).toEqual({ event: 'end', data: { reason: 'expires' } });
  });

  it('sends the event "end" of a lost lease, also where the server is closed at once', async () => {
    const { first, program } = await sidecar();
    first.publisher.ended('lost');
    first.publisher.ended('released');
    await settled();
    expect(program.news().at(-1)).toEqual({ event: 'end', data: { reason: 'lost' } });
  });

  it('leaves the lease to expire where the thread that answers cannot say whether a program has asked (T5)', async () => {
    const first = await node();
    await clock.advance(5_000);
    first.killThread();
    const left = settling(first.leave());
    await clock.advance(8_000);
    expect(left.value).toBe(false);
  });

  it('gives the node id back after a second signal, too, where no program has asked', async () => {
    const first = await node();
    await clock.advance(5_000);
    const left = settling(first.leave(AbortSignal.abort()));
    await clock.advance(1_000);
    expect(left.value).toBe(true);
    expect(warnings(first)).toEqual([]);
  });

  it('does not wait after a second signal', async () => {
    const { first, program } = await sidecar();
    const hurry = new AbortController();
    const left = settling(first.leave(hurry.signal));
    await clock.advance(1_000);
    hurry.abort();
    await clock.advance(0);
    expect([left.value, program.of('end')[0]?.data]).toEqual([false, { reason: 'expires' }]);
  });

  it('does not wait after the loss of the lease, of which the program learns at once', async () => {
    const { first, program } = await sidecar();
    const left = settling(first.leave());
    await clock.advance(1_000);
    first.isAway.value = true;
    await clock.advance(15_000);
    expect([left.value, program.of('end')[0]?.data]).toEqual([false, { reason: 'lost' }]);
    const deadlines = program.of('stop').map(({ data }) => data.deadline ?? Number.POSITIVE_INFINITY);
    expect(Math.min(...deadlines.slice(-COUNT))).toBeLessThanOrEqual(clock.now());
  });
});

describe('a stop that no program follows any more', () => {
  it('is withdrawn after 5 s, is asked for again, and may be answered meanwhile under its token', async () => {
    const first = await node();
    await clock.advance(5_000);
    await node();
    await clock.advance(90_000);
    const visitor = await first.follow();
    await clock.advance(1_000);
    expect(await counts(first)).toEqual([4, 4]);
    const { stopping } = await first.shards();
    visitor.leave();
    await clock.advance(4_000);
    expect(await counts(first)).toEqual([4, 4]);
    await clock.advance(2_000);
    expect(await counts(first)).toEqual([COUNT, 0]);
    const { shard = -1, token = -1 } = stopping[0] ?? {};
    expect(await first.stopped({ shard })).toBe(404);
    expect(await first.stopped({ shard, token: token + 1 })).toBe(404);
    expect(await first.stopped({ shard, token })).toBe(204);
    const program = await first.follow();
    await clock.advance(1_000);
    expect(program.of('stop')).toHaveLength(3);
  });
});
