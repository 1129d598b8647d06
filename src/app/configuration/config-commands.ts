import { readFile } from 'node:fs/promises';
import { orAborted } from '../../core/base/abort.js';
import { ConfigError } from '../../core/base/errors.js';
import { parseInteger } from '../../core/settings/setting.js';
import {
  type ConfigurationChange,
  type ConfigurationEvent,
  openConfiguration,
} from '../../zookeeper/configuration/configuration.js';
import { readFleet } from '../../zookeeper/configuration/fleet.js';
import type { KeyChange, Revision } from '../../zookeeper/configuration/history.js';
import { type ConfigName, contextsOf, overridesOf, rootOf } from '../../zookeeper/configuration/layout.js';
import {
  type ConfigPublisher,
  type ContextState,
  configPublisher,
  type PublishOptions,
  type WantedChange,
} from '../../zookeeper/configuration/publisher.js';
import { type ConfigPlace, readContexts, repeated } from '../../zookeeper/configuration/read-contexts.js';
import { answer, complain, sayJson, sayValue, withRows } from '../kit/answer.js';
import { interruption, onConnecting, watching, type ZooKeeperCall } from '../kit/call.js';
import { showChanges } from '../kit/changes.js';
import { ExitCode, UsageError } from '../kit/io.js';
import { pluralize, someOf } from '../kit/terminal/text.js';
import { type FormatName, fileFormat } from './file-formats.js';

const valuesOf = ({ place, contexts, nodeId, signal }: ConfigWork) =>
  readContexts(place, contexts, nodeId, { signal });

/** `nodelease config ls`: the values, and which context each comes from. */
export function ls(call: ConfigCall): Promise<number> {
  return onConfig(call, async (work) => {
    const { values, revisions } = await valuesOf(work);
    const rows = [...values].map(([key, { value, context }]) => ({ key, value, context }));
    return answer(call, {
      report: { revisions, values: rows },
      tables: withRows([[['KEY', 12], ['VALUE', 16], 'CONTEXT'], rows.map(Object.values)]),
      lines: [`${pluralize(rows.length, 'key')} of ${revisionsText(revisions)}`],
    });
  });
}

/** `nodelease config get KEY`: prints the value; exit code 1 where the key is not set. */
export function get(call: ConfigCall, key = ''): Promise<number> {
  return onConfig(call, async (work) => {
    const found = (await valuesOf(work)).values.get(key);
    if (found === undefined) complain(call.io, `${key} is not set in ${work.contexts[0]}`);
    else if (call.options.json) sayJson(call.io, { key, ...found });
    else sayValue(call.io, found.value);
    return found === undefined ? ExitCode.nothing : ExitCode.ok;
  });
}

/** `nodelease config export`: prints the values in the format of a file. */
export function exportFile(call: ConfigCall): Promise<number> {
  const format = fileFormat(call.options.format);
  return onConfig(call, async (work) => {
    const { values } = await valuesOf(work);
    call.io.stdout(format.format(new Map([...values].map(([key, { value }]) => [key, value]))));
    return ExitCode.ok;
  });
}

/** `nodelease config history`: the revisions of one context, the newest first. */
export function history(call: ConfigCall): Promise<number> {
  return onConfig(call, async ({ publisher, signal }) => {
    const revisions = await publisher.history(signal);
    const rows = revisions.map(({ revision, at, author, message, changes }) => [
      `${revision}`,
      at,
      author,
      message,
      someOf(changes.map(({ key }) => key)),
    ]);
    return answer(call, {
      report: revisions,
      tables: withRows([
        [
          ['REVISION', 'right'],
          ['AT', 12],
          ['AUTHOR', 12],
          ['MESSAGE', 12],
          ['KEYS', 12],
        ],
        rows,
      ]),
      lines: [`${pluralize(rows.length, 'revision')} of ${publisher.context}`],
    });
  });
}

/** `nodelease config diff REV [REV]`: what was published between two revisions, or since one. */
export function diff(call: ConfigCall, from = '', to?: string): Promise<number> {
  const first = revisionOf(from);
  const last = to === undefined ? undefined : revisionOf(to);
  return onConfig(call, async ({ publisher, signal }) => {
    const changes = await publisher.diff(first, last, signal);
    return answer(call, {
      report: changes,
      tables: withRows([
        [
          ['KEY', 12],
          ['OLD', 12],
          ['NEW', 12],
        ],
        changes.map(changeRow),
      ]),
      lines: [`${pluralize(changes.length, 'key')} of ${publisher.context} differ`],
    });
  });
}

