import {
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import type { Clock } from '../base/clock.js';
import { explain } from '../base/errors.js';
import type {
  LeaseAttributes,
  LeaseSpanName,
  LeaseTracer,
  NoteAttributes,
} from '../lease/model/lease-tracer.js';

/** The attribute whose value is a URL that may hold a password. */
const STORE = 'nodelease.store';

/**
 * Tells OpenTelemetry of acquiring, renewing and releasing. The spans are active while the store is asked, so
 * that those of an instrumented client, such as the AWS SDK's, become their children. A renewal is the root
 * of a trace of its own: it belongs to no request of yours, even where the lease was acquired within one.
 *
 * Attributes: `nodelease.node_id`, `nodelease.version`, `nodelease.task_id`, `nodelease.store` (its URL
 * without user, password and query), and for an acquisition `nodelease.from` and `nodelease.requests`. A
 * failure is recorded as an exception, and the span's status.
 */
export class OpenTelemetryTracer implements LeaseTracer {
  /** Of the SDK that the process has registered; spans go nowhere where there is none. */
  readonly #tracer: Tracer = trace.getTracer('nodelease');

  /** @param clock tells when a span began that is reported after its end */
  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  span<T>(
    name: LeaseSpanName,
    attributes: LeaseAttributes,
    run: (note: NoteAttributes) => Promise<T>,
  ): Promise<T> {
    const options = {
      kind: SpanKind.INTERNAL,
      attributes: presentable(attributes),
      root: name === 'nodelease.renew',
    };
    return this.#tracer.startActiveSpan(name, options, async (span) => {
      try {
        return await run((later) => span.setAttributes(presentable(later)));
      } catch (error) {
        fail(span, error);
        throw error;
      } finally {
        span.end();
      }
    });
  }

  past(name: LeaseSpanName, attributes: LeaseAttributes, tookMs: number, failure?: unknown): void {
    const endTime = this.clock.now();
    const options = {
      attributes: presentable(attributes),
      startTime: endTime - tookMs,
      root: name === 'nodelease.renew',
    };
    const span = this.#tracer.startSpan(name, options);
    if (failure !== undefined) fail(span, failure);
    span.end(endTime);
  }

  /**
   * Has the SDK export what has ended so far, as is to be done before the process exits. Resolves when it
   * has, and at once where there is no SDK. Not guaranteed: that this is soon.
   *
   * @throws whatever the exporter fails with
   */
  async flush(): Promise<void> {
    const provider: Registered = trace.getTracerProvider();
    await (provider.getDelegate?.() ?? provider).forceFlush?.();
  }
}

/**
 * A provider that was registered, or the API's own that stands in for it. The API knows nothing of what SDKs
 * have beside.
 */
interface Registered extends TracerProvider {
  getDelegate?(): Registered;
  forceFlush?(): Promise<void>;
}

function fail(span: Span, error: unknown): void {
  span.recordException(error instanceof Error ? error : explain(error));
  span.setStatus({ code: SpanStatusCode.ERROR, message: explain(error) });
}

function presentable(attributes: LeaseAttributes): LeaseAttributes {
  const store = attributes[STORE];
  return typeof store === 'string' ? { ...attributes, [STORE]: withoutSecrets(store) } : attributes;
}

/** A store that a program passes as an object may have a password in its URL. */
function withoutSecrets(url: string): string {
  const rest = url.replace(/[?#].*$/s, '');
  return rest.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/is, '$1');
}
