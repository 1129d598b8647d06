import { checkArguments, kind, OBJECT, whole } from '../../base/arguments.js';

const KNOWN_NODES = kind('an object of versions by their node ids', (value) =>
  Object.entries(OBJECT.is(value) ? (value as object) : { '': value }).every(
    ([id, version]) => /^\d{1,5}$/.test(id) && whole(0).is(version),
  ),
);

/** Refuses what would make a lease object unreadable. @throws {ConfigError} */
export function checkKnownNodes(versions: unknown): void {
  checkArguments({ versions }, { versions: KNOWN_NODES });
}
