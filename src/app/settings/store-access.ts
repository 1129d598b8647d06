import type { StoreAccess } from '../../core/store/store-access.js';
import type { OwnSettings, StoreUrl } from '../../core/store/store-kind.js';
import { listed, STORES, storeKindOf } from '../../core/store/stores.js';
import type { SettingName } from './settings-table.js';
import { find, firstFlag, read, refuse, type SettingSources } from './sources.js';
import { readTlsFiles, tlsFile } from './tls-files.js';

/**
 * How to reach the store. Settings of other stores are of no use: flags are refused, variables may be there
 * for other programs.
 *
 * @throws {ConfigError} naming the setting as the user gave it, and what was expected
 */
export function readStoreAccess(sources: SettingSources, { url }: StoreUrl): StoreAccess {
  const { own, endpoint: takesEndpoint } = storeKindOf(url) ?? {};
  for (const { own: other, schemes } of STORES) {
    if (other === own) continue;
    const useless = firstFlag(sources, ({ name }) => name in (other?.settings ?? {}));
    const expected = `a store of ${listed(schemes.map((scheme) => `${scheme}://`))} with it`;
    if (useless) refuse({ ...useless, text: '…' }, expected);
  }
  const server = find(sources, 'endpoint');
  const endpoint = read(sources, 'endpoint');
  if (server && takesEndpoint === undefined && (server.flag || !find(sources, 'store')?.flag)) {
    const having = STORES.flatMap((kind) => (kind.endpoint ? [`${kind.schemes[0]}:`] : []));
    refuse(server, `no endpoint with the store ${url} (only ${listed(having, 'and')} have one)`);
  }
  return {
    endpoint: takesEndpoint && endpoint,
    region: read(sources, 'region'),
    ...(own && { [own.option]: readOwn(sources, own, url) }),
  };
}

/** The settings that the kind of store has alone, by the fields of its option. */
function readOwn(sources: SettingSources, { option, settings, tlsScheme }: OwnSettings, url: string): object {
  const values = Object.entries(settings).map(([name, { option: field = '' }]) => [
    field.slice(option.length + 1),
    read(sources, name as SettingName),
  ]);
  if (tlsScheme === undefined || url.startsWith(`${tlsScheme}:`))
    return { ...Object.fromEntries(values), ...(tlsScheme && readTlsFiles(sources, option)) };
  const useless = tlsFile(sources, option);
  if (useless) refuse(useless, `a store of ${tlsScheme}:// with it (nothing is encrypted without)`);
  return Object.fromEntries(values);
}
