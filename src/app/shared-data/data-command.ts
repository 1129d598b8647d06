import type {
  DataReport,
  DatumHead,
  DatumReport,
  Kind,
  Scalar,
} from '../../zookeeper/shared-data/data-report.js';
import { isEntry, parsed, presentDatum, removeEntry, writeEntry } from '../../zookeeper/shared-data/edit.js';
import { checkAddress, checkRoot, titleOf } from '../../zookeeper/shared-data/layout.js';
import { readSharedData, type SharedDataQuery } from '../../zookeeper/shared-data/report.js';
import { type SharedData, sharedData } from '../../zookeeper/shared-data/shared-data.js';
import { SharedDataError } from '../../zookeeper/shared-data/shared-data-error.js';
import { type Answer, answer, type Cell, type Column, complain, sayValue } from '../kit/answer.js';
import { onZooKeeper, type ZooKeeperCall } from '../kit/call.js';
import { ExitCode } from '../kit/io.js';
import { someOf } from '../kit/terminal/text.js';

/** The options as they are on the command line. */
interface DataCommandOptions {
  readonly root: string;
  readonly scope?: string;
  readonly kind?: Kind;
  readonly type?: string;
  readonly keyType?: string;
}

export type DataCall = ZooKeeperCall<DataCommandOptions>;

/** `nodelease data ls`: shows what data there is, znodes that hold none included. */
export function ls(call: DataCall): Promise<number> {
  const { scope, kind } = checkOptions(call.options);
  const isMeant = (head: DatumHead) =>
    (scope ?? head.scope) === head.scope && (kind ?? head.kind) === head.kind;
  return onReport(call, { only: isMeant }, (report) => {
    const { zookeeper, root } = report;
    const data = report.data.map(summaryOf);
    return answer(call, {
      report: { ...report, data },
      empty: data.length === 0 ? `There is no such shared data at ${root} of ${zookeeper}.` : undefined,
      tables: [[LIST_COLUMNS, data.map(listRow)]],
      lines: [`${data.length === 1 ? '1 datum' : `${data.length} data`} at ${root} of ${zookeeper}`],
    });
  });
}

/** `nodelease data get NAME [KEY]`: prints a value as it is, or a collection as a table. */
export function get(call: DataCall, name: string, key?: string): Promise<number> {
  const { options, io } = call;
  const { scope = '', type } = checkOptions(options, name);
  return onReport(call, { address: { name, scope }, key }, ({ zookeeper, root, data: [datum] }) => {
    const title = titleOf({ name, scope });
    const entries =
      datum?.entries.filter((entry) => key === undefined || isEntry(entry, { value: key, type })) ?? [];
    const [only] = entries;
    if (datum === undefined || (key !== undefined && only === undefined)) {
      complain(
        io,
        datum
          ? `${title} has no entry ${JSON.stringify(key)}`
          : `there is no ${title} at ${root} of ${zookeeper}`,
      );
      return ExitCode.nothing;
    }
    const isValue = entries.length === 1 && (key !== undefined || datum.kind === 'scalar');
    if (isValue && only?.scalar && !options.json) {
      sayValue(io, only.scalar.value);
      return ExitCode.ok;
    }
    return answer(call, {
      report: { zookeeper, root, ...(key === undefined ? { data: [datum] } : { entries }) },
      ...entryTable({ ...datum, entries }),
    });
  });
}

/** `nodelease data set NAME VALUE`. */
export const set = (call: DataCall, name: string, value: string) => write(call, name, 'scalar', value);

/** `nodelease data put NAME KEY VALUE`. */
export const put = (call: DataCall, name: string, key: string, value: string) =>
  write(call, name, 'map', value, key);

/** `nodelease data add NAME VALUE`. */
export const add = (call: DataCall, name: string, value: string) => write(call, name, undefined, value);

/** @param kind undefined for a set or list, whichever it is */
function write(
  call: DataCall,
  name: string,
  kind: Kind | undefined,
  text: string,
  keyText?: string,
): Promise<number> {
  const { options } = call;
  const value = parsed({ type: options.type ?? 'String', value: text }, 'value');
  const key =
    keyText === undefined ? undefined : parsed({ type: options.keyType ?? 'String', value: keyText }, 'key');
  return changed(call, name, kind ? 'written' : 'added', async (shared, scope, signal) => {
    const found = async () => (await presentDatum(shared, { name, scope }, '', { signal }))?.kind;
    const isList = kind === undefined && (options.kind ?? (await found())) === 'list';
    return writeEntry(
      shared,
      { name, scope, kind: kind ?? (isList ? 'list' : 'set'), key, value },
      { signal },
    );
  });
}

/** `nodelease data rm NAME [KEY]`: exit code 1 where there is none. */
export function rm(call: DataCall, name: string, key?: string): Promise<number> {
  const { type } = call.options;
  return changed(call, name, 'removed', (shared, scope, signal) =>
    key === undefined
      ? shared.remove(name, { scope, signal })
      : removeEntry(shared, { name, scope, entry: { value: key, type } }, { signal }),
  );
}

