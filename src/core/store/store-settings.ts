import { ConfigError } from '../base/errors.js';
import { type ContainerSources, containerSign } from '../base/host/facts.js';
import { checked, parsed, type SettingRows, text } from '../settings/setting.js';
import { checkEndpoint } from './store-kind.js';
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
