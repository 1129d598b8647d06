import { explain } from '../../core/base/errors.js';
import type { CopyMode } from '../../core/data-dir/copy-tree.js';
import type { DataDirEvent } from '../../core/data-dir/data-dir-options.js';
import type { Logger } from '../kit/log/logger.js';
import { pluralize } from '../kit/terminal/text.js';

const HOW: Readonly<Record<CopyMode, string>> = {
  link: 'by links',
  clone: 'by copies that share their blocks',
  copy: 'by copies',
};

/** A listener that logs one line per event. */
export function dataDirLog(log: Pick<Logger, 'info' | 'warn'>): (event: DataDirEvent) => void {
  return (event) => {
    switch (event.type) {
      case 'progress': {
        const { path, files, bytes, of } = event;
        return log.info(
          { files, bytes, of },
          `preparing ${path}: ${files} of ${pluralize(of.files, 'file')}`,
        );
      }
      case 'prepared': {
        const { path, from, mode, files, bytes, tookMs } = event;
        const how = from === null ? 'empty' : `from version ${from} ${HOW[mode]}`;
        return log.info({ from, mode, files, bytes, tookMs: Math.round(tookMs) }, `prepared ${path}, ${how}`);
      }
      case 'removed':
        return log.info(`removed ${event.path}`);
      case 'looks-local':
        return log.warn(
          `${event.path} is on ${event.fileSystem}, which only this host has: a version there may be older than another host's; share the file system, or use --data-local with --sticky`,
        );
      case 'not-removed':
        return log.warn(`${event.path} could not be removed: ${explain(event.error)}`);
    }
  };
}
