import { ConfigError } from '../errors.js';
import { checkZnodeName } from '../zookeeper/znode-path.js';
import { findAll, type Given, type SettingSources } from './sources.js';

/** What `endpoint` was given: it has two kinds of values, told apart by `://`. */
export interface GivenEndpoints {
  /** The server of an S3-compatible store. */
  readonly url: Given | undefined;
  /** Endpoints to announce, `NAME[:KEY]`. */
  readonly names: readonly Given[];
}

/** An endpoint to announce. */
export interface EndpointName {
  readonly endpoint: string;
  readonly key?: string;
}

const URL_SUCH_AS = 'an http or https URL such as http://127.0.0.1:9000';
/** How many endpoints one task may announce. */
const MOST_ENDPOINTS = 100;

/**
 * Sorts what `endpoint` was given, by its two kinds. A flag takes the place of the variable's values of the same kind only. Of several
 * URLs among the flags the last one counts.
 *
 * @throws {ConfigError} for a URL that is none, for what may be a server without its `http://`, and for names where nothing is announced
 */
export function readEndpoints(sources: SettingSources): GivenEndpoints {
  const given = findAll(sources, 'endpoint');
  const urls = preferred(given.filter(isServer));
  const names = preferred(given.filter((each) => !isServer(each)));
  for (const each of urls) checkUrl(each);
  const [, second] = urls;
  if (second?.flag === false) throw new ConfigError(second.label, second.text, 'one URL at most, the server of the store');
  const url = urls.at(-1);
  if (sources.announces !== false) return { url, names: bounded(names) };
  const misplaced = names.find(({ flag }) => flag);
  if (misplaced) throw new ConfigError(misplaced.label, misplaced.text, `${URL_SUCH_AS}: only nodelease run announces endpoints`);
  return { url, names: [] };
}

/**
 * The name of an endpoint, and its key after the first colon.
 *
 * @throws {ConfigError} when one of them cannot be a znode's
 */
export function parseEndpointName({ text, label }: Given): EndpointName {
  const colon = text.indexOf(':');
  const endpoint = colon < 0 ? text : text.slice(0, colon);
  const key = colon < 0 ? undefined : text.slice(colon + 1);
  checkZnodeName(endpoint, label);
  if (key === undefined) return { endpoint };
  checkZnodeName(key, label);
  if (key === '_') throw new ConfigError(label, text, 'a key other than _, which stands for none');
  return { endpoint, key };
}

function checkUrl({ text, label }: Given): void {
  if (!text.includes('://')) {
    throw new ConfigError(label, text, `${URL_SUCH_AS} (or NAME[:KEY] of an endpoint to announce, with a key that is no port)`);
  }
  const protocol = URL.canParse(text) ? new URL(text).protocol : undefined;
  if (protocol !== 'http:' && protocol !== 'https:') throw new ConfigError(label, text, URL_SUCH_AS);
}

/**
 * A URL, or what was meant as one: `minio:9000`, `localhost:80`, `10.0.0.1:80`, `[::1]:9000`. Announcing that would help nobody, and the
 * store would be looked for at AWS.
 */
function isServer({ text }: Given): boolean {
  if (text.includes('://')) return true;
  const [, host = '', port] = /^(.*):(\d{1,5})$/.exec(text) ?? [];
  if (port === undefined || Number(port) > 65_535) return false;
  return Number(port) >= 1_024 || host === 'localhost' || /[.:]/.test(host);
}

function bounded(names: readonly Given[]): readonly Given[] {
  const excess = names[MOST_ENDPOINTS];
  if (excess) throw new ConfigError(excess.label, excess.text, `at most ${MOST_ENDPOINTS} endpoints`);
  return names;
}

/** The flags, where there are any. */
function preferred(given: readonly Given[]): readonly Given[] {
  const flags = given.filter(({ flag }) => flag);
  return flags.length > 0 ? flags : given;
}
