import type { HonoRequest } from 'hono';
import { checked } from '../../core/base/arguments.js';
import type { Clock } from '../../core/base/clock.js';
import { parseInteger } from '../../core/settings/setting.js';
import type { WatchedNode } from '../../node/runtime/node-monitor.js';
import { eventStream, RETRY } from '../http/event-stream.js';
import type { NodeAppPart } from '../http/node-app.js';
import { doneAnswer, HttpProblem, jsonAnswer, route } from '../http/problem.js';

/** A shard that this node holds, and whose work a client does. */
export interface HeldShard {
  readonly shard: number;
  /** The fencing token. */
  readonly token: number;
  /** By when it is to be stopped, in milliseconds since 1970; null while it is to run. */
  readonly deadline: number | null;
  /** Whether it moves once its work has ended, also where no client was asked to end it. */
  readonly moves: boolean;
}

/**
 * How the lease has ended: the node id was given back, or is left to expire since work may not have ended, or
 * was lost.
 */
export type LeaseEnd = 'released' | 'expires' | 'lost';

/** The shards of a node at one moment. */
export interface ShardsState {
  /** The number of shards of the cluster. */
  readonly count: number;
  /** The version of the map that the node follows. */
  readonly epoch: number;
  /** By number. */
  readonly held: ReadonlyMap<number, HeldShard>;
  /** Undefined while the node may hold shards. */
  readonly end?: LeaseEnd | undefined;
}

/** What has changed since the change before. */
export interface ShardsChange {
  /** Shards as they are now. */
  readonly held: readonly HeldShard[];
  /** The numbers of shards that are not held any more. */
  readonly gone: readonly number[];
}

/** The shards of a node whose work the clients of its server do. */
export interface ServedShards {
  /** The shards at this moment. */
  state(): ShardsState;
  /**
   * A client stops shards when it is asked to, until the returned function is called. `onChange` is called with
   * what changes in `state()`.
   */
  follow(onChange: (change: ShardsChange) => void): () => void;
  /** A client that does not follow has asked for the shards. */
  asked(): void;
  /** The work on a shard has ended. */
  stopped(shard: number, token: number): void;
  /** The work on a shard could not be begun, or has failed, and has ended. */
  failed(shard: number, token: number): void;
  /** All work has ended, and none begins before a client asks again. */
  ended(): void;
}

/** What {@link shardsRoutes} answer from. */
export interface ShardsRoutesOptions {
  readonly shards: ServedShards;
  /** The node whose shards these are. */
  readonly monitor: WatchedNode;
}

/**
 * Followers of `/shards/events`, in addition to those of `/api/events`. With more the oldest one is closed, and
 * connects again: the program that does the work always has room.
 */
const FOLLOWERS = 32;
/** The least time between two reports that clients ask, in milliseconds. */
const ASKED_MS = 1_000;
/** About how many bytes of events are sent at once. */
const CHUNK = 16_384;

const parseToken = (text = '') => parseInteger(text, 'token', 1, Number.MAX_SAFE_INTEGER);

/**
 * The shards of this node, for the programs that run them: `/shards`, `/shards/events`, and the answers to
 * stops. A client that asks counts as one that does the work, so all of it needs the token.
 */
