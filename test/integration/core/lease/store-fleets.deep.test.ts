import { afterAll, beforeAll, describe, inject } from 'vitest';
import { fleetStore, storeOn } from '../../../support/fleet.js';
import { startStoreServer } from '../../../support/stores/start-store-server.js';
import { SERVER_KINDS, type StoreServer } from '../../../support/stores/store-server.js';
import { fleetSuite, type TakeOver, takeOverSuite } from './fleet-suite.js';
import { outageSuite } from './outage-suite.js';

// What the timing tier shows on S3, on every other server as well; and how soon ids are taken over on servers
// other than S3.

const took: Partial<Record<string, Partial<Record<TakeOver, number>>>> = {};

afterAll(() => {
  const row = ([kind, times]: [string, Partial<Record<TakeOver, number>> | undefined]) =>
    `${kind.padEnd(8)} by a waiting task ${times?.waiting} ms after the last renewal; by one that starts later ${times?.starting} ms after its first look\n`;
  process.stderr.write(
    `Take-overs with a duration of 3 s and a grace of 1 s:\n${Object.entries(took).map(row).join('')}`,
  );
});

const folder = () => fleetStore('file', inject('s3'));
fleetSuite('file', folder, { releasedWithinMs: 1_000 });
takeOverSuite('file', folder);

describe.each(SERVER_KINDS)('%s', (kind) => {
  let server: StoreServer;
  beforeAll(async () => {
    server = await startStoreServer(kind, inject('s3'));
  });
  afterAll(() => server.stop());

  takeOverSuite(
    kind,
    () => storeOn(server),
    (by, ms) => {
      took[kind] = { ...took[kind], [by]: ms };
    },
  );
  if (kind === 's3') return;
  fleetSuite(kind, () => storeOn(server), { releasedWithinMs: 2_000 });
  outageSuite(kind, () => server);
});