/** @throws {ConfigError} for an option that no data could have */
export function checkOptions(options: DataCommandOptions, name?: string): DataCommandOptions {
  const { root, scope = '' } = options;
  checkRoot(root, '--root');
  if (name !== undefined) checkAddress({ name, scope });
  return options;
}

/** Reads what is meant, and lets `show` answer with it. */
function onReport(
  call: DataCall,
  query: Pick<SharedDataQuery, 'address' | 'only' | 'key'>,
  show: (report: DataReport) => number,
): Promise<number> {
  const { options, settings } = call;
  const where = { connect: settings.zookeeper.connect.text, root: options.root };
  return onZooKeeper(call, async (zookeeper, signal) =>
    show(await readSharedData(zookeeper, { ...where, ...query }, signal)),
  );
}

/** Makes a change, and says it. What cannot be done to this data is a wrong call. */
function changed(
  call: DataCall,
  name: string,
  done: string,
  change: (shared: SharedData, scope: string, signal: AbortSignal) => Promise<boolean>,
): Promise<number> {
  const { io } = call;
  const { root, scope = '' } = checkOptions(call.options, name);
  return onZooKeeper(call, async (zookeeper, signal) => {
    const shared = sharedData(zookeeper, { root, clock: io.clock, random: io.random });
    try {
      if (!(await change(shared, scope, signal))) {
        complain(io, `${titleOf({ name, scope })}: there is no such entry at ${root}`);
        return ExitCode.nothing;
      }
    } catch (error) {
      const isWrong =
        error instanceof SharedDataError &&
        ['kind-clash', 'owned-by-other', 'ambiguous'].includes(error.fault);
      if (!isWrong) throw error;
      complain(io, `${error.message} [${error.code}]`);
      return ExitCode.usage;
    } finally {
      await shared.close();
    }
    return answer(call, { report: { root, name, scope, state: done }, lines: [done] });
  });
}

/** A datum as one line: what its entries have in common, and what is wrong with them. */
function summaryOf({ entries, ...datum }: DatumReport) {
  const types = [...new Set(entries.flatMap(({ scalar }) => scalar?.type ?? []))].sort();
  const owners = [...new Set(entries.flatMap(({ owner, node }) => node ?? owner ?? []))].sort();
  const collisions = entries.filter(({ place }) => place !== null && place > 0).length;
  const problems = [...new Set([datum.problem, ...entries.map(({ problem }) => problem)])].filter(
    (problem) => problem !== null,
  );
  return { ...datum, types, owners, collisions, problems };
}

const LIST_COLUMNS: readonly Column[] = [
  ['NAME', 12],
  ['SCOPE', 5],
  'KIND',
  'LIFESPAN',
  ['ENTRIES', 'right'],
  ['BYTES', 'right'],
  ['TYPE', 7],
  ['COLLIDE', 'right'],
  ['OWNER', 8],
  ['PROBLEM', 16],
];

function listRow(datum: ReturnType<typeof summaryOf>): Cell[] {
  const { path, name, scope, kind, lifespan, size, bytes, types, owners, collisions, problems } = datum;
  return [
    name ?? [path, 'dim'],
    scope ?? '',
    kind ?? 'unknown',
    lifespan ?? '',
    `${size}`,
    `${bytes}`,
    types.join(','),
    `${collisions || ''}`,
    [someOf(owners), 'dim'],
    [someOf(problems), 'red'],
  ];
}

const ENTRY_COLUMNS: readonly Column[] = [
  ['KEY', 12],
  ['VALUE', 12],
  'TYPE',
  ['PLACE', 'right'],
  ['OWNER', 8],
  ['PROBLEM', 16],
];

/** The entries of one datum: the place is that in the collision chain. */
function entryTable(datum: DatumReport): Pick<Answer, 'tables' | 'lines'> {
  const { kind, lifespan, path, problem, entries } = datum;
  const typed = (key: Scalar | null) =>
    key === null ? '' : kind === 'list' || key.type === 'String' ? key.value : `${key.value} (${key.type})`;
  const rows = entries.map(({ path, key, scalar, place, owner, node, problem }): Cell[] => [
    scalar === null ? path : typed(key),
    scalar?.value ?? '',
    scalar?.type ?? '',
    [`${place ?? ''}`, place ? 'yellow' : 'dim'],
    [node ?? owner ?? '', 'dim'],
    [problem ?? '', 'red'],
  ]);
  const head = `${lifespan ?? ''} ${kind ?? 'unknown'} at ${path}: ${entries.length === 1 ? '1 entry' : `${entries.length} entries`}`;
  return {
    tables: [[ENTRY_COLUMNS, rows]],
    lines: [`${head}${problem === null ? '' : `; ${problem}`}`.trim()],
  };
}
