/** What Node.js was started with: `process.execArgv`, and the value of `NODE_OPTIONS`. */
export interface StartOptions {
  readonly execArgv: readonly string[];
  readonly nodeOptions: string | undefined;
}

/** The flags that load modules before the program: an SDK can only have been registered by one of them. */
const PRELOADING = /(?:^|\s)(?:--import|--require|--experimental-loader|--loader|-r)(?:[\s=]|$)/;

/**
 * Whether a module, and with it an OpenTelemetry SDK, may have been loaded before the command. Without one a
 * tracer would do nothing.
 */
export function mayHaveSdk({ execArgv, nodeOptions = '' }: StartOptions): boolean {
  return PRELOADING.test(execArgv.join(' ')) || PRELOADING.test(nodeOptions);
}
