import { type ConfigValue, readContexts } from '../../configuration/read-contexts.js';
import type { KeyChange } from '../../configuration/revision.js';
import { readSeen } from '../../configuration/seen-revisions.js';
import { complain, say, sayJson, sayLines } from '../commands/store-command.js';
import { ExitCode } from '../exit-codes.js';
import type { Screen } from '../terminal/io.js';
import { type Column, renderTable } from '../terminal/table.js';
import { pluralize, someOf } from '../terminal/text.js';
import { type ConfigCall, type ConfigWork, onConfig, revisionNumber } from './config-call.js';
import { fileFormat } from './file-formats.js';

/** `nodelease config ls`: the values, and which context each comes from. */
export function listConfig(call: ConfigCall): Promise<number> {
  return onConfig(call, async (work) => {
    const { values, revisions } = await valuesOf(call, work);
    const rows = [...values].map(([key, { value, context }]) => [key, value, context]);
    if (call.options.json) sayJson(call.io, { revisions, values: rows.map(([key, value, context]) => ({ key, value, context })) });
    else {
      const columns = [{ title: 'KEY', minWidth: 12 }, { title: 'VALUE', minWidth: 16 }, { title: 'CONTEXT' }];
      sayTable(call, columns, rows, `${pluralize(rows.length, 'key')} of ${revisionsText(revisions)}`);
    }
    return ExitCode.ok;
  });
}

/** `nodelease config get KEY`: prints the value; exit code 1 where the key is not set. */
export function getConfig(call: ConfigCall, key: string): Promise<number> {
  return onConfig(call, async (work) => {
    const found = (await valuesOf(call, work)).values.get(key);
    if (found === undefined) complain(call.io, `${key} is not set in ${work.contexts[0]}`);
    else if (call.options.json) sayJson(call.io, { key, ...found });
    else if (call.io.screen()) say(call.io, found.value);
    else call.io.stdout(`${found.value}\n`);
    return found === undefined ? ExitCode.nothing : ExitCode.ok;
  });
}

/** `nodelease config export`: prints the values in the format of a file. */
export function exportConfig(call: ConfigCall): Promise<number> {
  const format = fileFormat(call.options.format);
  return onConfig(call, async (work) => {
    const { values } = await valuesOf(call, work);
    call.io.stdout(format.format(new Map([...values].map(([key, { value }]) => [key, value]))));
    return ExitCode.ok;
  });
}

/** `nodelease config history`: the revisions of the most specific context, the newest first. */
export function configHistory(call: ConfigCall): Promise<number> {
  return onConfig(call, async ({ publisher, signal }) => {
    const revisions = await publisher.history(signal);
    if (call.options.json) sayJson(call.io, revisions);
    else {
      const columns: Column[] = [
        ...[{ title: 'REVISION', align: 'right' } as const, { title: 'AT' }, { title: 'AUTHOR', minWidth: 8 }],
        ...[
          { title: 'MESSAGE', minWidth: 12 },
          { title: 'KEYS', minWidth: 12 },
        ],
      ];
      const rows = revisions.map(({ revision, at, author, message, changes }) => [
        ...[String(revision), at, author, message],
        someOf(changes.map(({ key, nodes }) => (nodes === undefined ? key : `${key}@${nodes}`))),
      ]);
      sayTable(call, columns, rows, `${pluralize(rows.length, 'revision')} of ${publisher.context}`);
    }
    return ExitCode.ok;
  });
}

/** `nodelease config diff REV [REV]`: what was published between two revisions, or since one. */
export function configDiff(call: ConfigCall, from: string, to: string | undefined): Promise<number> {
  const [first, last] = [revisionNumber(from, 'REV'), to === undefined ? undefined : revisionNumber(to, 'REV')];
  return onConfig(call, async ({ publisher, signal }) => {
    const changes = await publisher.diff(first, last, signal);
    if (call.options.json) sayJson(call.io, changes);
    else sayTable(call, CHANGE_COLUMNS, changes.map(changeRow), `${pluralize(changes.length, 'key')} of ${publisher.context} differ`);
    return ExitCode.ok;
  });
}

/** `nodelease config status`: which revision each node runs, as far as nodes tell it. */
export function configStatus(call: ConfigCall): Promise<number> {
  return onConfig(call, async ({ contexts, place, signal }) => {
    const [{ revisions }, seen] = await Promise.all([
      readContexts(place, contexts, undefined, { signal }),
      readSeen(place, contexts[0], { signal }),
    ]);
    const nodes = seen.map((node) => ({
      ...node,
      behind: contexts.filter((each) => (node.revisions[each] ?? 0) < (revisions[each] ?? 0)),
    }));
    const late = nodes.filter(({ behind }) => behind.length > 0);
    if (call.options.json) sayJson(call.io, { revisions, nodes });
    else {
      const columns: Column[] = [
        { title: 'NODE ID', align: 'right' },
        { title: 'REVISION', align: 'right' },
        { title: 'SINCE' },
        { title: 'BEHIND IN' },
      ];
      const rows = nodes.map(({ nodeId, revisions: own, at, behind }) => [
        String(nodeId),
        String(own[contexts[0]] ?? 0),
        at,
        behind.join(' '),
      ]);
      sayTable(call, columns, rows, `${pluralize(nodes.length, 'node')}, ${late.length} behind, of ${revisionsText(revisions)}`);
    }
    return ExitCode.ok;
  });
}

/** The values that the options ask for: as a node has them, as all have them, or those of the most specific context alone. */
async function valuesOf({ options }: ConfigCall, { contexts, nodeId, nodes, place, publisher, signal }: ConfigWork) {
  const merged = await readContexts(place, options.own ? [contexts[0]] : contexts, nodeId, { signal });
  if (nodes === undefined) return merged;
  const { overrides } = await publisher.read(signal);
  const own = [...(overrides.get(nodes) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  const values = own.map(([key, value]): [string, ConfigValue] => [key, { value, context: `${publisher.context}@nodes=${nodes}` }]);
  return { ...merged, values: new Map(values) };
}

export const CHANGE_COLUMNS: readonly Column[] = [
  ...[{ title: 'KEY', minWidth: 12 }, { title: 'NODES' }, { title: 'OLD', minWidth: 12 }, { title: 'NEW', minWidth: 12 }],
];

/** An unset key is `-`, in quotes where that is the value. */
export const changeRow = ({ key, nodes = '', old, new: value }: KeyChange) => [key, nodes, orUnset(old), orUnset(value)];

const orUnset = (value: string | null) => (value === null ? '-' : value === '' || value === '-' ? `"${value}"` : value);

export const revisionsText = (revisions: Readonly<Record<string, number>>) =>
  Object.entries(revisions)
    .map(([context, revision]) => `${context} at revision ${revision}`)
    .join(', ');

/** A table where it has rows, and a line below it. */
export function sayTable({ io }: ConfigCall, columns: readonly Column[], rows: readonly (readonly string[])[], summary: string): void {
  const screen: Screen | undefined = io.screen();
  const cells = rows.map((row) => row.map((text) => ({ text })));
  if (rows.length > 0) sayLines(io, [...renderTable(columns, cells, screen), '']);
  say(io, summary);
}
