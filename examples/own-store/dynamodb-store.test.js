// Tries every promise of the contract, and the probe, against a local stand-in for DynamoDB.

import { ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { systemClock, systemRandom } from 'nodelease';
import { probeStore } from 'nodelease/store';
import { leaseStoreContract } from 'nodelease/store/testing';
import { dynamoDbStore } from './dynamodb-store.js';
import { startLocalServer } from './local-server.js';

const table = 'leases';
let endpoint;
let server;

before(async () => {
  server = await startLocalServer(table);
  endpoint = server.endpoint;
});

after(() => server.close());

const places = new Map();
const open = async () => {
  const place = { table, cluster: randomUUID(), endpoint };
  const store = dynamoDbStore(place);
  places.set(store, place);
  return store;
};
const reopen = async (store) => dynamoDbStore(places.get(store));

for (const { name, run } of leaseStoreContract({ open, reopen, ageResolutionMs: 1 })) test(name, run);

test('the probe finds no fault', async () => {
  const store = await open();
  const report = await probeStore(store, { clock: systemClock, random: systemRandom });
  await store.close();
  ok(report.ok, JSON.stringify(report.checks));
});
