import type { MessagePort } from 'node:worker_threads';
import type { Clock } from '../../core/base/clock.js';
import type { WatchedNode } from '../../node/runtime/node-monitor.js';
import type { NodeAppPart } from '../http/node-app.js';
import type { Settings } from '../settings/settings.js';

// The shards of a command whose work is done by programs that ask for it over HTTP.

/** The work on the lease; undefined where the settings have none. */
export async function programWork({ shards }: Settings, clock: Clock) {
  if (shards === undefined) return undefined;
  const { ShardPublisher } = await import('./shard-mirror.js');
  return new ShardPublisher(clock, shards);
}

/** What answers the programs, in another thread than the work. */
export async function programRoutes(work: MessagePort, monitor: WatchedNode): Promise<NodeAppPart> {
  const { ShardMirror } = await import('./shard-mirror.js');
  const { shardsRoutes } = await import('./shards-api.js');
  return shardsRoutes({ shards: new ShardMirror(work), monitor });
}

/** The settings of a command that starts such a program: it listens, at least for this host. */
export const listening = (settings: Settings): Settings =>
  (settings.shards || settings.ecsProtect === 'busy') && !settings.http
    ? { ...settings, http: { host: '127.0.0.1', port: 0 } }
    : settings;

/** What a program must not inherit from a process that answers it. */
export const NOT_INHERITED = { NODELEASE_HTTP: undefined, NODELEASE_SHARDS: undefined };
