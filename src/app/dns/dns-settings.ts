import { ConfigError } from '../../core/base/errors.js';
import { parseListenAddress } from '../../core/settings/listen-address.js';
import {
  duration,
  parsed,
  type SettingKind,
  type SettingRows,
  upToOneDay,
} from '../../core/settings/setting.js';

/** The settings of the names that are answered by DNS. */
export const DNS_SETTINGS = {
  dns: {
    kind: parsed('host:port', parseListenAddress),
    default: 'nowhere',
    field: 'dns',
    sentence: 'where to answer DNS as well, by UDP and TCP, as nodelease dns does',
  },
  'dns-domain': {
    kind: parsed('domain', parseDomain),
    default: 'nodelease',
    field: 'dnsDomain',
    sentence: 'the domain of all names that DNS answers',
  },
  'dns-ttl': {
    kind: ttl({ max: 3_600_000, maxWhy: 'that long an instance that has gone is still used' }),
    default: '0s',
    field: 'dnsTtlMs',
    sentence: 'how long others may keep an answer, in whole seconds',
  },
  'dns-negative-ttl': {
    kind: ttl({ max: 3_600_000, maxWhy: 'that long a new service is not seen' }),
    default: '1s',
    field: 'dnsNegativeTtlMs',
    sentence: 'how long others may remember that a name or a record does not exist, in whole seconds',
  },
  'dns-stale': {
    kind: upToOneDay,
    default: '10m',
    field: 'dnsStaleMs',
    sentence: 'how long to answer from the last data while ZooKeeper or the store is away; then SERVFAIL',
  },
} as const satisfies SettingRows;

/** What is said of DNS to the table of settings. */
export const DNS = { rows: DNS_SETTINGS, commands: ['serve', 'discovery serve'] } as const;

/** DNS has whole seconds. */
function ttl(bounds: Parameters<typeof duration>[0]): SettingKind<number> {
  const kind = duration(bounds);
  const parse = (text: string, label: string) => {
    const ms = kind.parse(text, label);
    if (ms % 1_000 !== 0) throw new ConfigError(label, text, 'whole seconds, such as 2s');
    return ms;
  };
  return { ...kind, parse };
}

/** Every name below it, and the SOA record, must fit the smallest message. */
const MAX_DOMAIN = 64;

/** In lower case, without the dot at its end. */
function parseDomain(text: string, label: string): string {
  const domain = text.toLowerCase().replace(/\.$/, '');
  if (domain.length <= MAX_DOMAIN && domain.split('.').every((part) => /^[a-z0-9_-]{1,63}$/.test(part)))
    return domain;
  throw new ConfigError(
    label,
    text,
    `a domain such as nodelease or nodelease.internal, of at most ${MAX_DOMAIN} characters`,
  );
}
