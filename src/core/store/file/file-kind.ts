import { fileURLToPath } from 'node:url';
import { checkPlain } from '../../base/arguments.js';
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
    // In one place a shell expands it, and in another it is the name of another cluster's folder.
    if (/^[~$]/.test(directory))
      fail('a folder without ~ or $ at its start, which only a shell expands (or file:./~…)');
    // What was encoded, too.
    checkPlain(directory, setting);
    return { url: `file:${directory}`, directory };
  },

  open: async (options) => new (await import('./file-lease-store.js')).FileLeaseStore(options),
};
