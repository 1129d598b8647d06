import { refuse } from '../../core/settings/sources.js';
import type { StoreAccess } from '../../core/store/store-access.js';
import type { OwnSettings, StoreUrl } from '../../core/store/store-kind.js';
import { listed, STORES, storeKindOf } from '../../core/store/stores.js';
import type { AllSettings, SettingName } from './settings-table.js';
import { readTlsFiles, tlsFile } from './tls-files.js';

/**
 * How to reach the store. Settings of other stores are of no use: flags are refused, variables may be there
 * for other programs.
 *
 * @throws {ConfigError} naming the setting as the user gave it, and what was expected
 */
export function readStoreAccess(all: AllSettings, { url }: StoreUrl): StoreAccess {
  const { own, endpoint: takesEndpoint } = storeKindOf(url) ?? {};
  for (const { own: other, schemes } of STORES) {
    const useless = all.firstFlag((_, name) => other !== own && name in (other?.settings ?? {}));
    const stores = listed(schemes.map((scheme) => `${scheme}://`));
    if (useless) refuse({ ...useless, text: '…' }, `a store of ${stores} with it`);
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
  const isSecure = tlsScheme !== undefined && url.startsWith(`${tlsScheme}:`);
  const useless = isSecure ? undefined : tlsFile(all, option);
  if (useless) refuse(useless, `a store of ${tlsScheme}:// with it (nothing is encrypted without)`);
  const names = Object.keys(settings).filter((name) => settings[name]?.verbatim !== 'option');
  const values = names.map((name) => [name.slice(option.length + 1), all.read(name as SettingName)]);
  return { ...Object.fromEntries(values), ...(isSecure && readTlsFiles(all, option)) };
}
