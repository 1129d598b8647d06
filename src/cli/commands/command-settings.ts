import { type Command, Option } from 'commander';
import { ENDPOINTS_VARIABLE } from '../../settings/endpoints.js';
import { readSettings, type Settings } from '../../settings/settings.js';
import { environmentName, type NamedSetting, SETTINGS, type SettingName, settingsFor } from '../../settings/settings-table.js';
import type { Io } from '../terminal/io.js';

/** Gives a command the options of its settings, in the order of the help. */
export function addSettings(command: Command): void {
  for (const setting of settingsFor(fullName(command))) {
    const { name, kind, repeatable } = setting;
    const option = new Option(kind.argument === undefined ? `--${name}` : `--${name} <${kind.argument}>`, help(setting));
    if (repeatable) option.argParser((value, earlier: readonly string[] | undefined) => [...(earlier ?? []), value]);
    command.addOption(option);
  }
}

/**
 * The settings that a command was given, as options and as variables. Variables of settings that it does not have are none of its business.
 *
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function settingsOf(command: Command, { env: surroundings, hostname }: Io): Settings {
  const given: Record<string, unknown> = command.opts();
  const flags: Partial<Record<SettingName, string | readonly string[]>> = {};
  for (const { name } of SETTINGS) {
    const value = given[new Option(`--${name}`).attributeName()];
    if (typeof value === 'string' || isTexts(value)) flags[name] = value;
    else if (value === true) flags[name] = 'true';
  }
  const names = settingsFor(fullName(command)).map(({ name }) => name);
  const announces = names.includes('service');
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

/** What the table calls a command: `run`, `discovery ls`. */
function fullName(command: Command): string {
  const { parent } = command;
  return parent?.parent ? `${parent.name()} ${command.name()}` : command.name();
}

function help({ name, sentence, kind, default: standard }: NamedSetting): string {
  const facts = [kind.range, standard && `default: ${standard}`].filter((fact) => fact !== undefined).join('; ');
  return `${sentence}${facts && ` (${facts})`} [${environmentName(name)}]`;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}
