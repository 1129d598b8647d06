import { inject } from 'vitest';
import { type FleetStore, fleetStore, startTask, type Task } from '../../../support/fleet.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { killAll } from '../../../support/processes.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { childrenOf } from '../../app/cli/run-support.js';

export const SESSION_MS = 2_000;

/** Where a node id stands in the tree. */
export const nodePath = (nodeId: number) =>
  `/discovery/nodes/00/${(8 + nodeId).toString(16).toUpperCase().padStart(2, '0')}`;

/** A cluster in which an id whose holder has died is free after some four seconds. */
export const CLUSTER = ['--nodes', '3', '--duration', '4s'];
export const LEASE = [...CLUSTER, '--log-level', 'debug'];
export const SETTINGS = [...LEASE, '--zookeeper-session-timeout', `${SESSION_MS}ms`];

/** A store and a discovery tree for the tasks of one test. */
export interface RunScene {
  readonly store: FleetStore;
  /** Servers and chroot. */
  readonly connect: string;
  readonly reader: TreeReader;
  start(taskId: string, options?: readonly string[], script?: string): Task;
  /** For `afterEach`. */
  end(): Promise<void>;
}

/** Tasks whose leases are in an S3 bucket, or, where nothing depends on the store, in a folder. */
export async function runScene(kind: 'file' | 's3' = 'file', settings = SETTINGS): Promise<RunScene> {
  const connect = `${inject('zookeeper').connect}${uniqueChroot('run')}`;
  const store = await fleetStore(kind, inject('s3'));
  const reader = new TreeReader(connect);
  return {
    ...{ store, connect, reader },
    start: (taskId, options = [], script) =>
      startTask(store, [...settings, '--task-id', taskId, '--zookeeper', connect, ...options], script),
    end: async () => {
      await killAll();
      await stopProxies();
      await reader.close();
      await store.remove();
    },
  };
}

/** The supervisor, and everything that it started. */
export function pidsOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(pidsOf)];
}

/** To each of them. What has ended already, by itself or with another of them, is gone. */
export function signalAll(members: readonly number[], signal: NodeJS.Signals): void {
  for (const member of members) {
    try {
      process.kill(member, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** All of it at once. */
export function killFamily(pid: number): void {
  signalAll(pidsOf(pid), 'SIGKILL');
}
