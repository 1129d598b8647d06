import { expect, it } from 'vitest';
import type { ClusterEvent, ClusterSnapshot } from '../../node/monitor/cluster-view.js';
import type { NodeTenures } from '../../node/monitor/tenures.js';
import type { NodeHealthJson } from '../../node/runtime/node-monitor.js';
import type {
  WireEvent,
  WireHello,
  WireHistory,
  WireInstance,
  WirePage,
  WireReport,
  WireShards,
  WireStore,
  WireTree,
} from '../../node/wire/cluster-wire.js';
import type { ReportPage } from '../http/console/report-pages.js';

/** Everything that the stream sends by its name. That this compiles is the test. */
interface Sent {
  readonly hello: Omit<ClusterSnapshot, 'report'> & {
    readonly epoch: string;
    readonly hasServices?: boolean;
    readonly writesData?: boolean;
    readonly instance: NodeHealthJson | null;
    readonly report: ClusterSnapshot['report'] | null;
  };
  readonly report: ClusterSnapshot['report'];
  readonly page: ReportPage;
  readonly store: ClusterSnapshot['store'];
  readonly tree: ClusterSnapshot['tree'];
  readonly shards: ClusterSnapshot['shards'] | null;
  readonly change: ClusterEvent;
  readonly history: { readonly nodes: readonly NodeTenures[] };
  readonly instance: NodeHealthJson;
}

interface Read {
  readonly hello: WireHello;
  readonly report: WireReport;
  readonly page: WirePage;
  readonly store: WireStore;
  readonly tree: WireTree | null;
  readonly shards: WireShards | undefined | null;
  readonly change: WireEvent;
  readonly history: WireHistory;
  readonly instance: WireInstance;
}

it('the page reads only what the server sends', () => {
  const read = (sent: Sent): Read => sent;
  expect(typeof read).toBe('function');
});