/** `nodelease config status`: which revision each node runs, as far as nodes report it. */
export function status(call: ConfigCall): Promise<number> {
  return onConfig(call, async ({ contexts: [context = ''], place, signal }) => {
    const [report] = await repeated(place, { signal }, (own) =>
      readFleet(place.zookeeper, place.root, own, context),
    );
    const { revisions = {}, nodes = [] } = report ?? {};
    const late = nodes.filter(({ behind }) => behind.length > 0);
    const rows = nodes.map(({ nodeId, revisions: own, at, behind }) => [
      `${nodeId}`,
      `${own[context] ?? 0}`,
      at,
      behind.join(' '),
    ]);
    return answer(call, {
      report: { revisions, nodes },
      tables: withRows([[['NODE ID', 'right'], ['REVISION', 'right'], 'SINCE', 'BEHIND IN'], rows]),
      lines: [`${pluralize(nodes.length, 'node')}, ${late.length} behind, of ${revisionsText(revisions)}`],
    });
  });
}

/**
 * `nodelease config watch`: prints every change, until a signal ends it: 0 for SIGINT and SIGTERM. With
 * `--node` it counts as that node.
 */
export function watch(call: ConfigCall): Promise<number> {
  const showChange = showChanges(call);
  return onConfig(call, async ({ name, nodeId, place, signal }) => {
    const { zookeeper, clock, random } = place;
    const onEvent = (event: ConfigurationEvent) => 'problem' in event && complain(call.io, event.problem);
    const show = ({ changes, revisions }: ConfigurationChange, state?: string) => {
      const shown = changes.map(({ key, old = null, new: value = null }) => ({ key, old, new: value }));
      const lines = shown.map(changeRow).map(([key, old, now]) => `${key}: ${old} -> ${now}`);
      if (lines.length === 0) lines.push(`${revisionsText(revisions)}: ${state ?? 'no other values'}`);
      showChange({ change: state ?? 'changed', revisions, changes: shown }, undefined, ...lines);
    };
    return watching(signal, async () => {
      await using config = await openConfiguration(zookeeper, {
        ...name,
        nodeId,
        signal,
        onEvent,
        clock,
        random,
      });
      config.onChange(show);
      show({ changes: [], revisions: config.revisions }, 'watching');
      await interruption(signal);
    });
  });
}

/** `nodelease config set KEY=VALUE…`: publishes the values together. */
export function set(call: ConfigCall, ...assignments: readonly string[]): Promise<number> {
  const wanted = assignments.map((text) => {
    const at = text.indexOf('=');
    if (at < 1) throw new ConfigError('KEY=VALUE', text, 'a key, "=", and its value');
    return { key: text.slice(0, at), new: text.slice(at + 1) };
  });
  return published(call, ({ publisher }, options) => publisher.publish(wanted, options));
}

/** `nodelease config unset KEY…`; with `--nodes` and without keys, all overrides of these nodes. */
export function unset(call: ConfigCall, ...keys: readonly string[]): Promise<number> {
  if (keys.length === 0 && call.options.nodes === undefined)
    throw new UsageError('expected the keys to unset, or --nodes to unset all overrides');
  const wanted = ({ properties }: ContextState) => unsetting(keys.length > 0 ? keys : [...properties.keys()]);
  return published(call, ({ publisher }, options) => publisher.publish(wanted, options));
}

const unsetting = (keys: readonly string[]): readonly WantedChange[] =>
  keys.map((key) => ({ key, new: null }));

/**
 * `nodelease config import FILE`: publishes what the file has; with `--replace`, unsets all other keys of the
 * context.
 */
