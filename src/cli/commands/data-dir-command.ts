import { explain } from '../../base/errors.js';
import { removeLeftovers, removeVersion } from '../../data-dir/collect.js';
import { planCopy } from '../../data-dir/copy-plan.js';
import { toDataDirError } from '../../data-dir/data-dir-error.js';
import { checkRoot, DEFAULT_RETENTION } from '../../data-dir/data-dir-options.js';
import { nodeDirOf, nodeIdsIn, obsoleteOf, type VersionDir, versionsIn } from '../../data-dir/versions.js';
import type { Settings } from '../../settings/settings.js';
import { ExitCode } from '../exit-codes.js';
import type { Io } from '../terminal/io.js';
import { renderTable } from '../terminal/table.js';
import { complain, reported, sayJson, sayLines } from './store-command.js';

/** The facts of a version, by the titles of their columns. */
type Row = Readonly<Record<string, string | number | null>>;

/** `nodelease data-dir ls ROOT`: every version of every node id, the newest first. A linked file is counted in each version that has it. */
export function listDataDirsCommand(root: string, { json = false }: { json?: boolean }, settings: Settings, io: Io): Promise<number> {
  return reported(settings, io, async () => {
    await checkRoot(root, 'ROOT', 'read');
    const versions = await forEachNode(root, (dirs) => Promise.all(dirs.map(factsOf)));
    if (json) sayJson(io, { root, versions });
    else sayTable(versions, io);
    return ExitCode.ok;
  });
}

/**
 * `nodelease data-dir gc ROOT`: removes what a task would that has just made the newest valid version. It holds no lease, so it touches nothing above
 * that version: its maker may be at work. Resolves to 69 when something could not be removed.
 */
export function collectDataDirsCommand(
  root: string,
  { json = false, dryRun = false }: { json?: boolean; dryRun?: boolean },
  settings: Settings,
  io: Io,
): Promise<number> {
  const { dataRetention: retention = DEFAULT_RETENTION } = settings;
  return reported(settings, io, async () => {
    await checkRoot(root, 'ROOT', 'write');
    const versions = await forEachNode(root, async (dirs, nodeDir) => {
      if (!dryRun) await removeLeftovers(nodeDir, () => undefined);
      const obsolete = obsoleteOf(dirs, retention);
      const rows: Row[] = [];
      for (const dir of dirs) {
        const goes = obsolete.includes(dir);
        const result = !goes ? 'kept' : dryRun ? 'would be removed' : await remove(dir, io);
        rows.push({ version: dir.version, state: dir.state, result, why: why(dir, goes, retention) });
      }
      return rows;
    });
    if (json) sayJson(io, { root, retention, dryRun, versions });
    else sayTable(versions, io);
    return versions.some(({ result }) => result === 'not removed') ? ExitCode.storeUnusable : ExitCode.ok;
  });
}

async function remove(dir: VersionDir, io: Io): Promise<'removed' | 'not removed'> {
  try {
    await removeVersion(dir, () => undefined);
    return 'removed';
  } catch (error) {
    complain(io, `${dir.path} could not be removed: ${explain(error)}`);
    return 'not removed';
  }
}

function why(dir: VersionDir, goes: boolean, retention: number): string {
  if (dir.state === 'foreign') return dir.problem;
  if (dir.state === 'unfinished') return goes ? 'a newer version is complete' : 'its maker may be at work';
  return goes ? `not one of the newest valid ones (${retention})` : `one of the newest valid ones (${retention})`;
}

async function factsOf(dir: VersionDir): Promise<Row> {
  const { version, state } = dir;
  if (state === 'foreign') return { version, state, from: null, made: null, files: null, bytes: null, problem: dir.problem };
  const { files, bytes } = await planCopy(
    dir.path,
    () => false,
    () => undefined,
  );
  const { initializedFrom: from, initializedAt } = state === 'valid' ? dir.marker : { initializedFrom: null, initializedAt: null };
  const made = initializedAt === null ? null : new Date(initializedAt).toISOString();
  return { version, state, from, made, files: files.length, bytes, problem: null };
}

/** The facts of all node ids, one after the other. */
async function forEachNode(
  root: string,
  work: (versions: readonly VersionDir[], nodeDir: string) => Promise<readonly Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  try {
    for (const nodeId of await nodeIdsIn(root)) {
      const nodeDir = nodeDirOf(root, nodeId);
      for (const row of await work(await versionsIn(nodeDir), nodeDir)) rows.push({ nodeId, ...row });
    }
  } catch (error) {
    throw toDataDirError(error, `${root} cannot be looked through`);
  }
  return rows;
}

function sayTable(rows: readonly Row[], io: Io): void {
  const titles = Object.keys(rows[0] ?? {});
  const isNumber = (title: string) => rows.some((row) => typeof row[title] === 'number');
  const columns = titles.map((title) => ({ title: title.toUpperCase(), align: isNumber(title) ? ('right' as const) : ('left' as const) }));
  const cells = rows.map((row) => titles.map((title) => ({ text: String(row[title] ?? '') })));
  sayLines(io, rows.length === 0 ? ['no data directories'] : renderTable(columns, cells, io.screen()));
}
