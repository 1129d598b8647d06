import { isIP } from 'node:net';
import { ConfigError } from '../../core/base/errors.js';
import { checkZnodeName } from '../../zookeeper/client/znode-path.js';
import type { AnnouncedEndpoint } from '../../zookeeper/discovery/announcement.js';
import { environmentName } from './settings-table.js';
import { findAll, type Given, refuse, type SettingSources } from './sources.js';

/** The variable of `announce` under its old name. */
export const OLD_ANNOUNCE_VARIABLE = 'NODELEASE_ENDPOINTS';

const URL_SUCH_AS = 'an http or https URL such as http://127.0.0.1:9000';
const NAME_AND_KEY = 'NAME[:KEY] of an endpoint to announce';
/** How many endpoints one task may announce. */
const MAX_ENDPOINTS = 100;

/**
 * The URL of a store's server, and the `NAME[:KEY]`s to announce. Of several URLs the last one counts. A name
 * as a flag takes the place of the names in the variable. A flag `endpoint` without `://` is a name: that was
 * the flag's other meaning, and is warned of.
 *
 * @throws {ConfigError} for a URL that is none, for a flag `endpoint` that may be a server without its
 * `http://`, and for such a flag with a name where nothing is announced
 */
export function readEndpoints(sources: SettingSources): {
  readonly url: Given | undefined;
  readonly names: readonly Given[];
} {
  const given = findAll(sources, 'endpoint');
  const flags = given.filter(({ flag }) => flag);
  const url = flags.findLast(isUrl) ?? given.find(({ flag }) => !flag);
  const old = flags.filter((each) => !isUrl(each));
  if (url) checkUrl(url);
  for (const each of old) checkNoServer(each);
  if (sources.announces === false) {
    const [misplaced] = old;
    if (misplaced) refuse(misplaced, `${URL_SUCH_AS}: only nodelease run announces endpoints`);
    return { url, names: [] };
  }
  for (const { text } of old)
    sources.warn?.(`--endpoint ${text} is an old name for --announce ${text}: use that`);
  const announced = findAll(sources, 'announce');
  const names = [...announced.filter(({ flag }) => flag), ...old];
  return { url, names: limited(names.length > 0 ? names : listed(sources, announced[0])) };
}

/**
 * The name of an endpoint, and its key after the first colon.
 * @throws {ConfigError} when one of them cannot be a znode's
 */
export function parseEndpointName(given: Given): AnnouncedEndpoint {
  const { text, label } = given;
  if (/[,;]/.test(text))
    refuse(given, `${NAME_AND_KEY}: several have an option each, or commas between them in a variable`);
  if (isUrl(given)) refuse(given, `${NAME_AND_KEY}: the URL of a store's server has a setting of its own`);
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

function isUrl({ text }: Given): boolean {
  return text.includes('://');
}

function checkUrl(given: Given): void {
  const { text } = given;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isRight =
    (url?.protocol === 'http:' || url?.protocol === 'https:') &&
    text.includes('://') &&
    !url.hostname.includes(',');
  if (!isRight) refuse(given, URL_SUCH_AS);
}

/**
 * A server that is given without `http://` must not be announced as an endpoint, with the store looked for in
 * the cloud.
 */
function checkNoServer(given: Given): void {
  const { text } = given;
  const [, name = '', key = ''] = /^([^:]*):?(.*)$/s.exec(text) ?? [];
  const isServer =
    text.includes('.') ||
    text.startsWith('[') ||
    isIP(text) !== 0 ||
    /^(?:localhost|https?)$/i.test(name) ||
    /^\d+$/.test(key);
  if (!isServer) return;
  refuse(given, `${URL_SUCH_AS}, http:// included (an endpoint to announce goes to --announce)`);
}

/** The names in the variable, or in the one with its old name. */
function listed({ env, warn }: SettingSources, given: Given | undefined): readonly Given[] {
  const old = env[OLD_ANNOUNCE_VARIABLE];
  const { label, text } = given ?? { label: OLD_ANNOUNCE_VARIABLE, text: old };
  if (text === undefined) return [];
  if (given === undefined) warn?.(`${label} is an old name for ${environmentName('announce')}: use that`);
  return text.split(',').map((each) => ({ label, text: each.trim(), flag: false }));
}

function limited(names: readonly Given[]): readonly Given[] {
  const excess = names[MAX_ENDPOINTS];
  if (excess) refuse(excess, `at most ${MAX_ENDPOINTS} endpoints`);
  return names;
}
