import type { ServiceEntry } from '../../src/monitor/service-tree.js';

/** What the page of services is told, with instances of every kind. */
export function scriptedServices(): readonly (readonly [event: string, data: unknown])[] {
  const entries = [
    ...['billing', 'orders', 'search'].map((service) => entry(service, null, {})),
    ...[0, 1, 2].map((index) => task('orders', index, { payload: { zone: 'abc'[index], weight: index + 1 } })),
    task('billing', 3, { state: 'disabled' }),
    task('billing', 4, { toldBy: 'payload', version: 6, otherVersion: 7 }),
    entry('billing', 'legacy-1', { ...at(90, 'enabled', 'STATIC'), sessionId: null, text: '{"owner":"finance"}' }),
    task('search', 5, {}),
    entry('search', 'search-b', { ...at(91, 'out of service'), text: '{"metadata":{"instance_status":"OUT_OF_SERVICE"}}' }),
    entry('search', 'search-c', { instance: null, sessionId: null, text: '{"name":"search","id":', problem: 'is not JSON' }),
  ];
  return [
    ['hello', { zookeeper: 'zk-1:2181,zk-2:2181,zk-3:2181/prod', path: '/services', writes: true }],
    ['entries', { set: entries.map((each) => [`/services/${each.service}${each.id === null ? '' : `/${each.id}`}`, each]), gone: [] }],
    ['status', { state: 'ok', problem: null, isWhole: true, isPartial: false }],
  ];
}

interface TaskFacts extends Partial<NonNullable<ServiceEntry['lease']>> {
  readonly state?: 'enabled' | 'disabled';
  readonly payload?: object;
}

/** An instance as `nodelease run` registers it. */
function task(service: string, index: number, { state = 'enabled', payload = {}, ...facts }: TaskFacts): ServiceEntry {
  const taskId = ['4f0c2a91', 'b7d3e650', '9a21cc07', '17e0ab34', 'd2208c5f', '60b9f3e1'][index] ?? '';
  const lease = { nodeId: index, version: index + 2, taskId, toldBy: 'tree', otherVersion: null, ...facts } as const;
  const text = JSON.stringify({ ...payload, nodeId: lease.nodeId, version: lease.version });
  return entry(service, taskId, { ...at(index, state), lease, text });
}

function at(index: number, state: NonNullable<ServiceEntry['instance']>['state'], serviceType: 'DYNAMIC' | 'STATIC' = 'DYNAMIC') {
  const instance = { address: `10.0.4.${index + 10}`, port: 8080, sslPort: null, serviceType, state };
  return { instance, sessionId: `1000a3f5d2c00${index + 10}` };
}

function entry(service: string, id: string | null, facts: Partial<ServiceEntry>): ServiceEntry {
  return { instance: null, text: null, sessionId: null, lease: null, problem: null, ...facts, service, id };
}
