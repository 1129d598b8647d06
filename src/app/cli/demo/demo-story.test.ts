import { describe, expect, it } from 'vitest';
import { type CapturedIo, capturedIo } from '../../../../test/support/captured-io.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { acquireLease } from '../../../core/lease/acquire/acquire-lease.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import type { Screen } from '../../kit/io.js';
import { DemoFailure, DemoStory, type DemoTask } from './demo-story.js';
import { type Act, actOf, DemoView } from './demo-view.js';

interface Scene {
  readonly clock: VirtualClock;
  readonly io: CapturedIo;
  readonly story: DemoStory;
  readonly started: Map<string, DemoTask>;
  /** The names of the tasks that were asked to end, in that order. */
  readonly stopped: string[];
  readonly abort: AbortController;
}

/** A fleet in this process: real leases in memory; a task that is killed never reaches the store again. */
function scene({ once, screen, never = false }: { once: boolean; screen?: Screen; never?: boolean }): Scene {
  const clock = new VirtualClock();
  const store = new MemoryLeaseStore({ clock }, new MemoryBucket(clock, 1));
  const io = capturedIo(screen, clock);
  const started = new Map<string, DemoTask>();
  const stopped: string[] = [];
  const start = (name: string): DemoTask => {
    let end: string | undefined;
    let isFrozen = false;
    const network = store.connect((_, apply) =>
      end === undefined && !isFrozen ? Promise.resolve().then(apply) : new Promise(() => {}),
    );
    const random = seededRandom(started.size + 1);
    const impatience = new AbortController();
    const { signal } = impatience;
    const lease = never
      ? undefined
      : acquireLease({
          store: network,
          clock,
          random,
          taskId: name,
          nodes: 3,
          durationMs: 3_000,
          graceMs: 1_000,
          signal,
        });
    const task: DemoTask = {
      name,
      pid: 100 + started.size,
      end: () => end,
      kill: () => {
        end = 'signal SIGKILL';
      },
      freeze: () => {
        isFrozen = true;
      },
      thaw: () => {
        if (isFrozen) end = 'exit code 76';
      },
      stop: async () => {
        stopped.push(name);
        impatience.abort(new Error('stopped'));
        await (await lease?.catch(() => undefined))?.release();
        end = 'exit code 143';
      },
    };
    started.set(name, task);
    return task;
  };
  const view = new DemoView(['title', 'subtitle'], io, true);
  const story = new DemoStory({
    session: new StoreSession(store, clock, 1_000),
    clock,
    view,
    start,
    once,
  });
  return { clock, io, story, started, stopped, abort: new AbortController() };
}

const lines = (io: CapturedIo) => io.answer().trimEnd().split('\n');

describe('nodelease demo --once', () => {
  it('shows each start, each node id with its version, the kill, the expiry and the take-over at the next version; then it ends', async () => {
    const { clock, io, story, abort } = scene({ once: true });
    const played = story.play(abort.signal);
    await clock.advance(12_000);
    await played;
    const text = io.answer();
    expect(text.match(/task-\d \(pid \d+\) started\n/g)).toHaveLength(3);
    expect(text.match(/task-\d acquired node id \d at version 1\n/g)).toHaveLength(3);
    const killed =
      /(\d+\.\d)s {2}(task-\d) killed by SIGKILL: node id (\d) \(version 1\) expires in \d\.\ds\n/.exec(text);
    expect(text).toMatch(/task-4 \(pid 103\) started in its place/);
    expect(text).toMatch(
      new RegExp(`the lease of node id ${killed?.[3]} has run out; it may be taken after 1s of grace`),
    );
    const taken = new RegExp(
      `(\\d+\\.\\d)s {2}task-4 took over node id ${killed?.[3]}: version 1 -> 2, (\\d\\.\\d)s after the kill\n$`,
    ).exec(text);
    expect(Number(taken?.[2])).toBeGreaterThan(3);
    expect(Number(taken?.[2])).toBeLessThan(4.5);
  });

  it('fails when a task ends before it held a lease, and says how it ended', async () => {
    const { clock, story, started, abort } = scene({ once: true, never: true });
    const played = story.play(abort.signal);
    played.catch(() => undefined);
    await clock.advance(500);
    started.get('task-2')?.kill();
    await clock.advance(500);
    await expect(played).rejects.toThrow(
      new DemoFailure('task-2 ended before it held a lease (signal SIGKILL)'),
    );
  });

  it('fails when nothing happens for a minute', async () => {
    const { clock, story, abort } = scene({ once: true, never: true });
    const played = story.play(abort.signal);
    played.catch(() => undefined);
    await clock.advance(61_000);
    await expect(played).rejects.toThrow('not all node ids are held after 60s');
  });
});

