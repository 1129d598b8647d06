import { CONFIG_COMMANDS } from './configuration/config-rows.js';
import { DATA_DIR_COMMANDS } from './data-dir/data-dir-rows.js';
import { DNS_COMMANDS } from './dns/dns-rows.js';
import { RECIPE_COMMANDS } from './recipes/recipe-rows.js';
import { SHARDS_COMMANDS } from './shards/shards-rows.js';
import { DATA_COMMANDS } from './shared-data/data-rows.js';

/** What a node id is held with, and what its command finds of that in its environment. */
export { ownHoldOptions, ownVariables } from './data-dir/held-data-dir.js';
/** What answers in addition to HTTP, where the settings say so. */
export { listenerFor } from './dns/dns-listener.js';

/** The commands of the products, in the order of the help. */
export const PRODUCT_COMMANDS = [
  ...SHARDS_COMMANDS,
  ...DNS_COMMANDS,
  ...DATA_DIR_COMMANDS,
  ...RECIPE_COMMANDS,
  ...CONFIG_COMMANDS,
  ...DATA_COMMANDS,
];
