import { type Command, Option } from 'commander';
import { ENDPOINTS_VARIABLE, environmentName, readSettings, SETTINGS, type SettingName, type Settings } from '../config.js';
import type { Io } from './io.js';

/** What a command needs to know that holds a node id for others, `run` or `serve`: everything. */
export const TENANCY_SETTINGS: readonly SettingName[] = SETTINGS.map(({ name }) => name);
/** What a command that looks at a store needs to know. */
export const STORE_SETTINGS: readonly SettingName[] = ['store', 'endpoint', 'region', 'log-level', 'log-format'];
/** What a command that looks at ZooKeeper needs to know. */
export const ZOOKEEPER_SETTINGS: readonly SettingName[] = [
  'zookeeper',
  'zookeeper-auth',
  'zookeeper-session-timeout',
  'log-level',
  'log-format',
];
/** What a command needs to know that looks at where the node ids come from, and at ZooKeeper where that is used. */
export const LOOK_SETTINGS: readonly SettingName[] = ['provider', ...STORE_SETTINGS, ...ZOOKEEPER_SETTINGS];
/** What a command needs to know that looks at the services that Curator knows of. */
export const SERVICE_SETTINGS: readonly SettingName[] = ['service-base-path', ...ZOOKEEPER_SETTINGS];
/** The same, to answer over HTTP. */
export const SERVE_SETTINGS: readonly SettingName[] = ['http', ...SERVICE_SETTINGS];
/** The same as to look, to answer over HTTP. */
export const CONSOLE_SETTINGS: readonly SettingName[] = ['http', 'bearer-token-file', ...LOOK_SETTINGS];
/** What it takes to acquire a node id, where nothing is announced. */
export const ID_SETTINGS: readonly SettingName[] = [
  ...(['nodes', 'duration', 'grace', 'task-id', 'acquire-timeout', 'wait-poll', 'settings-interval'] as const),
  ...LOOK_SETTINGS,
];
/** What it takes to create a cluster. */
export const INIT_SETTINGS: readonly SettingName[] = ['nodes', 'duration', 'grace', ...LOOK_SETTINGS];
/** What it takes to examine a cluster, and to tell what it costs, or one that is still to be made would. */
export const DOCTOR_SETTINGS: readonly SettingName[] = ['nodes', 'duration', 'settings-interval', ...LOOK_SETTINGS];

/** Gives a command the options of these settings, in the order of the help. */
export function addSettings(command: Command, names: readonly SettingName[]): void {
  for (const { name, argument, repeatable, description } of SETTINGS) {
    if (!names.includes(name)) continue;
    const flags = argument === undefined ? `--${name}` : `--${name} <${argument}>`;
    const option = new Option(flags, `${description} [${environmentName(name)}]`);
    if (repeatable) option.argParser((value, earlier: readonly string[] | undefined) => [...(earlier ?? []), value]);
    command.addOption(option);
  }
}

/**
 * The settings that a command was given, as options and as variables.
 *
 * @param names the settings that the command knows; variables of others are none of its business
 * @param announces whether it announces a service
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function settingsOf(
  command: Command,
  { env: surroundings, hostname }: Io,
  names: readonly SettingName[],
  announces = false,
): Settings {
  const given: Record<string, unknown> = command.opts();
  const flags: Partial<Record<SettingName, string | readonly string[]>> = {};
  for (const { name } of SETTINGS) {
    const value = given[new Option(`--${name}`).attributeName()];
    if (typeof value === 'string' || isTexts(value)) flags[name] = value;
    else if (value === true) flags[name] = 'true';
  }
  // A run within a run does not take the outer one's id for its own name.
  const known = ['NODE_ID_VERSION', ...(announces ? [ENDPOINTS_VARIABLE] : []), ...names.map(environmentName)];
  const env = Object.fromEntries(known.map((name) => [name, surroundings[name]]));
  return readSettings({ flags, env, hostname, announces });
}

/**
 * The fixed node id that the environment names for the commands that hold one.
 *
 * @throws {ConfigError} when it names none that could be
 */
export function fixedNodeId({ env, hostname }: Pick<Io, 'env' | 'hostname'>): number | undefined {
  const name = environmentName('node-id');
  return readSettings({ flags: {}, env: { [name]: env[name] }, hostname }).nodeId;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}
