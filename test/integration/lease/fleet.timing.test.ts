import { inject } from 'vitest';
import { fleetStore, storeOn } from '../../support/fleet.js';
import { s3StoreServer } from '../../support/stores/s3-store-server.js';
import { fleetSuite, takeOverSuite } from './fleet-suite.js';
import { outageSuite } from './outage-suite.js';

const s3 = s3StoreServer(inject('s3'));

fleetSuite('file', () => fleetStore('file', inject('s3')), { releasedWithinMs: 1_000 });
fleetSuite('S3', () => storeOn(s3), { releasedWithinMs: 2_000 });
takeOverSuite('file', () => fleetStore('file', inject('s3')));
takeOverSuite('S3', () => storeOn(s3));
outageSuite('S3', () => s3);
