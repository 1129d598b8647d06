import { type Fail, parsePrefix } from '../object-store-url.js';

/** The keys of an etcd cluster that begin with `prefix` and a slash. */
export interface EtcdStoreUrl {
  readonly kind: 'etcd';
  readonly url: string;
  /** `http://HOST:PORT` or `https://HOST:PORT` of each server that may be asked. */
  readonly endpoints: readonly string[];
  /** Without a slash at either end; never empty. */
  readonly prefix: string;
}

const ETCD_SUCH_AS = 'etcd://HOST:2379[,HOST:2379]…/prefix';

/** Takes `etcd://HOST:PORT[,HOST:PORT]…/prefix`, or `etcds:`, apart. */
export function parseEtcd(value: string, fail: Fail): EtcdStoreUrl {
  const [, scheme = '', servers = '', rest = ''] = /^(etcds?):\/\/([^/]*)\/?(.*)$/s.exec(value) ?? [];
  if (servers.includes('@'))
    fail(`no user and password in the URL, but in NODELEASE_ETCD_AUTH or --etcd-auth: ${ETCD_SUCH_AS}`);
  const hosts = servers.split(',').map((server) => parseServer(server, fail));
  const prefix = parsePrefix(rest, ETCD_SUCH_AS, fail);
  if (prefix === '') fail(`a prefix, which nothing else in the cluster uses, in ${ETCD_SUCH_AS}`);
  const endpoints = hosts.map((host) => `${scheme === 'etcd' ? 'http' : 'https'}://${host}`);
  return { kind: 'etcd', url: `${scheme}://${hosts.join(',')}/${prefix}`, endpoints, prefix };
}

function parseServer(server: string, fail: Fail): string {
  const [, host = '', port = '2379'] = /^([\w.-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i.exec(server) ?? [];
  if (host === '' || Number(port) < 1 || Number(port) > 65_535 || !URL.canParse(`http://${host}`)) {
    fail(`servers, each HOST or HOST:PORT, with commas between them, in ${ETCD_SUCH_AS}`);
  }
  return `${host}:${Number(port)}`;
}
