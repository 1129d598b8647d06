import type { HeldNode, HoldOptions } from '../../node/runtime/hold-node.js';
import type { Logger } from '../kit/log/logger.js';
import type { Settings } from '../settings/settings.js';

/**
 * What a node id is held with: its data directory, whose preparation is logged.
 *
 * @param heldForOthers whether other processes work with the node id: it is released while they may be ending,
 * and a file of theirs must not be the successor's, too
 * @throws {ConfigError} when the root cannot be used
 */
export async function ownHoldOptions(
  { dataDir }: Pick<Settings, 'dataDir'>,
  log: Logger,
  heldForOthers: boolean,
): Promise<Pick<HoldOptions, 'dataDir'>> {
  if (dataDir === undefined) return {};
  const { checkRoot } = await import('../../core/data-dir/data-dir-options.js');
  await checkRoot(dataDir.root, '--data-dir', 'write');
  const { dataDirLog } = await import('./data-dir-log.js');
  return { dataDir: { ...dataDir, copy: dataDir.copy || heldForOthers, onEvent: dataDirLog(log) } };
}

/** What a command finds of it in its environment. An inherited variable is of another node id. */
export function ownVariables({ dataDir, dataRestored }: Pick<HeldNode, 'dataDir' | 'dataRestored'>) {
  return dataDir === undefined ? {} : { NODE_DATA_DIR: dataDir, NODE_DATA_RESTORED: String(dataRestored) };
}
