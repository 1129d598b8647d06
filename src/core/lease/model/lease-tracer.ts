/** The spans of the engine that a user may see. */
export type LeaseSpanName = 'nodelease.acquire' | 'nodelease.renew' | 'nodelease.release';

/** Facts of a span, by names such as `nodelease.node_id`; never a secret. */
export type LeaseAttributes = Readonly<Record<string, string | number>>;

/** Adds facts to the current span that become known only later. */
export type NoteAttributes = (attributes: LeaseAttributes) => void;

/**
 * Measures the engine's operations, and shows to which operation each request to the store belongs. The
 * engine knows no other tracing interface.
 */
export interface LeaseTracer {
  /**
   * Calls `run` once, in the same tick, within a span of that name, and resolves or rejects as it does.
   * `nodelease.renew` is part of no operation of the caller: it is the root of a trace.
   */
  span<T>(
    name: LeaseSpanName,
    attributes: LeaseAttributes,
    run: (note: NoteAttributes) => Promise<T>,
  ): Promise<T>;

  /**
   * A span that has ended just now, in another thread, after `tookMs` milliseconds; with its failure, if any.
   */
  past(name: LeaseSpanName, attributes: LeaseAttributes, tookMs: number, failure?: unknown): void;
}

/**
 * A tracer that does no harm: `run` is called once, at once, and only its end is awaited. Errors of the given
 * tracer are dropped.
 */
export function harmless(tracer: LeaseTracer | undefined): LeaseTracer {
  return {
    span<T>(
      name: LeaseSpanName,
      attributes: LeaseAttributes,
      run: (note: NoteAttributes) => Promise<T>,
    ): Promise<T> {
      let end: Promise<T> | undefined;
      const once = (note: NoteAttributes) => {
        end ??= run((later) => quietly(() => note(later)));
        return end;
      };
      quietly(() => {
        // The tracer's own promise may fail; it is not awaited.
        Promise.resolve(tracer?.span(name, attributes, once)).catch(() => undefined);
      });
      return once(() => undefined);
    },
    past: (name, attributes, tookMs, failure) =>
      quietly(() => tracer?.past(name, attributes, tookMs, failure)),
  };
}

function quietly(act: () => void): void {
  try {
    act();
  } catch {
    // A tracer that fails must not end the lease.
  }
}
