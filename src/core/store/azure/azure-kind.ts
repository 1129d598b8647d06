import { parsePrefix, type StoreKind, splitPath } from '../store-kind.js';
import type { AzureStoreOptions } from './open-azure-store.js';

/** A container of Azure Blob Storage, and the part of it below `prefix`. */
export const AZURE: StoreKind<AzureStoreOptions> = {
  schemes: ['azblob'],
  form: 'azblob://account/container/prefix',
  endpoint: 'another cloud of Azure',
  cloudPrices: 'Blob Storage, hot and locally redundant, East US',

  parse(text, { fail }) {
    const [account, path] = splitPath(text);
    const [container, rest] = splitPath(path);
    if (!/^[a-z0-9]{3,24}$/.test(account))
      fail('a storage account of 3 to 24 lower-case letters and digits after azblob://');
    if (!isContainer(container))
      fail(`a container of 3 to 63 lower-case letters, digits and single hyphens in ${AZURE.form}`);
    // The SDK would write it as a slash.
    if (rest.includes('\\')) fail(`a prefix without backslashes in ${AZURE.form}`);
    return { account, container, prefix: parsePrefix(rest, AZURE.form, fail) };
  },

  open: async (options) => (await import('./open-azure-store.js')).openAzureStore(options),
};

/**
 * https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
 */
function isContainer(name: string): boolean {
  return name.length >= 3 && name.length <= 63 && /^[a-z0-9]+(-[a-z0-9]+)*$/.test(name);
}
