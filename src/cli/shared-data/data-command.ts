import { ConfigError } from '../../base/errors.js';
import { isEntry, isNamed, parsed, removeEntry, writeEntry } from '../../shared-data/edit.js';
import { checkAddress, checkRoot, KINDS, type Kind, titleOf } from '../../shared-data/layout.js';
import {
  type DatumHead,
  type DatumReport,
  readSharedData,
  type SharedDataQuery,
  type SharedDataReport,
} from '../../shared-data/report.js';
import type { Scalar } from '../../shared-data/scalar-codec.js';
import { type SharedData, sharedData } from '../../shared-data/shared-data.js';
import { SharedDataError } from '../../shared-data/shared-data-error.js';
import { ExitCode } from '../exit-codes.js';
import { onZooKeeper, type ZooKeeperCommandSettings } from '../kit/on-zookeeper.js';
import { complain, say, sayJson, sayLines } from '../kit/reported.js';
import type { Io } from '../terminal/io.js';
import { type Cell, type Column, renderTable } from '../terminal/table.js';
import { pluralize, printable, someOf } from '../terminal/text.js';

/** The options as they stand on the command line. */
export interface DataCommandOptions {
  readonly root: string;
  readonly scope?: string;
  readonly kind?: string;
  readonly type?: string;
  readonly keyType?: string;
  readonly json?: boolean;
}

/** One call of a command of the group `data`. */
export interface DataCall {
  readonly options: DataCommandOptions;
  readonly settings: ZooKeeperCommandSettings;
  readonly io: Io;
}

/**
 * `nodelease data ls`: shows what data there is, znodes that hold none included. Resolves to the exit code.
 */
export function listDataCommand(call: DataCall): Promise<number> {
  const { options, io } = call;
  const { scope, kind } = checkOptions(options);
  const isMeant = (head: DatumHead) =>
    (scope ?? head.scope) === head.scope && (kind ?? head.kind) === head.kind;
  return onReport(call, { only: isMeant }, (report) => {
    const { zookeeper, root, data } = report;
    if (options.json) sayJson(io, { ...report, data: data.map(summaryOf) });
    else if (data.length === 0) say(io, `There is no such shared data at ${root} of ${zookeeper}.`);
    else {
      const count = `${pluralize(data.length, 'datum').replace('datums', 'data')} at ${root} of ${zookeeper}`;
      sayLines(io, [...renderTable(LIST_COLUMNS, data.map(listRow), io.screen()), '', printable(count)]);
    }
    return ExitCode.ok;
  });
}

/**
 * `nodelease data get NAME [KEY]`: prints a value as it is, or a collection as a table. Resolves to the exit
 * code.
 */
export function getDataCommand(call: DataCall, name: string, key: string | undefined): Promise<number> {
  const { options, io } = call;
  const { scope = '', type } = checkOptions(options, name);
  return onReport(call, { only: isNamed(name, scope), key }, ({ zookeeper, root, data: [datum] }) => {
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
    if (options.json)
      sayJson(io, key === undefined ? { zookeeper, root, data: [datum] } : { zookeeper, root, entries });
    else if (only?.scalar && entries.length === 1 && (key !== undefined || datum.kind === 'scalar')) {
      // As it is, for scripts; a terminal might take it for commands.
      if (io.screen()) say(io, only.scalar.value);
      else io.stdout(`${only.scalar.value}\n`);
    } else sayLines(io, entryTable({ ...datum, entries }, io));
    return ExitCode.ok;
  });
}

/**
 * `nodelease data set`, `put` and `add`.
 * @param kind undefined for a set or list, whichever it is. Resolves to the exit code
 */
export function writeDataCommand(
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
  const isElement = options.kind === undefined || options.kind === 'set' || options.kind === 'list';
  if (!isElement) throw new ConfigError('--kind', options.kind, 'set or list');
  return changed(call, name, kind ? 'written' : 'added', async (shared, scope, signal) => {
    const found = async () =>
      (await report(shared, { only: isNamed(name, scope), key: '' }, signal)).data[0]?.kind;
    const isList = kind === undefined && (options.kind ?? (await found())) === 'list';
    return writeEntry(
      shared,
      { name, scope, kind: kind ?? (isList ? 'list' : 'set'), key, value },
      { signal },
    );
  });
}

/** `nodelease data rm NAME [KEY]`: exit code 1 where there is none. */
export function removeDataCommand(call: DataCall, name: string, key: string | undefined): Promise<number> {
  const { type } = call.options;
  return changed(call, name, 'removed', (shared, scope, signal) =>
    key === undefined
      ? shared.remove(name, { scope, signal })
      : removeEntry(shared, { name, scope, entry: { value: key, type } }, { signal }),
  );
}

