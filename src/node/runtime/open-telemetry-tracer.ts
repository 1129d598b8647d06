import type * as openTelemetry from '@opentelemetry/api';
import type { Span, Tracer, TracerProvider } from '@opentelemetry/api';
import type { Clock } from '../../core/base/clock.js';
import { explain } from '../../core/base/errors.js';
import type {
  LeaseAttributes,
  LeaseSpanName,
  LeaseTracer,
  NoteAttributes,
} from '../../core/lease/model/lease-tracer.js';
import { isNotInstalled } from '../../core/store/optional-package.js';

/** The attribute whose value is a URL that may hold a password. */
const STORE = 'nodelease.store';

/**
 * Reports acquiring, renewing and releasing to OpenTelemetry. The spans are active during requests to the
 * store, so that the spans of an instrumented client, such as the AWS SDK, become their children. A renewal
 * is the root of a separate trace: it belongs to no request of yours, even if the lease was acquired within
 * one.
 *
 * Attributes: `nodelease.node_id`, `nodelease.version`, `nodelease.task_id`, `nodelease.store` (its URL
 * without user, password and query), and for an acquisition `nodelease.from` and `nodelease.requests`. A
 * failure is recorded as an exception, and the span's status.
 */
export class OpenTelemetryTracer implements LeaseTracer {
  /** The tracer of the registered SDK; without an SDK, spans are dropped. */
  readonly #tracer: Tracer;

  /**
   * @param clock the source of the start of a span that is reported after its end
   * @param api imported by the caller: the package is optional
   */
  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    private readonly api: typeof openTelemetry,
  ) {
    this.#tracer = api.trace.getTracer('nodelease');
  }

  span<T>(
    name: LeaseSpanName,
    attributes: LeaseAttributes,
    run: (note: NoteAttributes) => Promise<T>,
  ): Promise<T> {
    const options = { kind: this.api.SpanKind.INTERNAL, ...optionsOf(name, attributes) };
    return this.#tracer.startActiveSpan(name, options, async (span) => {
      try {
        return await run((later) => span.setAttributes(presentable(later)));
      } catch (error) {
        this.#fail(span, error);
        throw error;
      } finally {
        span.end();
      }
    });
  }

  past(name: LeaseSpanName, attributes: LeaseAttributes, tookMs: number, failure?: unknown): void {
    const endTime = this.clock.now();
    const options = { startTime: endTime - tookMs, ...optionsOf(name, attributes) };
    const span = this.#tracer.startSpan(name, options);
    if (failure !== undefined) this.#fail(span, failure);
    span.end(endTime);
  }

  /**
   * Makes the SDK export the ended spans; to be called before the process exits. Resolves when that is done,
   * and at once without an SDK. Not guaranteed: that this is soon.
   *
   * @throws the error of the exporter
   */
  async flush(): Promise<void> {
    const provider: Registered = this.api.trace.getTracerProvider();
    await (provider.getDelegate?.() ?? provider).forceFlush?.();
  }

  #fail(span: Span, error: unknown) {
    span.recordException(error instanceof Error ? error : explain(error));
    span.setStatus({ code: this.api.SpanStatusCode.ERROR, message: explain(error) });
  }
}

/** A tracer; undefined where `@opentelemetry/api`, an optional peer dependency, is not installed. */
export async function installedTracer(clock: Pick<Clock, 'now'>): Promise<OpenTelemetryTracer | undefined> {
  const api = await import('@opentelemetry/api').catch((error) => {
    if (isNotInstalled('@opentelemetry/api', error)) return undefined;
    throw error;
  });
  return api && new OpenTelemetryTracer(clock, api);
}

/** A registered provider, or the API's own proxy for it. The API does not declare these methods of SDKs. */
interface Registered extends TracerProvider {
  getDelegate?(): Registered;
  forceFlush?(): Promise<void>;
}

function optionsOf(name: LeaseSpanName, attributes: LeaseAttributes) {
  return { attributes: presentable(attributes), root: name === 'nodelease.renew' };
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
