import { ConfigError } from '../base/errors.js';
import { type ContainerSources, containerSign } from '../base/host/facts.js';
import { checked, parsed, type SettingRows, text } from '../settings/setting.js';
import { checkStore, listed, parseStoreUrl, STORE_FORMS, STORES } from './stores.js';

/** The store where none is given: for processes that share a working directory. */
export const DEFAULT_STORE = 'file:.nodelease';

/**
 * Why the default is none here, as a clause: each container would be a separate cluster, with node id 0.
 * Undefined outside of containers.
 */
export function whyNoDefaultStore(sign: string | undefined): string | undefined {
  return (
    sign &&
    `in a container (${sign}) the default, ${DEFAULT_STORE}, would be a cluster of its own: name it if you want that`
  );
}

/** The default of the option `store`. @throws {ConfigError} in a container */
export function defaultStore(
  sources: ContainerSources = { env: process.env, processId: process.pid },
): string {
  const why = whyNoDefaultStore(containerSign(sources));
  if (why !== undefined)
    throw new ConfigError(
      'store',
      undefined,
      `one that all tasks reach, such as s3://bucket/prefix (${why})`,
    );
  return DEFAULT_STORE;
}

/** The settings of the store that the leases are in. */
export const STORE_SETTINGS = {
  store: {
    kind: { ...parsed('url', (given, label) => parseStoreUrl(given, label).url), check: checkStore },
    default: DEFAULT_STORE,
    option: 'store',
    storeOnly: true,
    common: true,
    sentence: `${STORE_FORMS}, which is private to one process; required in a container`,
  },
  endpoint: {
    kind: checked('url', checkEndpoint),
    default: 'the cloud of the store',
    option: 'endpoint',
    storeOnly: true,
    common: true,
    sentence: `${listed(STORES.flatMap(({ endpoint = [] }) => endpoint))}: http(s)://HOST:PORT`,
  },
  region: {
    kind: text('name', /^[\w-]{1,64}$/, 'the name of a region such as eu-central-1'),
    default: 'what the AWS environment says',
    option: 'region',
    storeOnly: true,
    common: true,
    sentence: `the region of ${listed(STORES.flatMap(({ region = [] }) => region))}`,
  },
  // Those that one kind of store has alone.
  ...(Object.assign({}, ...STORES.map(({ own }) => own?.settings)) as object),
} as const satisfies SettingRows;

/** @throws {ConfigError} unless it is the URL of one server, without credentials */
export function checkEndpoint(endpoint: string, label: string): void {
  const url = /^https?:\/\//i.test(endpoint) && URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  // A password in a URL ends up in process lists and logs; and the SDK would not use it.
  if (url && (url.username !== '' || url.password !== '')) {
    const expected = 'no credentials in the URL: they come from the default chain of the cloud';
    throw new ConfigError(label, `${url.protocol}//…@${url.host}`, expected);
  }
  if (url === undefined || url.hostname.includes(',') || url.search !== '' || url.hash !== '')
    throw new ConfigError(label, endpoint, 'an http or https URL such as http://127.0.0.1:9000');
}
