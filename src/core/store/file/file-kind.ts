import { fileURLToPath } from 'node:url';
import { checkPlain } from '../../base/plain-text.js';
import type { StoreKind } from '../store-kind.js';
import type { FileLeaseStoreOptions } from './file-lease-store.js';

/** A folder of this machine: relative to the working directory, or absolute. */
export const FILE: StoreKind<FileLeaseStoreOptions> = {
  schemes: ['file'],
  form: 'file:DIR',
  sharedBy: 'host',

  parse(text, { setting, fail }) {
    let directory = text;
    if (directory.startsWith('//')) {
      if (!directory.startsWith('///')) fail('file:DIR or file:///DIR, without a host');
      try {
        // Two slashes in front would be those of a host.
        directory = fileURLToPath(`file:${text}`).replace(/^\/+/, '/');
      } catch {
        fail('file:DIR or a well-formed file:///DIR');
      }
    }
    if (directory === '' || directory.includes('\0'))
      fail('a folder after file:, for example file:.nodelease');
    // What was encoded, too.
    checkPlain(directory, setting);
    return { url: `file:${directory}`, directory };
  },

  open: async (options) => new (await import('./file-lease-store.js')).FileLeaseStore(options),
};
