import { plainProtocol } from '../../test/simulation/comparison/plain-protocol.js';
import type { Engine } from '../../test/simulation/engine.js';

/**
 * The plain scan: every task creates the objects 0 … N-1 that are missing, then reads them from 0 on and
 * takes the first that is free by compare-and-swap. It is the protocol that this project began with, written
 * down from its text; a release keeps the version in the metadata.
 */
export const plainScan: Engine = plainProtocol({ versionAfterRelease: 'kept' });
