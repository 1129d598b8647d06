import { join } from 'node:path';
import { explain } from '../../core/base/errors.js';
import { leftoversIn, removeVersion } from '../../core/data-dir/collect.js';
import { toDataDirError } from '../../core/data-dir/data-dir-error.js';
import { checkRoot, DEFAULT_RETENTION } from '../../core/data-dir/data-dir-options.js';
import { HeldTree } from '../../core/data-dir/held-tree.js';
import {
  nodeDirOf,
  nodeIdsIn,
  obsoleteOf,
  type VersionDir,
  versionsIn,
} from '../../core/data-dir/versions.js';
import { answer, type Column, fail } from '../kit/answer.js';
import { type Call, reported } from '../kit/call.js';
import { ExitCode } from '../kit/io.js';

/** The facts of a version, in the order of the columns. */
type Row = Readonly<Record<string, string | number | null>>;

const COLUMNS: readonly Column[] = [
  ['NODEID', 'right'],
  ['VERSION', 'right'],
  'STATE',
  ['FROM', 'right'],
  'MADE',
  'RESULT',
  'WHY',
];

/**
 * Shows every version of every node id, the newest first. `gc` removes what a task would that has just made
 * the newest valid version. It holds no lease, so it touches nothing above that
 * version: its maker may be at work. Resolves to 69 when something could not be removed.
 */
const dataDirs =
  (verb: 'ls' | 'gc') =>
  (call: Call, root: string): Promise<number> => {
    const { io } = call;
    const { dataRetention: retention = DEFAULT_RETENTION } = call.settings;
    return reported(call, async () => {
      await checkRoot(root, 'ROOT', verb === 'ls' ? 'read' : 'write');
      const versions: Row[] = [];
      const tree = new HeldTree(root);
      let allRemoved = true;
      const remove = async (path: string): Promise<string> => {
        try {
          await removeVersion(tree, path);
          return 'removed';
        } catch (error) {
          fail(io, 'DATA_DIR_FAILED', `${join(root, path)} could not be removed: ${explain(error)}`);
          allRemoved = false;
          return 'not removed';
        }
      };
      try {
        for (const nodeId of await nodeIdsIn(root)) {
          const nodeDir = nodeDirOf(nodeId);
          const dirs = await versionsIn(tree, nodeDir);
          const obsolete = obsoleteOf(dirs, retention);
          if (verb === 'gc') for (const leftover of await leftoversIn(tree, nodeDir)) await remove(leftover);
          for (const dir of dirs) {
            const goes = obsolete.includes(dir);
            const result = !goes ? 'kept' : verb === 'ls' ? 'obsolete' : await remove(dir.path);
            versions.push({ nodeId, ...factsOf(dir), result, why: why(dir, goes, retention) });
          }
        }
      } catch (error) {
        throw toDataDirError(error, `${root} cannot be looked through`);
      }
      answer(call, {
        report: { root, retention, versions },
        empty: versions.length === 0 ? 'no data directories' : undefined,
        tables: [[COLUMNS, versions.map((row) => Object.values(row).map((fact) => String(fact ?? '')))]],
      });
      return allRemoved ? ExitCode.ok : ExitCode.storeUnusable;
    });
  };

/** `nodelease data-dir ls ROOT`. */
export const listDataDirs = dataDirs('ls');
/** `nodelease data-dir gc ROOT`. */
export const cleanDataDirs = dataDirs('gc');

function why(dir: VersionDir, goes: boolean, retention: number): string {
  if (dir.state === 'foreign') return dir.problem;
  if (dir.state === 'unfinished') return goes ? 'a newer version is complete' : 'its maker may be at work';
  return `${goes ? 'not ' : ''}one of the newest valid ones (${retention})`;
}

function factsOf(dir: VersionDir): Row {
  const { version, state } = dir;
  const marker = dir.state === 'valid' ? dir.marker : undefined;
  return {
    version,
    state,
    from: marker?.initializedFrom ?? null,
    made: marker ? new Date(marker.initializedAt).toISOString() : null,
  };
}
