import type { InstanceFacts, ServiceEntry } from '../../src/node/wire/entries-wire.js';

/** What the page of services receives, with instances of every kind. */
export function scriptedServices(): readonly (readonly [event: string, data: unknown])[] {
  const entries = [
    ...['billing', 'orders', 'search'].map((service) => entry(service, null, {})),
    ...[0, 1, 2].map((index) =>
      task('orders', index, { payload: { zone: 'abc'[index], weight: index + 1 } }),
    ),
    task('billing', 3, { state: 'disabled' }),
    task('billing', 4, { version: 7, claimed: 6 }),
    entry('billing', 'legacy-1', {
      ...at(90, 'enabled', 'STATIC'),
      sessionId: null,
      text: '{"owner":"finance"}',
    }),
    task('search', 5, {}),
    entry('search', 'search-b', {
      ...at(91, 'out of service'),
      text: '{"metadata":{"instance_status":"OUT_OF_SERVICE"}}',
    }),
    entry('search', 'search-c', {
      instance: null,
      sessionId: null,
      text: '{"name":"search","id":',
      problem: 'is not JSON',
    }),
  ];
  return [
    ['hello', { zookeeper: 'zk-1:2181,zk-2:2181,zk-3:2181/prod', path: '/services', writes: true }],
    [
      'entries',
      {
        set: entries.map((each) => [
          `/services/${each.service}${each.id === null ? '' : `/${each.id}`}`,
          each,
        ]),
        gone: [],
      },
    ],
    ['status', { state: 'ok', problem: null, isWhole: true, isPartial: false }],
  ];
}

interface TaskFacts {
  readonly state?: 'enabled' | 'disabled';
  readonly payload?: object;
  /** In the discovery tree, and what the payload claims. */
  readonly version?: number;
  readonly claimed?: number;
}

/** An instance as `nodelease run` registers it. */
function task(service: string, nodeId: number, facts: TaskFacts): ServiceEntry {
  const { state = 'enabled', payload = {}, version = nodeId + 2, claimed = version } = facts;
  const taskId = ['4f0c2a91', 'b7d3e650', '9a21cc07', '17e0ab34', 'd2208c5f', '60b9f3e1'][nodeId] ?? '';
  const claim = { nodeId, version: claimed };
  const text = JSON.stringify({ ...payload, ...claim });
  return entry(service, taskId, {
    ...at(nodeId, state, 'DYNAMIC', claim),
    node: { nodeId, version, taskId },
    text,
  });
}

function at(
  index: number,
  state: InstanceFacts['state'],
  serviceType: 'DYNAMIC' | 'STATIC' = 'DYNAMIC',
  claim: InstanceFacts['claim'] = null,
) {
  const instance = {
    id: `${index}`,
    address: `10.0.4.${index + 10}`,
    port: 8080,
    sslPort: null,
    serviceType,
    state,
    claim,
  };
  return { instance, sessionId: `1000a3f5d2c00${index + 10}` };
}

function entry(service: string, id: string | null, facts: Partial<ServiceEntry>): ServiceEntry {
  return {
    instance: null,
    text: null,
    sessionId: null,
    changedAt: null,
    node: null,
    problem: null,
    ...facts,
    service,
    id,
  };
}
