import { Hono } from 'hono';
import type { Clock } from '../base/clock.js';
import type { WatchedNode } from '../runtime/node-monitor.js';
import { parseInteger } from '../settings/values.js';
import { eventStream, message, RETRY } from './event-stream.js';
import { HttpProblem, PLAIN, route } from './problem.js';
import { checkWrite, type WriteAccess } from './server/access.js';
import type { OpenStreams } from './server/open-streams.js';

/** A shard that this node holds, and whose work a client does. */
export interface HeldShard {
  readonly shard: number;
  /** The fencing token. */
  readonly token: number;
  /** By when it is to be stopped, in milliseconds since 1970; null while it is to run. */
  readonly deadline: number | null;
}

/** The shards of a node at one moment. */
export interface ShardsState {
  /** The number of shards of the cluster. */
  readonly count: number;
  /** The version of the map that the node follows. */
  readonly epoch: number;
  readonly held: readonly HeldShard[];
}

/** The shards of a node whose work the clients of its server do. */
export interface ServedShards {
  /** The shards at this moment. */
  state(): ShardsState;
  /**
   * A client stops shards when it is asked to, until the returned function is called. `wake` is called when
   * the state may have changed.
   */
  follow(wake: () => void): () => void;
  /** The work on a shard has ended. */
  stopped(shard: number, token: number): void;
  /** The work on a shard could not be begun, or has failed, and has ended. */
  failed(shard: number, token: number): void;
}

interface ShardsApiOptions {
  readonly clock: Clock;
  readonly shards: ServedShards;
  readonly monitor: WatchedNode;
  /** Which clients may say that the work on a shard has ended. */
  readonly writes: WriteAccess;
  readonly streams: OpenStreams;
}

/**
 * The shards of this node, for the programs that run them: `/shards`, `/shards/events`, and the answer to a
 * stop.
 */
export function shardsApi({ clock, shards, monitor, writes, streams }: ShardsApiOptions): Hono {
  const app = new Hono();
  /** The last answered stop of each shard: until its deadline the answer may be repeated. */
  const answered = new Map<number, HeldShard>();
  route(app, '/shards', {
    GET: () => {
      const { held, ...facts } = shards.state();
      // Compares clocks: a process that was paused past its deadline owns nothing.
      const valid = monitor.health().deadline === null ? [] : held;
      const isStopping = ({ deadline }: HeldShard) => deadline !== null;
      const plain = ({ shard, token }: HeldShard) => ({ shard, token });
      const owned = valid.filter((each) => !isStopping(each)).map(plain);
      return Response.json(
        { ...facts, owned, stopping: valid.filter(isStopping).map(plain) },
        { headers: PLAIN },
      );
    },
  });
  route(app, '/shards/events', {
    GET: ({ req }) => streams.answer(req.raw, (gone) => shardEvents(clock, shards, gone)),
  });
  route(app, '/shards/:shard/stopped', {
    POST: async ({ req }) => {
      await checkWrite(writes, req.raw);
      const { count, held } = shards.state();
      const shard = parseInteger(req.param('shard') ?? '', 'the shard', 0, count - 1);
      const given = req.query('token');
      const asked = held.find((each) => each.shard === shard && each.deadline !== null);
      if (asked === undefined) throw new HttpProblem('not-found', `shard ${shard} is not to be stopped here`);
      const { token } = asked;
      // The answer to an earlier stop that arrives late must not end a holding that runs.
      if (given !== undefined && parseInteger(given, 'token', 1, Number.MAX_SAFE_INTEGER) !== token)
        throw new HttpProblem(
          'conflict',
          `token: expected ${token}, which shard ${shard} has now, got ${given}`,
        );
      const before = answered.get(shard);
      if (given === undefined && before?.token !== token && (before?.deadline ?? 0) > clock.now())
        throw new HttpProblem(
          'conflict',
          `token: expected ${token}, got none, and this may answer an earlier stop of shard ${shard}`,
        );
      answered.set(shard, asked);
      shards.stopped(shard, token);
      return new Response(null, { status: 204, headers: PLAIN });
    },
  });
  route(app, '/shards/:shard/failed', {
    POST: async ({ req }) => {
      await checkWrite(writes, req.raw);
      const { count, held } = shards.state();
      const shard = parseInteger(req.param('shard') ?? '', 'the shard', 0, count - 1);
      const token = parseInteger(req.query('token') ?? '', 'token', 1, Number.MAX_SAFE_INTEGER);
      if (!held.some((each) => each.shard === shard && each.token === token))
        throw new HttpProblem('not-found', `shard ${shard} is not held here with token ${token}`);
      shards.failed(shard, token);
      return new Response(null, { status: 204, headers: PLAIN });
    },
  });
  return app;
}

/**
 * Server-sent events for one client: `start` and `stop` for what is held, and then for each change. A shard
 * of which it has said that it has stopped is no event.
 */
function shardEvents(
  clock: Clock,
  shards: ServedShards,
  gone: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  let sent: ReadonlyMap<number, HeldShard> | undefined;
  function* news() {
    const { held } = shards.state();
    const before = sent;
    sent = new Map(held.map((each) => [each.shard, each]));
    if (before === undefined) yield Buffer.from(`${RETRY}\n`);
    for (const each of held) {
      const { token, deadline } = before?.get(each.shard) ?? {};
      if (token !== each.token || deadline !== each.deadline)
        yield* message(each.deadline === null ? 'start' : 'stop', each);
    }
  }
  return eventStream({ clock, follow: (wake) => shards.follow(wake), news }, gone);
}