/** @throws {ConfigError} for an option that no data could have */
export function checkOptions(options: DataCommandOptions, name?: string): DataCommandOptions {
  const { root, scope = '', kind } = options;
  checkRoot(root, '--root');
  if (kind !== undefined && !KINDS.some((each) => each === kind))
    throw new ConfigError('--kind', kind, `one of ${KINDS.join(', ')}`);
  if (name !== undefined) checkAddress({ name, scope });
  return options;
}

/** Reads what is meant, and lets `answer` tell it. */
function onReport(
  { options: { root }, settings, io }: DataCall,
  query: Pick<SharedDataQuery, 'only' | 'key'>,
  answer: (report: SharedDataReport) => number,
): Promise<number> {
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    return answer(
      await readSharedData(zookeeper, { connect: settings.zookeeper.connect.text, root, ...query }, signal),
    );
  });
}

function report(
  { root, context }: SharedData,
  query: Pick<SharedDataQuery, 'only' | 'key'>,
  signal: AbortSignal,
) {
  return readSharedData(context.zookeeper, { connect: '', root, ...query }, signal);
}

/** Makes a change, and says it. What cannot be done to this data is a wrong call. */
function changed(
  { options, settings, io }: DataCall,
  name: string,
  done: string,
  change: (shared: SharedData, scope: string, signal: AbortSignal) => Promise<boolean>,
): Promise<number> {
  const { root, scope = '', json } = checkOptions(options, name);
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
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
      complain(io, error.message);
      return ExitCode.usage;
    } finally {
      await shared.close();
    }
    if (json) sayJson(io, { root, name, scope, state: done });
    else say(io, done);
    return ExitCode.ok;
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
  { title: 'NAME', minWidth: 12 },
  { title: 'SCOPE', minWidth: 5 },
  { title: 'KIND' },
  { title: 'LIFESPAN' },
  { title: 'ENTRIES', align: 'right' },
  { title: 'BYTES', align: 'right' },
  { title: 'TYPE', minWidth: 7 },
  { title: 'COLLIDE', align: 'right' },
  { title: 'OWNER', minWidth: 8 },
  { title: 'PROBLEM', minWidth: 16 },
];

function listRow(report: DatumReport): Cell[] {
  const { path, name, scope, kind, lifespan, size, bytes, types, owners, collisions, problems } =
    summaryOf(report);
  const texts = [
    scope ?? '',
    kind ?? 'unknown',
    lifespan ?? '',
    String(size),
    String(bytes),
    types.join(','),
    String(collisions || ''),
  ];
  return [
    { text: name ?? path, color: name === null ? 'dim' : undefined },
    ...texts.map((text) => ({ text })),
    { text: someOf(owners), color: 'dim' },
    { text: someOf(problems), color: 'red' },
  ];
}

const ENTRY_COLUMNS: readonly Column[] = [
  { title: 'KEY', minWidth: 12 },
  { title: 'VALUE', minWidth: 12 },
  { title: 'TYPE' },
  { title: 'PLACE', align: 'right' },
  { title: 'OWNER', minWidth: 8 },
  { title: 'PROBLEM', minWidth: 16 },
];

/** The entries of one datum: the place is that in the collision chain. */
function entryTable(datum: DatumReport, io: Io): string[] {
  const { kind, lifespan, path, problem, entries } = datum;
  const typed = (key: Scalar | null) =>
    key === null ? '' : kind === 'list' || key.type === 'String' ? key.value : `${key.value} (${key.type})`;
  const rows = entries.map(({ path, key, scalar, place, owner, node, problem }): Cell[] => [
    { text: scalar === null ? path : typed(key) },
    { text: scalar?.value ?? '' },
    { text: scalar?.type ?? '' },
    { text: place === null ? '' : String(place), color: place ? 'yellow' : 'dim' },
    { text: node ?? owner ?? '', color: 'dim' },
    { text: problem ?? '', color: 'red' },
  ]);
  const head = `${lifespan ?? ''} ${kind ?? 'unknown'} at ${path}: ${entries.length === 1 ? '1 entry' : `${entries.length} entries`}`;
  return [
    ...renderTable(ENTRY_COLUMNS, rows, io.screen()),
    '',
    printable(`${head}${problem === null ? '' : `; ${problem}`}`.trim()),
  ];
}
