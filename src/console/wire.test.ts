import { expect, it } from 'vitest';
import type { NodeHealthJson } from '../http/node-health-json.js';
import type { ClusterEvent, ClusterSnapshot, ClusterUpdate } from '../monitor/cluster-view.js';
import type { WireCluster, WireEvent, WireHello, WireInstance, WireNode, WireStore, WireTree } from './wire.js';

/** Everything that the stream sends by its name. That this compiles is the test. */
interface Sent {
  readonly hello: Omit<ClusterSnapshot, 'report'> & {
    readonly epoch: string;
    readonly instance: NodeHealthJson | null;
    readonly report: ClusterSnapshot['report'] | null;
  };
  readonly nodes: Extract<ClusterUpdate, { type: 'nodes' }>['nodes'];
  readonly cluster: Extract<ClusterUpdate, { type: 'cluster' }>['report'];
  readonly store: Extract<ClusterUpdate, { type: 'store' }>['store'];
  readonly tree: Extract<ClusterUpdate, { type: 'tree' }>['tree'];
  readonly change: ClusterEvent;
  readonly instance: NodeHealthJson;
}

interface Read {
  readonly hello: WireHello;
  readonly nodes: readonly WireNode[];
  readonly cluster: WireCluster;
  readonly store: WireStore;
  readonly tree: WireTree | null;
  readonly change: WireEvent;
  readonly instance: WireInstance;
}

it('the page reads only what the server sends', () => {
  const read = (sent: Sent): Read => sent;
  expect(read).toBeTypeOf('function');
});
