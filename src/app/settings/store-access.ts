import { refuse } from '../../core/settings/sources.js';
import type { StoreAccess } from '../../core/store/store-access.js';
import type { OwnSettings } from '../../core/store/store-kind.js';
import { listed, STORES, storeKindOf } from '../../core/store/stores.js';
import type { AllSettings, SettingName } from './settings-table.js';
import { readTlsFiles, tlsFile } from './tls-files.js';

/**
 * How to reach the store. Settings of other stores are of no use: flags are refused, variables may be there
 * for other programs.
 *
 * @throws {ConfigError} naming the setting as the user gave it, and what was expected
 */
export function readStoreAccess(all: AllSettings, url: string): StoreAccess {
  const { own, endpoint: takesEndpoint } = storeKindOf(url) ?? {};
  for (const { own: other, schemes } of STORES) {
    if (other === own) continue;
    const useless = all.firstFlag((_, name) => name in (other?.settings ?? {}));
    const expected = `a store of ${listed(schemes.map((scheme) => `${scheme}://`))} with it`;
    if (useless) refuse({ ...useless, text: '…' }, expected);
  }
  const server = all.find('endpoint');
  const endpoint = all.read('endpoint');
  if (server && takesEndpoint === undefined && (server.flag || !all.find('store')?.flag)) {
    const having = STORES.flatMap((kind) => (kind.endpoint ? [`${kind.schemes[0]}:`] : []));
    refuse(server, `no endpoint with the store ${url} (only ${listed(having, 'and')} have one)`);
  }
  return {
    endpoint: takesEndpoint && endpoint,
    region: all.read('region'),
    ...(own && { [own.option]: readOwn(all, own, url) }),
  };
}

/** The settings that the kind of store has alone, by the fields of its option. */
function readOwn(all: AllSettings, { option, settings, tlsScheme }: OwnSettings, url: string): object {
  const values = Object.entries(settings).map(([name, { option: field = '' }]) => [
    field.slice(option.length + 1),
    all.read(name as SettingName),
  ]);
  if (tlsScheme === undefined || url.startsWith(`${tlsScheme}:`))
    return { ...Object.fromEntries(values), ...(tlsScheme && readTlsFiles(all, option)) };
  const useless = tlsFile(all, option);
  if (useless) refuse(useless, `a store of ${tlsScheme}:// with it (nothing is encrypted without)`);
  return Object.fromEntries(values);
}
