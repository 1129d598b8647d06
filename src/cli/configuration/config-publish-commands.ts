import { readFile } from 'node:fs/promises';
import { orAborted } from '../../base/abort.js';
import { ConfigError } from '../../base/errors.js';
import type { ContextState, WantedChange } from '../../configuration/publish.js';
import type { Revision } from '../../configuration/revision.js';
import { say, sayJson } from '../commands/store-command.js';
import { ExitCode, UsageError } from '../exit-codes.js';
import { pluralize } from '../terminal/text.js';
import { type ConfigCall, type ConfigWork, onConfig, parseAssignment, revisionNumber } from './config-call.js';
import { fileFormat } from './file-formats.js';

type Wanted = (state: ContextState) => readonly WantedChange[];

/** `nodelease config set KEY=VALUE…`: publishes the values together. */
export function setConfig(call: ConfigCall, assignments: readonly string[]): Promise<number> {
  const values = assignments.map(parseAssignment);
  return published(
    call,
    async ({ nodes }) =>
      () =>
        values.map(([key, value]) => ({ key, nodes, new: value })),
  );
}

/** `nodelease config unset KEY…`; with `--nodes` and without keys, all overrides of these nodes. */
export function unsetConfig(call: ConfigCall, keys: readonly string[]): Promise<number> {
  if (keys.length === 0 && call.options.nodes === undefined)
    throw new UsageError('expected the keys to unset, or --nodes to unset all overrides');
  return published(call, async ({ nodes }) => (state) => {
    const all = keys.length > 0 ? keys : [...(state.overrides.get(nodes ?? '')?.keys() ?? [])];
    return all.map((key) => ({ key, nodes, new: null }));
  });
}

/** `nodelease config import FILE`: publishes what the file has; with `--replace`, unsets all other keys of the context. */
export function importConfig(call: ConfigCall, file: string): Promise<number> {
  const format = fileFormat(call.options.format, file);
  return published(call, async ({ nodes, signal }) => {
    const values = format.parse(await textOf(call, file, signal), file);
    return (state) => {
      const standing = (nodes === undefined ? state.properties : state.overrides.get(nodes)) ?? new Map<string, string>();
      const others = call.options.replace ? [...standing.keys()].filter((key) => !values.has(key)) : [];
      return [...others.map((key) => ({ key, nodes, new: null })), ...[...values].map(([key, value]) => ({ key, nodes, new: value }))];
    };
  });
}

/** `nodelease config rollback REV`: publishes what undoes all later revisions. */
export function rollbackConfig(call: ConfigCall, revision: string): Promise<number> {
  const to = revisionNumber(revision, 'REV');
  return publishedAs(call, ({ publisher }, publishing) => publisher.rollback(to, publishing));
}

const published = (call: ConfigCall, wanted: (work: ConfigWork) => Promise<Wanted>) =>
  publishedAs(call, async (work, publishing) => work.publisher.publish(await wanted(work), publishing));

/** Prints the new revision, or that nothing was to change. */
function publishedAs(
  call: ConfigCall,
  publish: (work: ConfigWork, publishing: { signal: AbortSignal; expect?: number; message?: string }) => Promise<Revision | undefined>,
): Promise<number> {
  const { expect, message, json } = call.options;
  const expected = expect === undefined ? {} : { expect: revisionNumber(expect, '--expect') };
  return onConfig(call, async (work) => {
    const { publisher, signal } = work;
    const revision = await publish(work, { signal, ...expected, ...(message !== undefined && { message }) });
    if (json) sayJson(call.io, revision ?? { revision: (await publisher.read(signal)).revision, changes: [] });
    else if (revision)
      say(call.io, `${publisher.context}: revision ${revision.revision}, ${pluralize(revision.changes.length, 'key')} changed`);
    else say(call.io, `${publisher.context}: nothing to change`);
    return ExitCode.ok;
  });
}

async function textOf({ io }: ConfigCall, file: string, signal: AbortSignal): Promise<string> {
  try {
    const data = await (file === '-' ? orAborted(io.stdin(), signal) : readFile(file));
    return new TextDecoder('utf-8', { fatal: true }).decode(data);
  } catch (error) {
    signal.throwIfAborted();
    throw new ConfigError('FILE', file, `a file that can be read, in UTF-8 (${(error as NodeJS.ErrnoException).code ?? 'it is not'})`);
  }
}
