import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import * as undici6 from 'undici';
import * as undici7 from 'undici-7';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../src/core/base/system.js';
import { newInstance } from '../src/zookeeper/services/instance/new-instance.js';
import { type FetchDispatcher, serviceDispatcher } from '../src/zookeeper/services/routing/index.js';
import { fixedInstances } from '../src/zookeeper/services/service-cache.js';
import { ServiceProvider } from '../src/zookeeper/services/service-provider.js';
import { type Compared, compare, inTurns } from './comparison.js';
import { median } from './report.js';

const INSTANCES = 3;
const REQUESTS = 3_000;
const AT_ONCE = 50;
const ROUNDS = { counted: 9, warmUp: 2 };

// In a thread of its own: what is measured is the client.
const SERVERS = `
  const { createServer } = require('node:http');
  const { parentPort, workerData } = require('node:worker_threads');
  const servers = Array.from({ length: workerData }, () => createServer((_request, response) => response.end('ok')));
  Promise.all(servers.map((server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)))))
    .then((ports) => parentPort.postMessage(ports));
`;

let servers: Worker;
let ports: readonly number[];

beforeAll(async () => {
  servers = new Worker(SERVERS, { eval: true, workerData: INSTANCES });
  [ports] = await once(servers, 'message');
});

afterAll(() => servers.terminate());

function provider(): ServiceProvider {
  const sources = { clock: systemClock, random: systemRandom };
  const instances = ports.map((port) => newInstance({ name: 'orders', address: '127.0.0.1', port }, sources));
  return new ServiceProvider({ ...sources, source: fixedInstances('orders', instances) });
}

/** The same instances, one after the other, by hand. */
function origins(): () => string {
  let next = 0;
  return () => `http://127.0.0.1:${ports[next++ % ports.length]}/`;
}

/** Requests a second. */
async function rate(send: () => Promise<unknown>): Promise<number> {
  const begun = process.hrtime.bigint();
  let left = REQUESTS;
  const lane = async () => {
    while (left-- > 0) await send();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return REQUESTS / (Number(process.hrtime.bigint() - begun) / 1e9);
}

async function compared(
  what: string,
  plain: () => Promise<unknown>,
  ours: () => Promise<unknown>,
): Promise<Compared> {
  const samples = await inTurns(
    ROUNDS,
    () => rate(plain),
    () => rate(ours),
  );
  return { what, plain: median(samples.plain), ours: median(samples.ours) };
}

it('requests a second through the dispatcher against a plain Agent that is given the addresses', async () => {
  const rows: Compared[] = [];
  for (const { name, undici } of [
    { name: 'undici 6, request', undici: undici6 },
    { name: 'undici 7, request', undici: undici7 as unknown as typeof undici6 },
  ]) {
    const [agent, origin] = [new undici.Agent(), origins()];
    const dispatcher = serviceDispatcher(provider(), { dispatcher: new undici.Agent() });
    const drained = async ({ body }: undici6.Dispatcher.ResponseData) => body.text();
    rows.push(
      await compared(
        name,
        async () => drained(await undici.request(origin(), { dispatcher: agent })),
        async () => drained(await undici.request('http://orders/', { dispatcher })),
      ),
    );
    await Promise.all([agent.destroy(), dispatcher.destroy()]);
  }
  const [agent, origin] = [new undici6.Agent(), origins()];
  const dispatcher = serviceDispatcher(provider(), { dispatcher: new undici6.Agent() });
  const through = (given: unknown) => given as FetchDispatcher;
  rows.push(
    await compared(
      'global fetch, Agent of undici 6',
      async () => (await fetch(origin(), { dispatcher: through(agent) })).text(),
      async () => (await fetch('http://orders/', { dispatcher: through(dispatcher) })).text(),
    ),
  );
  await Promise.all([agent.destroy(), dispatcher.destroy()]);
  compare('Requests by way of the service dispatcher', '/s', 0, rows, [
    `${INSTANCES} instances, ${AT_ONCE} requests at once, median of ${ROUNDS.counted} rounds of ${REQUESTS}`,
  ]);
  // A guard against a mistake that costs a multiple, not a promise: the machine may be busy.
  for (const { plain, ours } of rows) expect(ours).toBeGreaterThan(plain / 10);
});