export function importFile(call: ConfigCall, file = ''): Promise<number> {
  const format = fileFormat(call.options.format, file);
  return published(call, async ({ publisher, signal }, options) => {
    const text = await textOf(call, file, signal);
    const values = format.parse(text, file);
    // Such as the output of a program that has failed. An object of JSON without keys is meant.
    if (call.options.replace && values.size === 0 && !/^\s*\{/.test(text))
      throw new ConfigError('FILE', file, 'values with --replace (without any, all keys would be unset)');
    const wanted = ({ properties }: ContextState) => [
      ...unsetting(call.options.replace ? [...properties.keys()].filter((key) => !values.has(key)) : []),
      ...[...values].map(([key, value]) => ({ key, new: value })),
    ];
    return publisher.publish(wanted, options);
  });
}

/** `nodelease config rollback REV`: publishes what undoes all later revisions. */
export function rollback(call: ConfigCall, revision = ''): Promise<number> {
  const to = revisionOf(revision);
  return published(call, ({ publisher }, options) => publisher.rollback(to, options));
}

/** @throws {ConfigError} */
const revisionOf = (text: string) => parseInteger(text, 'REV', 0, 1_000_000_000);

/** Prints the new revision, or that nothing was to change. */
function published(
  call: ConfigCall,
  act: (work: ConfigWork, options: PublishOptions) => Promise<Revision | undefined>,
): Promise<number> {
  const { expect, message } = call.options;
  return onConfig(call, async (work) => {
    const { publisher, signal } = work;
    const revision = await act(work, { signal, expect, ...(message !== undefined && { message }) });
    const done = revision
      ? `revision ${revision.revision}, ${pluralize(revision.changes.length, 'key')} changed`
      : 'nothing to change';
    return answer(call, {
      report: revision ?? { revision: (await publisher.read(signal)).revision, changes: [] },
      lines: [`${publisher.context}: ${done}`],
    });
  });
}

async function textOf({ io }: ConfigCall, file: string, signal: AbortSignal) {
  try {
    const data = await (file === '-' ? orAborted(io.stdin(), signal) : readFile(file));
    return new TextDecoder('utf-8', { fatal: true }).decode(data);
  } catch (error) {
    signal.throwIfAborted();
    throw new ConfigError(
      'FILE',
      file,
      `a file that can be read, in UTF-8 (${(error as NodeJS.ErrnoException).code ?? 'it is not'})`,
    );
  }
}

/** An unset key is `-`, in quotes where that is the value. */
const changeRow = ({ key, old, new: value }: KeyChange) => [key, orUnset(old), orUnset(value)] as const;

const orUnset = (value: string | null) =>
  value === null ? '-' : value === '' || value === '-' ? `"${value}"` : value;

const revisionsText = (revisions: Readonly<Record<string, number>>) =>
  Object.entries(revisions)
    .map(([context, revision]) => `${context} at revision ${revision}`)
    .join(', ');

/** The options of the commands of the group `config`, as they are on the command line. */
interface ConfigOptions {
  readonly app?: string;
  readonly profile?: string;
  readonly root?: string;
  readonly node?: number;
  readonly nodes?: string;
  readonly own?: boolean;
  readonly message?: string;
  readonly expect?: number;
  readonly author?: string;
  readonly format?: FormatName;
  readonly replace?: boolean;
}

type ConfigCall = ZooKeeperCall<ConfigOptions>;

/** What a command works on. */
interface ConfigWork {
  readonly name: ConfigName;
  readonly place: ConfigPlace;
  /** All contexts, the most specific first; one with `--own`, and that of the overrides with `--nodes`. */
  readonly contexts: readonly string[];
  /** The node whose overrides count. */
  readonly nodeId: number | undefined;
  readonly publisher: ConfigPublisher;
  readonly signal: AbortSignal;
}

/**
 * Opens ZooKeeper for a command, and checks its options before that.
 * @throws {ConfigError} or {UsageError}
 */
async function onConfig(call: ConfigCall, act: (work: ConfigWork) => Promise<number>): Promise<number> {
  const { io } = call;
  const {
    app,
    profile,
    root,
    node: nodeId,
    nodes,
    own,
    author = `${io.env.USER || io.env.LOGNAME || 'unknown'}@${io.hostname}`,
  } = call.options;
  if (app === undefined)
    throw new UsageError('expected --app NAME, the application whose configuration is meant');
  const name = { app, profile, root };
  const all = contextsOf(name);
  const contexts = nodes !== undefined ? [overridesOf(all[0], nodes, '--nodes')] : own ? [all[0]] : all;
  const { clock, random } = io;
  const place = { clock, random, root: rootOf(name) };
  return onConnecting(call, async (zookeeper, signal) => {
    const publisher = configPublisher(zookeeper, { ...name, nodes, author, clock, random });
    await zookeeper.whenConnected({ signal });
    return act({ name, place: { ...place, zookeeper }, contexts, nodeId, publisher, signal });
  });
}
