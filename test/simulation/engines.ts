import { plainProtocol } from './comparison/plain-protocol.js';
import { type Engine, observedEngine, shardsEngine, shippedEngine, stickyEngine } from './engine.js';
import { FAULT_KINDS, MAP_DAMAGED, PROGRAM_GONE, STORE_RESTORED } from './world/conditions.js';
import { RECIPE_FAULTS } from './zookeeper/conditions.js';

/** The engines that a simulation can run, by the name that `--engine` takes. */
export const ENGINES: Readonly<Record<string, Engine>> = {
  shipped: shippedEngine,
  observed: observedEngine,
  sticky: stickyEngine,
  shards: shardsEngine,
  plain: plainProtocol({ versionAfterRelease: 'cleared' }),
  'plain-kept-version': plainProtocol({ versionAfterRelease: 'kept' }),
};

/** The name of what is no lease engine: the recipes on ZooKeeper, in a world of their own. */
export const RECIPES = 'recipes';

/** Every name that `--engine` takes. */
export const ENGINE_NAMES: readonly string[] = [...Object.keys(ENGINES), RECIPES];

/** The kinds of faults that there are in the world of this engine. */
export function faultKindsOf(engine: string): readonly string[] {
  if (engine === RECIPES) return RECIPE_FAULTS;
  const { ownsShards, knowsEpochs } = ENGINES[engine] ?? {};
  return [
    ...FAULT_KINDS,
    ...(ownsShards ? [MAP_DAMAGED, PROGRAM_GONE] : []),
    ...(knowsEpochs ? [STORE_RESTORED] : []),
  ];
}
