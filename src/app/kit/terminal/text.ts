import { inspect } from 'node:util';
import type { ClusterConfig, ClusterTimes } from '../../../core/lease/model/cluster-config.js';
import { formatSetting } from '../../../core/settings/setting.js';
import type { Screen } from '../io.js';

export { formatSetting };

/** How many things a list names; the others are counted. */
const NAMED = 8;

/** A duration in milliseconds, at least 0, for people: `3.2s`, `4m05s`, `2h10m`, `3d4h`. Cut, not rounded. */
export function formatDuration(ms: number): string {
  const tenths = Math.floor(ms / 100);
  if (tenths < 600) return `${Math.floor(tenths / 10)}.${tenths % 10}s`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d${hours % 24}h`;
}

/** An instant in milliseconds since the Unix epoch, in UTC; empty where there is none. */
export function formatTime(time: number | null): string {
  return time === null ? '' : new Date(time).toISOString();
}

/** `duration 15s, grace 1s` */
export function timesText({ durationMs, graceMs }: ClusterTimes): string {
  return `duration ${formatSetting(durationMs)}, grace ${formatSetting(graceMs)}`;
}

/** The value of a setting in an event: a duration, or a number of node ids. */
export function settingText(setting: string, value: number): string {
  return setting === 'nodes' ? `${value}` : formatSetting(value);
}

/** The settings of a cluster, for people. */
export function formatCluster({ name, ...times }: ClusterConfig): string {
  const named = name === undefined ? '' : `name ${printable(name)}, `;
  return named + timesText(times);
}

/** `1 node`, `2 nodes`: for nouns whose plural ends in s. */
export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `host:port`, as far as they are known. */
export function formatAddress({
  address,
  port,
}: {
  readonly address: string | null;
  readonly port: number | null;
}): string {
  if (address === null) return port === null ? '' : `:${port}`;
  const host = address.includes(':') && port !== null ? `[${address}]` : address;
  return port === null ? host : `${host}:${port}`;
}

/** The first eight texts, and how many more there are: `7, 8, 9 and 2 more`. */
export function someOf(texts: readonly string[]): string {
  const more = texts.length - NAMED;
  return texts.slice(0, NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** At most `width` characters of a text, with an ellipsis in the last place where it was longer. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`.slice(0, width);
}

/**
 * One line of text that is safe to show: texts from a store may hold control characters, and with them
 * commands to a terminal.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD');
}

/**
 * A value as one line of JSON that is safe to show: control and format characters of Unicode are escaped,
 * also the ones that JSON allows. A parser gets the same value.
 */
export function jsonLine(value: unknown): string {
  const escaped = (text: string) =>
    text
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
  return `${JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped)}\n`;
}

function two(value: number) {
  return String(value).padStart(2, '0');
}

/** A color of the terminal, or a weight. */
export type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'bold' | 'dim';

/** Colors a text, or returns it unchanged where the terminal or its user wants no colors. */
export type Paint = (text: string, color: Color | undefined) => string;

/** The {@link Paint} for a terminal, or for a pipe or a file where there is none. */
export function paintFor(screen: Pick<Screen, 'color'> | undefined): Paint {
  if (!screen?.color) return (text) => text;
  return (text, color) => {
    const codes = color && inspect.colors[color];
    return codes ? `\x1b[${codes[0]}m${text}\x1b[${codes[1]}m` : text;
  };
}
