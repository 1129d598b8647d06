import { NodeLeaseError } from '../base/errors.js';

/** What is known of a service of which no instance can be picked. */
export interface NoInstanceFacts {
  /** How many are known at all. */
  readonly known: number;
  /** How many of them are disabled, or out of service by Spring Cloud's `instance_status`. */
  readonly disabled: number;
  /** How many of the others are not acceptable, by default those without an address. */
  readonly unacceptable: number;
  /** How many of the rest have failed so often that they are left alone for a while. */
  readonly down: number;
  /** For how long ZooKeeper has told nothing, in milliseconds; undefined while it tells of every change. */
  readonly staleForMs: number | undefined;
}

/** There is no instance of a service that a request could be sent to, or none besides those that were tried already. */
export class NoInstanceError extends NodeLeaseError {
  readonly code = 'NO_INSTANCE';

  /**
   * @param service the service, or whatever else the instances have in common
   * @param facts what is known of its instances, where whoever misses one knows it
   */
  constructor(
    readonly service: string,
    readonly facts?: NoInstanceFacts,
  ) {
    super(`no instance of ${service} can be picked${facts === undefined ? '' : ` (${describe(facts)})`}`);
  }
}

function describe({ known, disabled, unacceptable, down, staleForMs }: NoInstanceFacts): string {
  const left = known - disabled - unacceptable - down;
  const parts = [
    [disabled, 'disabled or out of service'],
    [unacceptable, 'without a usable address'],
    [down, 'down'],
    [left, 'tried already'],
  ] as const;
  const counts = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  const whatIsKnown = known === 0 ? 'none is known' : `${known} known: ${counts.join(', ')}`;
  const since = staleForMs === undefined ? '' : `; ZooKeeper has told nothing for ${Math.round(staleForMs / 1_000)} s`;
  return `${whatIsKnown}${since}`;
}
