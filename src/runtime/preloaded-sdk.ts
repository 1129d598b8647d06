import type { Clock } from '../base/clock.js';
import type { OpenTelemetryTracer } from './open-telemetry-tracer.js';

/** What Node.js was started with. */
export interface StartOptions {
  /** `process.execArgv`. */
  readonly execArgv: readonly string[];
  /** The value of `NODE_OPTIONS`. */
  readonly nodeOptions: string | undefined;
}

/** The flags that load modules before the program: an SDK can only have been registered by one of them. */
const PRELOADING = /(?:^|\s)(?:--import|--require|--experimental-loader|--loader|-r)(?:[\s=]|$)/;

/** Whether a module, and with it an OpenTelemetry SDK, may have been loaded before the command. */
export function mayHaveSdk({ execArgv, nodeOptions = '' }: StartOptions): boolean {
  return PRELOADING.test(execArgv.join(' ')) || PRELOADING.test(nodeOptions);
}

/**
 * The tracer for a command: undefined where no SDK can be there, so that no time is spent on a library that would do nothing.
 */
export async function preloadedTracer(start: StartOptions, clock: Pick<Clock, 'now'>): Promise<OpenTelemetryTracer | undefined> {
  return mayHaveSdk(start) ? installedTracer(clock) : undefined;
}

/** The tracer for a program: undefined where `@opentelemetry/api`, an optional peer dependency, is not installed. */
export async function installedTracer(clock: Pick<Clock, 'now'>): Promise<OpenTelemetryTracer | undefined> {
  try {
    const { OpenTelemetryTracer: Tracer } = await import('./open-telemetry-tracer.js');
    return new Tracer({ clock });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