export function shardsRoutes(options: ShardsRoutesOptions): NodeAppPart {
  const { shards, monitor } = checked(options);
  return {
    protects: ['/shards/*'],
    // Programs that follow the events are bounded themselves.
    isUrgent: (path) => /^\/shards\/(events$|(\d+\/)?(stopped|failed)$)/.test(path),
    mount(app, { clock, streams }) {
      const followers = streams.ofTheirOwn(FOLLOWERS);
      /** The last answered stop of each shard: until its deadline the answer may be repeated. */
      const answered = new Map<number, HeldShard>();
      let askedAt = Number.NEGATIVE_INFINITY;
      const shardIn = (req: HonoRequest) => {
        const { count, held } = shards.state();
        const shard = parseInteger(req.param('shard') ?? '', 'the shard', 0, count - 1);
        return { shard, work: held.get(shard) };
      };
      route(app, '/shards', {
        GET: () => {
          const now = clock.monotonic();
          if (now - askedAt >= ASKED_MS) {
            askedAt = now;
            shards.asked();
          }
          const { count, epoch, held } = shards.state();
          // Compares clocks: a process that was paused past its deadline owns nothing.
          const valid = monitor.health().deadline === null ? [] : [...held.values()];
          const shown = (isStopping: boolean) =>
            valid
              .filter(({ deadline }) => (deadline !== null) === isStopping)
              .map(({ shard, token }) => ({ shard, token }));
          return jsonAnswer({ count, epoch, owned: shown(false), stopping: shown(true) });
        },
      });
      route(app, '/shards/events', {
        GET: ({ req }) => {
          const { source, last } = shardEvents(clock, options);
          return followers.answer(req.raw, source, last);
        },
      });
      route(app, '/shards/stopped', {
        POST: () => {
          askedAt = Number.NEGATIVE_INFINITY;
          shards.ended();
          return doneAnswer();
        },
      });
      route(app, '/shards/:shard/stopped', {
        POST: ({ req }) => {
          const { shard, work } = shardIn(req);
          const given = req.query('token');
          const token = given === undefined ? undefined : parseToken(given);
          // With its token an answer also counts to a stop that was withdrawn while no program followed.
          if (work === undefined || !(token === work.token ? work.moves : work.deadline !== null))
            throw new HttpProblem('not-found', `shard ${shard} is not to be stopped here`);
          // The answer to an earlier stop that arrives late must not end a holding that runs.
          if (token !== undefined && token !== work.token)
            throw new HttpProblem(
              'conflict',
              `token: expected ${work.token}, which shard ${shard} has now, got ${given}`,
            );
          const before = answered.get(shard);
          if (token === undefined && before?.token !== work.token && (before?.deadline ?? 0) > clock.now())
            throw new HttpProblem(
              'conflict',
              `token: expected ${work.token}, got none, and this may answer an earlier stop of shard ${shard}`,
            );
          answered.set(shard, work);
          shards.stopped(shard, work.token);
          return doneAnswer();
        },
      });
      route(app, '/shards/:shard/failed', {
        POST: ({ req }) => {
          const { shard, work } = shardIn(req);
          const token = parseToken(req.query('token'));
          if (work?.token !== token)
            throw new HttpProblem('not-found', `shard ${shard} is not held here with token ${token}`);
          shards.failed(shard, token);
          return doneAnswer();
        },
      });
    },
  };
}

/**
 * Server-sent events for one client: `start` and `stop` for what is held, and then for each change; `end` when
 * the node has no shards any more, at the latest as the last event. A shard of which it has said that it has
 * stopped is no event.
 */
function shardEvents(clock: Clock, { shards, monitor }: ShardsRoutesOptions) {
  const sent = new Map<number, HeldShard>();
  const pending = new Set<number>();
  let isFirst = true;
  let hasEnded = false;
  const end = () => {
    const { end: reason } = shards.state();
    if (hasEnded || reason === undefined) return '';
    hasEnded = true;
    return `event: end\ndata: ${JSON.stringify({ reason })}\n\n`;
  };
  function* news() {
    const { held } = shards.state();
    if (hasEnded) return;
    let text = isFirst ? `${RETRY}\n` : '';
    if (isFirst) for (const shard of held.keys()) pending.add(shard);
    isFirst = false;
    // Compares clocks, each second: the thread that keeps the lease may stand still.
    const isOver = monitor.health().deadline === null;
    if (isOver) for (const shard of sent.keys()) pending.add(shard);
    const now = clock.now();
    for (const at of pending) {
      pending.delete(at);
      const before = sent.get(at);
      const over = before && { ...before, deadline: Math.min(before.deadline ?? now, now) };
      const each = isOver && held.has(at) ? over : held.get(at);
      if (each === undefined) sent.delete(at);
      else if (before?.token !== each.token || before.deadline !== each.deadline) {
        sent.set(at, each);
        const { shard, token, deadline } = each;
        const data = JSON.stringify({ shard, token, deadline });
        text += `event: ${deadline === null ? 'start' : 'stop'}\ndata: ${data}\n\n`;
      }
      if (text.length < CHUNK) continue;
      yield Buffer.from(text);
      text = '';
    }
    text += end();
    if (text !== '') yield Buffer.from(text);
  }
  const follow = (wake: () => void) =>
    shards.follow(({ held, gone }) => {
      for (const { shard } of held) pending.add(shard);
      for (const shard of gone) pending.add(shard);
      wake();
    });
  return {
    source: (gone: AbortSignal) => eventStream({ clock, follow, news }, gone),
    last: () => Buffer.from(end()),
  };
}
