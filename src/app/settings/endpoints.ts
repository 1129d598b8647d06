import { ConfigError } from '../../core/base/errors.js';
import { type Given, refuse } from '../../core/settings/sources.js';
import { checkZnodeName } from '../../zookeeper/client/znode-path.js';
import type { AnnouncedEndpoint } from '../../zookeeper/discovery/announcement.js';
import type { AllSettings } from './settings-table.js';

const NAME_AND_KEY = 'NAME[:KEY] of an endpoint to announce';
/** How many endpoints one task may announce. */
const MAX_ENDPOINTS = 100;

/**
 * The endpoints to announce: those of the flags, else those of the variable. One that is named twice is
 * announced once.
 *
 * @throws {ConfigError} when a name or a key cannot be a znode's, or there are too many
 */
export function readEndpoints(all: AllSettings): readonly AnnouncedEndpoint[] {
  if (all.sources.announces === false) return [];
  const given = all.findAll('announce');
  const flags = given.filter(({ flag }) => flag);
  const names = flags.length > 0 ? flags : given.flatMap(listed);
  const excess = names[MAX_ENDPOINTS];
  if (excess) refuse(excess, `at most ${MAX_ENDPOINTS} endpoints`);
  return [...new Map(names.map(parseEndpointName).map((each) => [JSON.stringify(each), each])).values()];
}

const listed = (given: Given) => given.text.split(',').map((text) => ({ ...given, text: text.trim() }));

/**
 * The name of an endpoint, and its key after the first colon.
 * @throws {ConfigError} when one of them cannot be a znode's
 */
export function parseEndpointName(given: Given): AnnouncedEndpoint {
  const { text, label } = given;
  if (/[,;]/.test(text))
    refuse(given, `${NAME_AND_KEY}: several have an option each, or commas between them in a variable`);
  if (text.includes('://'))
    refuse(given, `${NAME_AND_KEY}: the URL of a store's server has a setting of its own`);
  const [, endpoint = '', key] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? [];
  try {
    checkZnodeName(endpoint, label);
    if (key !== undefined) checkZnodeName(key, label);
  } catch (error) {
    // It names the whole text: of a part that is empty, say, the user would not know where it comes from.
    throw error instanceof ConfigError
      ? new ConfigError(label, text, `${NAME_AND_KEY}, each ${error.expected}`)
      : error;
  }
  if (key === '_') refuse(given, 'a key other than _, which stands for none');
  return key === undefined ? { endpoint } : { endpoint, key };
}
