import { plainProtocol } from './comparison/plain-protocol.js';
import { type Engine, shippedEngine } from './engine.js';

/** The engines that a simulation can run, by the name that `--engine` takes. */
export const ENGINES: Readonly<Record<string, Engine>> = {
  shipped: shippedEngine,
  plain: plainProtocol({ versionAfterRelease: 'cleared' }),
  'plain-kept-version': plainProtocol({ versionAfterRelease: 'kept' }),
};
