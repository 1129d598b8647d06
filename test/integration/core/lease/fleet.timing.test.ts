import { inject } from 'vitest';
import { storeOn } from '../../../support/fleet.js';
import { s3StoreServer } from '../../../support/stores/s3-store-server.js';
import { fleetSuite, takeOverSuite } from './fleet-suite.js';
import { outageSuite } from './outage-suite.js';

// The other stores are in the deep tier: store-fleets.deep.test.ts.

const s3 = s3StoreServer(inject('s3'));

fleetSuite('S3', () => storeOn(s3), { releasedWithinMs: 2_000 });
takeOverSuite('S3', () => storeOn(s3));
outageSuite('S3', () => s3);
