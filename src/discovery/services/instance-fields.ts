import { SERVICE_TYPES } from './new-instance.js';
import type { ServiceType, UriPart, UriSpec } from './service-instance.js';
import { parseUriSpec } from './uri-spec.js';

/** What somebody's JSON holds cannot be taken for what the field is. `problem` is the rest of the sentence "<path> …". */
export class FieldProblem extends Error {
  constructor(readonly problem: string) {
    super(problem);
  }
}

/** The longest excerpt of somebody's data in a message. */
const SHOWN = 60;
const MAX_PORT = 65_535;
const MAX_INT = 2 ** 31;
const MAX_LONG = 2 ** 63;

function unusable(field: string, value: unknown): FieldProblem {
  const kind = Array.isArray(value) ? 'an array' : typeof value === 'object' && value !== null ? 'an object' : undefined;
  const text = kind ?? JSON.stringify(value);
  return new FieldProblem(`has no usable "${field}": ${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}`);
}

/** Jackson takes numbers and booleans for texts too. */
export function readText(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw unusable(field, value);
}

/** A whole number, the fraction cut off; texts are understood, an empty one as none. */
function readWhole(value: unknown, field: string, limit: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = typeof value === 'string' ? parseWhole(value.trim()) : value;
  if (number === undefined) return undefined;
  if (typeof number !== 'number' || !(Math.abs(number) < limit)) throw unusable(field, value);
  return Math.trunc(number);
}

function parseWhole(text: string): number | undefined {
  if (text === '' || text === 'null') return undefined;
  return /^[+-]?\d{1,20}$/.test(text) ? Number(text) : Number.NaN;
}

/** Curator reads any number; one that is no port is as good as none. */
export function readPort(value: unknown, field: string): number | undefined {
  const port = readWhole(value, field, MAX_INT);
  return port === undefined || port < 1 || port > MAX_PORT ? undefined : port;
}

export function readTime(value: unknown, field: string): number {
  return readWhole(value, field, MAX_LONG) ?? 0;
}

/** As Jackson reads what is a boolean in Java: null, and an empty text, as false. */
export function readFlag(value: unknown, field: string): boolean {
  if (value === null) return false;
  if (typeof value === 'boolean') return value;
  if (Number.isInteger(value)) return value !== 0;
  const text = typeof value === 'string' ? value.trim() : undefined;
  if (text === 'true' || text === 'True' || text === 'TRUE') return true;
  if (text === 'false' || text === 'False' || text === 'FALSE' || text === '') return false;
  throw unusable(field, value);
}

/** By its exact name, or by its number, which Jackson takes too. */
export function readServiceType(value: unknown, field: string): ServiceType {
  if (value === undefined || value === null) return 'DYNAMIC';
  const name = typeof value === 'string' ? value.trim() : value;
  const type = SERVICE_TYPES.find((each, index) => name === each || name === index || name === String(index));
  if (type === undefined) throw unusable(field, value);
  return type;
}

/** Curator's constructor takes a text too. */
export function readUriSpec(value: unknown, field: string): UriSpec | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') {
    try {
      return parseUriSpec(value);
    } catch {
      throw unusable(field, value);
    }
  }
  if (typeof value !== 'object' || Array.isArray(value)) throw unusable(field, value);
  const { parts } = value as { parts?: unknown };
  if (parts === undefined || parts === null) return { parts: [] };
  if (!Array.isArray(parts)) throw unusable(`${field}.parts`, parts);
  return { parts: parts.map((part: unknown) => readPart(part, `${field}.parts`)) };
}

function readPart(part: unknown, field: string): UriPart {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) throw unusable(field, part);
  const { value, variable } = part as { value?: unknown; variable?: unknown };
  return { value: readText(value, field) ?? '', variable: variable === undefined ? false : readFlag(variable, field) };
}