describe('nodelease demo', () => {
  it('goes on with another node id about every twelve seconds until it is interrupted', async () => {
    const { clock, io, story, abort } = scene({ once: false });
    const played = story.play(abort.signal);
    played.catch(() => undefined);
    await clock.advance(60_000);
    abort.abort(new Error('interrupted'));
    await expect(played).rejects.toThrow('interrupted');
    const taken = lines(io).flatMap(
      (line) => /took over node id (\d): version (\d) -> (\d)/.exec(line)?.slice(1).map(Number) ?? [],
    );
    expect(taken).toEqual([1, 1, 2, 2, 1, 2, 0, 1, 2, 1, 2, 3, 2, 2, 3]);
    expect(clock.sleepers).toBeLessThan(40);
  });

  /** Runs a story until all node ids are held, and then lets the user act on node id 1. */
  async function acted(act: Act) {
    const told = scene({ once: false });
    told.story.play(told.abort.signal).catch(() => undefined);
    await told.clock.advance(2_000);
    expect(told.story.act(act, 1)).toBe(true);
    return told;
  }
  const takeOver = /(task-\d) took over node id 1: version 1 -> 2, (\d\.\d)s after the (kill|freeze)\n/;

  it('kills and freezes the task of a row, has another one take over, and lets the frozen one find its loss', async () => {
    for (const act of ['kill', 'freeze'] as const) {
      const { clock, io, story, abort } = await acted(act);
      expect(story.act(act, 1)).toBe(false);
      await clock.advance(6_000);
      const text = io.answer();
      expect(takeOver.exec(text)?.slice(1)).toEqual(['task-4', expect.any(String), act]);
      expect(Number(takeOver.exec(text)?.[2])).toBeGreaterThan(3);
      expect(text.match(/started in its place/g)).toHaveLength(1);
      expect(text.includes('has ended (exit code 76)')).toBe(act === 'freeze');
      abort.abort(new Error('interrupted'));
      await clock.advance(200);
    }
  });

  it('stops the task of a row: its id is released, and another one has it at once', async () => {
    const { clock, io, abort } = await acted('stop');
    await clock.advance(1_500);
    expect(io.answer()).not.toContain('SIGCONT');
    expect(io.answer()).toMatch(/task-4 acquired node id 1 at version 2\n/);
    expect(io.answer().match(/started in its place/g)).toHaveLength(1);
    abort.abort(new Error('interrupted'));
    await clock.advance(200);
  });

  it('leaves all further kills to its user, however long nothing happens, and however often something does', async () => {
    const { clock, io, story, abort, started } = await acted('kill');
    for (let minute = 0; minute < 40; minute += 1) {
      await clock.advance(2_000);
      story.act('kill', minute % 3);
    }
    await clock.advance(120_000);
    const kills = io.answer().match(/killed by SIGKILL/g)?.length ?? 0;
    expect(started.size).toBe(3 + kills);
    expect(kills).toBeGreaterThan(10);
    expect(clock.sleepers).toBeGreaterThan(0);
    await clock.advance(600_000);
    expect(io.answer().match(/killed by SIGKILL/g)).toHaveLength(kills);
    abort.abort(new Error('interrupted'));
    await clock.advance(200);
  });

  it('replaces a task that somebody else froze', async () => {
    const { clock, io, story, started, abort } = scene({ once: false });
    story.play(abort.signal).catch(() => undefined);
    await clock.advance(2_000);
    started.get('task-2')?.freeze();
    await clock.advance(7_500);
    expect(io.answer()).toMatch(/task-2 continues by SIGCONT, and finds that its lease is lost\n/);
    expect(io.answer()).toMatch(/task-2 has ended \(exit code 76\)\n/);
    abort.abort(new Error('interrupted'));
    await clock.advance(200);
  });

  it('has nine keys, three for a row, and no others', () => {
    expect([...'1234567890akx'].map(actOf)).toEqual([
      ['kill', 0],
      ['freeze', 0],
      ['stop', 0],
      ['kill', 1],
      ['freeze', 1],
      ['stop', 1],
      ['kill', 2],
      ['freeze', 2],
      ['stop', 2],
      ...Array(4).fill(undefined),
    ]);
    expect(actOf('')).toBeUndefined();
    expect(actOf('12')).toBeUndefined();
  });

  it('replaces a task that somebody else ended', async () => {
    const { clock, io, story, started, abort } = scene({ once: false });
    const played = story.play(abort.signal);
    played.catch(() => undefined);
    await clock.advance(3_000);
    started.get('task-2')?.kill();
    await clock.advance(4_500);
    expect(io.answer()).toMatch(
      /task-2 has ended \(signal SIGKILL\)\n.*task-4 \(pid 103\) started in its place\n/,
    );
    expect(io.answer()).toMatch(/task-4 acquired node id \d at version 2\n/);
    abort.abort(new Error('interrupted'));
    await clock.advance(200);
  });

  it('ends its tasks, and shows that their node ids are given back', async () => {
    const { clock, io, story, stopped, abort } = scene({ once: false });
    const played = story.play(abort.signal);
    played.catch(() => undefined);
    await clock.advance(2_000);
    abort.abort(new Error('interrupted'));
    await clock.advance(200);
    const ended = story.end();
    await clock.advance(1_000);
    await ended;
    expect(stopped).toEqual(['task-1', 'task-2', 'task-3']);
    expect(io.answer().match(/node id \d is released, its version 1 is kept\n/g)).toHaveLength(3);
    expect(clock.sleepers).toBe(0);
  });

  it('ends a task that waits for a node id before it gives any back', async () => {
    const { clock, io, story, stopped, abort } = scene({ once: false });
    const played = story.play(abort.signal);
    played.catch(() => undefined);
    await clock.advance(9_000);
    expect(io.answer()).toMatch(/task-4 .* it waits\n/);
    abort.abort(new Error('interrupted'));
    await clock.advance(200);
    const ended = story.end();
    await clock.advance(10_000);
    await ended;
    expect(stopped[0]).toBe('task-4');
  });

  it('fits a terminal of 80 by 24, and a smaller one', async () => {
    for (const screen of [
      { columns: 80, rows: 24, color: false },
      { columns: 40, rows: 12, color: false },
    ]) {
      const { clock, io, story, abort } = scene({ once: false, screen });
      const played = story.play(abort.signal);
      played.catch(() => undefined);
      await clock.advance(40_000);
      abort.abort(new Error('interrupted'));
      await clock.advance(200);
      const pictures = io.answer().split('\x1b[H').slice(1);
      expect(pictures.length).toBeGreaterThan(100);
      for (const picture of pictures) {
        const rows = picture.replaceAll(/\p{Cc}\[\??\d*[A-Za-z]/gu, '').split('\n');
        // The last one is where the cursor is.
        expect(rows.length).toBeLessThanOrEqual(screen.rows);
        if (screen.columns === 80 && picture.includes('held 3'))
          expect(picture).toMatch(/\b1 kill {2}2 freeze {2}3 stop\b[\s\S]*\b9 stop\b/);
        const drawn = screen.columns === 80 ? Math.max(...rows.map((row) => row.length)) : 0;
        expect(drawn).toBeLessThanOrEqual(screen.columns);
      }
      if (screen.columns === 80) expect(pictures.at(-1)).toMatch(/took over node id/);
    }
  });
});
