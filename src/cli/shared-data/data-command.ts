import { ConfigError } from '../../base/errors.js';
import {
  type DataEntry,
  type DatumHead,
  type DatumReport,
  readSharedData,
  type SharedDataQuery,
  type SharedDataReport,
} from '../../monitor/shared-data-report.js';
import { checkAddress, KINDS } from '../../shared-data/layout.js';
import type { Scalar } from '../../shared-data/scalar-codec.js';
import { pathProblem } from '../../zookeeper/znode-path.js';
import { complain, say, sayJson, sayLines } from '../commands/store-command.js';
import { onZooKeeper, type ZooKeeperCommandSettings } from '../commands/zookeeper-command.js';
import { ExitCode } from '../exit-codes.js';
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

/** `nodelease data ls`: shows what data there is, znodes that hold none included. Resolves to the exit code. */
export function listDataCommand(options: DataCommandOptions, settings: ZooKeeperCommandSettings, io: Io): Promise<number> {
  const { json, scope, kind } = checkOptions(options);
  const isMeant = (head: DatumHead) => (scope ?? head.scope) === head.scope && (kind ?? head.kind) === head.kind;
  return onReport({ only: isMeant }, options, settings, io, (report) => {
    const { zookeeper, root, data } = report;
    if (json) sayJson(io, { ...report, data: data.map(summaryOf) });
    else if (data.length === 0) say(io, `There is no such shared data at ${root} of ${zookeeper}.`);
    else {
      const count = `${pluralize(data.length, 'datum').replace('datums', 'data')} at ${root} of ${zookeeper}`;
      sayLines(io, [...renderTable(LIST_COLUMNS, data.map(listRow), io.screen()), '', printable(count)]);
    }
    return ExitCode.ok;
  });
}

/** `nodelease data get NAME [KEY]`: prints a value as it is, or a collection as a table. Resolves to the exit code. */
export function getDataCommand(
  name: string,
  key: string | undefined,
  options: DataCommandOptions,
  settings: ZooKeeperCommandSettings,
  io: Io,
): Promise<number> {
  const { json } = checkOptions(options, name);
  return onReport({ only: isNamed(name, options), key }, options, settings, io, ({ zookeeper, root, data }) => {
    const entries = data.map(({ entries, ...head }) => ({ ...head, entries: entries.filter((entry) => isEntry(entry, key, options)) }));
    const found = entries.filter((datum) => key === undefined || datum.entries.length > 0);
    const values = found.flatMap((datum) => (key === undefined && datum.kind !== 'scalar' ? [] : datum.entries));
    const [only] = values;
    if (found.length === 0) {
      const what = `${titleOf(name, options.scope)}${key === undefined || data.length === 0 ? '' : ` has no entry ${JSON.stringify(key)}`}`;
      complain(io, data.length === 0 ? `there is no ${what} at ${root} of ${zookeeper}` : what);
      return ExitCode.nothing;
    }
    if (json) sayJson(io, key === undefined ? { zookeeper, root, data: found } : { zookeeper, root, entries: values });
    else if (values.length === 1 && only?.scalar && found.length === 1) {
      // As it is, for scripts; a terminal might take it for commands.
      if (io.screen()) say(io, only.scalar.value);
      else io.stdout(`${only.scalar.value}\n`);
    } else
      sayLines(
        io,
        found.flatMap((datum) => entryTable(datum, io)),
      );
    return ExitCode.ok;
  });
}

/** @throws {ConfigError} for an option that no data could have */
export function checkOptions(options: DataCommandOptions, name?: string): DataCommandOptions {
  const { root, scope = '', kind } = options;
  const problem = root === '/' ? 'it is the root of the servers' : pathProblem(root);
  if (problem !== undefined) throw new ConfigError('--root', root, `an absolute path of ZooKeeper, such as /monastery/root (${problem})`);
  if (kind !== undefined && !KINDS.some((each) => each === kind)) throw new ConfigError('--kind', kind, `one of ${KINDS.join(', ')}`);
  if (name !== undefined) checkAddress({ name, scope });
  return options;
}

/** What `--scope` and the name mean. */
export function isNamed(name: string, { scope = '' }: DataCommandOptions): (head: DatumHead) => boolean {
  return (head) => head.name === name && head.scope === scope;
}

/** Whether an entry is the one that was asked for by its text, and its type where that is given. */
export function isEntry({ key, scalar }: DataEntry, text: string | undefined, { type }: DataCommandOptions): boolean {
  const named = key ?? scalar;
  return text === undefined || (named?.value === text && (type === undefined || named.type === type));
}

/** For messages. */
export function titleOf(name: string, scope = ''): string {
  return `shared data ${JSON.stringify(name)}${scope === '' ? '' : ` of scope ${JSON.stringify(scope)}`}`;
}

/** Reads what is meant, and lets `answer` tell it. */
function onReport(
  query: Pick<SharedDataQuery, 'only' | 'key'>,
  { root }: DataCommandOptions,
  settings: ZooKeeperCommandSettings,
  io: Io,
  answer: (report: SharedDataReport) => number,
): Promise<number> {
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    return answer(await readSharedData(zookeeper, { connect: settings.zookeeper.connect.text, root, ...query }, signal));
  });
}

/** A datum as one line: what its entries have in common, and what is wrong with them. */
function summaryOf({ entries, ...datum }: DatumReport) {
  const types = [...new Set(entries.flatMap(({ scalar }) => scalar?.type ?? []))].sort();
  const owners = [...new Set(entries.flatMap(({ owner, node }) => node ?? owner ?? []))].sort();
  const collisions = entries.filter(({ place }) => place !== null && place > 0).length;
  const problems = [...new Set([datum.problem, ...entries.map(({ problem }) => problem)])].filter((problem) => problem !== null);
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
  const { path, name, scope, kind, lifespan, size, bytes, types, owners, collisions, problems } = summaryOf(report);
  const texts = [scope ?? '', kind ?? 'unknown', lifespan ?? '', String(size), String(bytes), types.join(','), String(collisions || '')];
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
  return [...renderTable(ENTRY_COLUMNS, rows, io.screen()), '', printable(`${head}${problem === null ? '' : `; ${problem}`}`.trim())];
}
