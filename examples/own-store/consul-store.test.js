// Tries every promise of the contract, and the probe, against a local stand-in for Consul.

import { ok, rejects, strictEqual } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { systemClock, systemRandom } from 'nodelease';
import { probeStore } from 'nodelease/store';
import { leaseStoreContract } from 'nodelease/store/testing';
import { consulStore } from './consul-store.js';
import { startLocalServer } from './local-server.js';

let server;

before(async () => {
  server = await startLocalServer();
});

after(() => server.close());

const places = new Map();
const open = async () => {
  const place = { server: server.endpoint, prefix: randomUUID() };
  const store = consulStore(place);
  places.set(store, place);
  return store;
};
const reopen = async (store) => consulStore(places.get(store));

for (const { name, run } of leaseStoreContract({ open, reopen, ageResolutionMs: 1 })) test(name, run);

test('the probe finds no fault', async () => {
  const store = await open();
  const report = await probeStore(store, { clock: systemClock, random: systemRandom });
  await store.close();
  ok(report.ok, JSON.stringify(report.checks));
});

// The stand-in has applied each of these writes. A status below 500 says nothing, unless it is a refusal.
const BROKEN = {
  'no reply': (response) => response.destroy(),
  'a reply of 200 that was cut': (response) =>
    response.writeHead(200, { 'content-length': 100 }).write('{"Results":', () => response.destroy()),
  'a page with status 200': (response) => response.end('<html>Welcome</html>'),
  'an empty object': (response) => response.end('{}'),
  'a page with status 404': (response) => response.writeHead(404).end('<html>Not found</html>'),
  'an error of the server': (response) => response.writeHead(500).end('No cluster leader'),
};
for (const [what, fault] of Object.entries(BROKEN))
  test(`of a write with ${what}, the outcome is unknown`, async () => {
    const store = await open();
    server.faults.push(fault);
    await rejects(store.create('0.json', 'x', {}), { name: 'StoreError', outcome: 'unknown' });
    strictEqual((await store.read('0.json')).body, 'x');
  });

test('a write that was refused has not been applied', async () => {
  const store = await open();
  server.faults.push((response) => response.writeHead(403).end('Permission denied'));
  await rejects(store.create('0.json', 'x', {}), { fault: 'denied', outcome: 'not-applied' });
});

test('an aborted signal ends a call that is not answered', async () => {
  const store = await open();
  const giving = new AbortController();
  server.faults.push(() => giving.abort(new Error('enough')));
  await rejects(store.read('0.json', { signal: giving.signal }), /enough/);
});
